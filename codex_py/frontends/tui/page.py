"""The page: rows that may still change, the composer or a panel, and the status below."""

from collections.abc import Callable, MutableMapping, Sequence
from functools import lru_cache

from prompt_toolkit.application import get_app
from prompt_toolkit.layout import AnyContainer, Container, Dimension, to_container
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

from codex_py.frontends.tui.first_frame import INDENT, status_gap
from codex_py.frontends.tui.fitting import LOW, Fragments, fit, shortened
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.theme import PROMPT
from codex_py.streams.terminal import printable

_LEAST_ROWS = 3
"""The least rows for work in progress, however low the screen is."""
_BESIDE_TEXT = 4
"""The columns beside the text of a prompt that waits."""
_OTHER_ROWS = 7
"""The usual number of all other rows."""
_WAITING = "  When the session has begun:"
_STEERED = "  After the next step:"
_QUEUED = "  After the turn ({chat.edit_queued_message} takes the last one back):"

_MOST_JOINED = 8
"""The most characters of a cell, since a letter can have any number of marks."""

_cell = lru_cache(maxsize=10_000)(Char)


class Page(Container):
    """Rows of text above and below the container that has the keyboard.

    The container gets the rows that it wants; on a low screen the first rows above it are left out.
    An `HSplit` of windows takes 2 ms more for each frame.
    """

    def __init__(
        self,
        body: AnyContainer,
        above: Callable[[], Sequence[Fragments]],
        below: Callable[[], Sequence[Fragments]],
    ) -> None:
        self._body = to_container(body)
        self._above = above
        self._below = below
        self._measured_for: tuple[int, int] | None = None
        """The number of the frame, and the columns, for which the rows were made."""
        self._body_rows = 0
        """The rows that the container wants."""
        self._rows_above: Sequence[Fragments] = ()
        self._rows_below: Sequence[Fragments] = ()

    def reset(self) -> None:
        self._body.reset()

    def preferred_width(self, max_available_width: int) -> Dimension:
        return self._body.preferred_width(max_available_width)

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        # This is asked twice for each frame.
        measured_for = (get_app().render_counter, width)
        if self._measured_for != measured_for:
            self._rows_above = self._above()
            self._rows_below = self._below()
            body = self._body.preferred_height(width, max_available_height)
            self._body_rows = body.preferred
            self._measured_for = measured_for
        rows = len(self._rows_above) + self._body_rows + len(self._rows_below)
        return Dimension.exact(min(rows, max_available_height))

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        column = write_position.xpos
        row = write_position.ypos
        width = write_position.width
        height = write_position.height
        self.preferred_height(width, height)
        below = self._rows_below[: height - 1]
        body = min(self._body_rows, height - len(below))
        wanted = len(self._rows_above) + body + len(below)
        above = self._rows_above[max(0, wanted - height) :]
        _draw(screen, above, column, row, width)
        row += len(above)
        position = WritePosition(column, row, width, body)
        self._body.write_to_screen(
            screen, mouse_handlers, position, parent_style, erase_bg, z_index
        )
        _draw(screen, below, column, row + body, width)

    def get_children(self) -> list[Container]:
        return [self._body]


def _draw(
    screen: Screen, rows: Sequence[Fragments], column: int, first: int, width: int
) -> None:
    for y, row in enumerate(rows, first):
        end = _draw_row(screen.data_buffer[y], shortened(row, width), column, width)
        screen.width = max(screen.width, end)
    screen.height = max(screen.height, first + len(rows))


def _draw_row(
    cells: MutableMapping[int, Char], row: Fragments, column: int, width: int
) -> int:
    """Draw a row from a column on. Returns the column after its last character."""
    x = column
    for style, text, *_ in row:
        for character in text:
            cell = _cell(character, style)
            if x + cell.width > column + width:
                break
            if cell.width:
                cells[x] = cell
                for covered in range(x + 1, x + cell.width):
                    cells[covered] = _cell("", "")
            elif x > column and len(cells[x - 1].char) < _MOST_JOINED:
                # A mark joins the character before it, which may be wide.
                last = x - 1 if cells[x - 1].char else x - 2
                cells[last] = _cell(cells[last].char + cell.char, cells[last].style)
            x += cell.width
    return x


def live_rows(ui: TerminalUI) -> list[Fragments]:
    """The rows above the composer, which may still change."""
    size = ui.screen.size()
    outbox = ui.outbox
    rows: list[Fragments] = []
    if ui.session_half is not None:
        most = max(_LEAST_ROWS, size.rows - _OTHER_ROWS)
        rows += ui.session_half.live(size.columns, most)
    working = ui.status.working(size.columns)
    if working:
        rows += [[], working]
    for submissions, heading in (
        (outbox.waiting, _WAITING),
        (outbox.steered, _STEERED),
        (outbox.queue, _QUEUED),
    ):
        if submissions:
            if size.rows >= LOW and rows[-1:] == [working]:
                rows.append([])
            rows.append([("class:quiet", ui.keymap.named(heading))])
        for each in submissions:
            first_line = (each.shown or each.text).splitlines()[0]
            text = fit(printable(first_line), size.columns - _BESIDE_TEXT)
            rows.append([("class:quiet", f"  {PROMPT} {text}")])
    return [*rows, []]


def rows_below(ui: TerminalUI) -> list[Fragments]:
    """The suggestions for the word that is being written, and the status."""
    size = ui.screen.size()
    completion = ui.composer.completion
    rows: list[Fragments] = []
    if completion.is_shown and ui.panels.top is None:
        rows += completion.rows(size.columns, size.rows)
    return [*rows, *[[]] * status_gap(size.rows), _status(ui, size.columns)]


def _status(ui: TerminalUI, columns: int) -> Fragments:
    hint = ui.panels.hint or ui.hints.text
    if hint:
        return [("class:quiet", INDENT + fit(hint, columns - len(INDENT)))]
    mode = ui.composer.vi_mode
    if mode:
        mode = f"{mode} "
    line = ui.status.line(columns - len(mode))
    return [("class:accent", mode), *line]
