"""The overlay: a long text over the whole screen, which is restored afterwards.

It shows cells as they would go to the scrollback, but whole, and draws them when they come into
view.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.utils import get_cwidth
from rich.console import Group, RenderableType
from rich.text import Text

from codex_py.frontends.tui.cells.layout import Band, Hanging
from codex_py.frontends.tui.fitting import Fragments, bar, fit, joined, shortened
from codex_py.frontends.tui.key_codes import ESC, PASTE, bind
from codex_py.frontends.tui.menu import bind_arrows
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.streams.terminal import aligned, printable

_FEW_KEYS = "Esc leaves · {pager.find} search"
_ONE_KEY = "Esc leaves"
Further: TypeAlias = tuple[str, Callable[[], str], Callable[[], None]]
"""One more key: its name; what it does, as a text after the other keys; and its action."""
_LOW = 6
"""Rows. A lower screen shows no title."""


@dataclass(slots=True)
class OverlayCell:
    """A section of an overlay: a cell, and how it is shown."""

    cell: RenderableType
    space: bool = True
    """True if an empty row stands before it."""
    continues: bool = False
    """True if it folds together with the section before."""
    is_folded: bool = False

    @property
    def is_prompt(self) -> bool:
        # Prompts are the only cells that are bands as a whole.
        return isinstance(self.cell, Band)


@dataclass(slots=True)
class Pages:
    """The content of an overlay, which may grow while it is shown.

    Args:
        live: returns the rows after the last section, which still change. It gets the number of
            columns and the most rows.
        state: returns a text for the place beside the title.
    """

    title: str
    sections: list[OverlayCell] = field(default_factory=list[OverlayCell])
    live: Callable[[int, int], Sequence[Fragments]] = lambda _columns, _most: ()
    state: Callable[[], str] = str
    at_end: bool = False
    """True: show the end first."""

    def add(
        self, cell: RenderableType, space: bool = True, *, continues: bool = False
    ) -> None:
        is_folded = continues and self.sections[-1].is_folded
        self.sections.append(OverlayCell(cell, space, continues, is_folded))


def table(title: str, rows: Sequence[Sequence[str]]) -> Pages:
    """The pages of a table."""
    cells: list[RenderableType] = []
    for line, row in zip(aligned(rows), rows, strict=True):
        start = line.rstrip().removesuffix(row[-1])
        cells.append(Hanging(f"  {start}", Text(row[-1])))
    return Pages(title, [OverlayCell(Group(*cells))])


class Overlay(Panel[None]):
    """Scrolls, folds and searches pages, until the user leaves it.

    Args:
        below: returns the work in progress for the last row, in so many columns; the keys follow.
    """

    covers = True
    contexts = ("pager", "agents")
    by_letter = False

    def __init__(
        self,
        pages: Pages,
        renderer: Renderer,
        below: Callable[[int], Fragments],
        further: Further | None = None,
    ) -> None:
        super().__init__(None)
        self._pages = pages
        self._renderer = renderer
        self._below = below
        self._further = further[1] if further else str
        self._drawn: dict[int, list[Fragments]] = {}
        """The unfolded rows of sections, for a screen of `_columns`."""
        self._columns = 0
        self._live: list[Fragments] = []
        self._place = (0, 0)
        """The section of the first visible row, and the index of the row in it."""
        self._follows = pages.at_end
        """True: the end stays visible while the text grows."""
        self._searched = ""
        self._hit: tuple[int, int] | None = None
        """The row that was found last, which may not be the first one on the screen."""
        self._found = ""
        """The result of the search: the number of that row among all found."""
        self._asked: str | None = None
        """The search text that is being written; None if no search is being written."""
        self._bind(further)
        self.contain(self.text)

    def _bind(self, further: Further | None) -> None:
        asking = Condition(lambda: self._asked is not None)
        keys = self.keys
        reading = ~asking
        bind(keys, "q c-t", lambda _: self.give(None), reading)
        bind(keys, "home g", lambda _: self._go((0, 0)), reading)
        bind(keys, "end G", lambda _: self._go(self._end), reading)
        bind(keys, "enter", lambda _: self._fold(), reading)
        bind(keys, "f", lambda _: self._fold_all(), reading)
        bind(keys, "c-u", lambda _: self._scroll_half(-1), reading)
        bind(keys, "c-d", lambda _: self._scroll_half(1), reading)
        bind(keys, "/", lambda _: self._ask(""), reading)
        bind(keys, "n", lambda _: self._search(1), reading)
        bind(keys, "N", lambda _: self._search(-1), reading)
        bind(keys, "[", lambda _: self._jump(-1), reading)
        bind(keys, "]", lambda _: self._jump(1), reading)
        bind_arrows(keys, self._scroll, reading, page=lambda: max(1, self._room - 1))
        bind(keys, "k", lambda _: self._scroll(-1), reading)
        bind(keys, "j", lambda _: self._scroll(1), reading)
        bind(keys, "b", lambda _: self._scroll(1 - self._room), reading)
        bind(keys, "space", lambda _: self._scroll(self._room - 1), reading)
        if further is not None:
            bind(keys, further[0], lambda _: further[2](), reading)
        bind(keys, f"<any> {PASTE}", self._write, asking)
        bind(keys, "backspace", self._erase, asking)
        bind(keys, "enter", lambda _: self._find_asked(), asking)
        bind(keys, f"{ESC} c-c", lambda _: self._ask(None), asking)

    @property
    def _room(self) -> int:
        """The rows of the text."""
        rows = get_app().output.get_size().rows
        if rows >= _LOW:
            return max(1, rows - 2)
        return max(1, rows - 1)

    @property
    def _end(self) -> tuple[int, int]:
        """The place of the first row if the end is the last row of the screen."""
        after_all = (len(self._pages.sections) + 1, 0)
        return self._moved(after_all, -self._room)

    def text(self) -> Fragments:
        """The whole screen."""
        size = get_app().output.get_size()
        pages = self._pages
        self._live = list(pages.live(size.columns, self._room))
        if self._follows or self._place >= self._end:
            self._place = self._end
            self._follows = True
        rows = [self._marked(row, size.columns) for row in self._shown_rows()]
        rows += [[]] * (self._room - len(rows))
        rows.append(self._last_row(size.columns))
        if size.rows >= _LOW:
            rows.insert(0, shortened(self._title(), size.columns))
        return joined(rows)

    def _title(self) -> Fragments:
        state = self._pages.state()
        if state:
            state = f"  {state}"
        title = printable(self._pages.title)
        return [("bold", title), ("class:quiet", state + self._where)]

    def _shown_rows(self) -> list[Fragments]:
        """The rows from the place on that fit on the screen."""
        number, first = self._place
        rows = [*self._rows(number)[first:]]
        for below in range(number + 1, len(self._pages.sections) + 1):
            if len(rows) >= self._room:
                break
            rows += self._rows(below)
        return rows[: self._room]

    def _last_row(self, columns: int) -> Fragments:
        """The result of a search, the work in progress, and the keys as far as they fit."""
        if self._asked is not None:
            return [("bold", f"/{fit(self._asked, columns - 2)}")]
        line: Fragments = []
        if self._found:
            line.append(("bold", self._found))
        # Only the first part: the others may name keys that do something else here.
        for style, text, *_ in self._below(columns)[:1]:
            if line:
                line.append(("", " · "))
            line.append((style, text.rstrip()))
        if line:
            left = max(1, columns - len(_ONE_KEY) - len(" · "))
            line = [*shortened(line, left), ("class:quiet", " · ")]
        room = columns - get_cwidth(fragment_list_to_text(line))
        return shortened([*line, ("class:quiet", self._keys_in(room))], columns)

    def _keys_in(self, columns: int) -> str:
        """The keys of the overlay that fit in so many columns."""
        more = ""
        if any(section.is_prompt for section in self._pages.sections):
            more += " · [ ] prompts"
        if self._has_folds:
            more += " · Enter folds, f all"
        for keys in (_FEW_KEYS + more, _FEW_KEYS, _ONE_KEY):
            named = self.named(keys + self._further())
            if len(named) <= columns:
                return named
        return _ONE_KEY

    @property
    def _where(self) -> str:
        if self._follows:
            if self._place > (0, 0):
                return "  end"
            return ""
        number, row = self._place
        part_of_section = row / max(1, len(self._rows(number)))
        part = (number + part_of_section) / max(1, len(self._pages.sections))
        return f"  {int(100 * part)} %"

    def _marked(self, row: Fragments, columns: int) -> Fragments:
        text = fragment_list_to_text(row)
        found = self._searched and self._searched.lower() in text.lower()
        if found and get_cwidth(text) <= columns:
            return bar([row], columns)[0]
        return row

    def _rows(self, number: int) -> list[Fragments]:
        """The rows of a section; after the last section, the rows that still change."""
        if number >= len(self._pages.sections):
            if number == len(self._pages.sections):
                return self._live
            return []
        section = self._pages.sections[number]
        if not section.is_folded:
            return self._whole(number)
        if section.continues:
            return []
        rows: list[Fragments] = []
        for each in self._fold_of(number):
            rows += self._whole(each)
        visible = 1
        if section.space and number > 0:
            visible = 2
        hidden = len(rows) - visible
        if hidden <= 0:
            return rows
        return [*rows[:visible], [("class:quiet", f"  … +{hidden} lines (Enter)")]]

    def _fold_of(self, number: int) -> range:
        """The sections that are folded with this one."""
        sections = self._pages.sections
        end = number + 1
        while number < len(sections) and sections[number].continues:
            number -= 1
        while end < len(sections) and sections[end].continues:
            end += 1
        return range(number, end)

    def _whole(self, number: int) -> list[Fragments]:
        """All rows of a section, as if it were not folded."""
        columns = get_app().output.get_size().columns
        if self._columns != columns:
            self._drawn = {}
            self._columns = columns
        if number not in self._drawn:
            section = self._pages.sections[number]
            rows = self._renderer.fragments(section.cell, columns)
            if section.space and number > 0:
                rows = [[], *rows]
            self._drawn[number] = rows
        return self._drawn[number]

    def _moved(self, place: tuple[int, int], by: int) -> tuple[int, int]:
        """The place `by` rows further, or the first or the last one."""
        number, row = place
        last = len(self._pages.sections)
        row += by
        while row < 0 and number > 0:
            number -= 1
            row += len(self._rows(number))
        while number < last and row >= len(self._rows(number)):
            row -= len(self._rows(number))
            number += 1
        return number, max(0, row)

    def _go(self, place: tuple[int, int]) -> None:
        self._place = place
        self._follows = False
        self.changed()

    def _scroll(self, rows: int) -> None:
        self._go(self._moved(self._place, rows))

    def _scroll_half(self, step: int) -> None:
        """Scroll by half of the screen, up (-1) or down (1)."""
        self._scroll(step * (self._room // 2))

    def _jump(self, step: int) -> None:
        """Go to the prompt before (-1) or after (1) the shown rows; after the last, to the end."""
        sections = self._pages.sections
        number = self._place[0] + step
        while 0 <= number < len(sections) and not sections[number].is_prompt:
            number += step
        if number >= len(sections):
            self._go(self._end)
        else:
            self._go((max(0, number), 0))

    @property
    def _has_folds(self) -> bool:
        # Folding the only section would hide everything.
        return len(self._pages.sections) > 1

    def _fold(self) -> None:
        if not self._has_folds:
            return
        number = min(self._place[0], len(self._pages.sections) - 1)
        is_folded = not self._pages.sections[number].is_folded
        first = self._set_folded(number, is_folded=is_folded)
        self._go((first, 0))

    def _set_folded(self, number: int, *, is_folded: bool) -> int:
        """Fold or unfold a section and those that fold with it. Returns the first of them."""
        fold = self._fold_of(number)
        for each in fold:
            self._pages.sections[each].is_folded = is_folded
        return fold[0]

    def _fold_all(self) -> None:
        """Fold all sections but the prompts; unfold them if all are folded."""
        if self._has_folds:
            others = [each for each in self._pages.sections if not each.is_prompt]
            folds = not all(each.is_folded for each in others)
            for each in others:
                each.is_folded = folds
        first = self._fold_of(self._place[0])[0]
        self._go((first, 0))

    def _ask(self, text: str | None) -> None:
        self._asked = text
        self.changed()

    def _write(self, event: KeyPressEvent) -> None:
        typed = "".join(filter(str.isprintable, event.data))
        self._ask((self._asked or "") + typed)

    def _erase(self, _event: KeyPressEvent) -> None:
        asked = self._asked or ""
        self._ask(asked[:-1])

    def search(self, text: str) -> None:
        """Go to the first row with this text, and mark all that have it."""
        self._searched = text
        self._hit = None
        self._search(1)

    def _find_asked(self) -> None:
        text = self._asked or ""
        self._asked = None
        self.search(text)

    def _search(self, step: int) -> None:
        """Go to the next row with the text (1), or to the one before (-1), around the ends."""
        self.changed()
        hits = list(self._hits())
        if not hits:
            self._found = "nothing found" if self._searched else ""
            return
        if step < 0:
            at = bisect_left(hits, self._hit or self._place) - 1
        elif self._hit is not None:
            at = bisect_right(hits, self._hit)
        else:
            # A new search may find the row that it begins at.
            at = bisect_left(hits, self._place)
        at %= len(hits)
        self._hit = hits[at]
        self._found = f"{at + 1}/{len(hits)}"
        self._set_folded(self._hit[0], is_folded=False)
        self._go(self._hit)

    def _hits(self) -> Iterator[tuple[int, int]]:
        """The places of the rows with the text."""
        if not self._searched:
            return
        for number in range(len(self._pages.sections)):
            for row, text in enumerate(self._whole(number)):
                if self._has(text):
                    yield number, row

    def _has(self, row: Fragments) -> bool:
        return self._searched.lower() in fragment_list_to_text(row).lower()


class Overlays:
    """Shows overlays; a terminal that cannot show them gets their text printed."""

    def __init__(self, ui: TerminalUI, renderer: Renderer) -> None:
        self._ui = ui
        self._renderer = renderer

    @property
    def renderer(self) -> Renderer:
        """A renderer that shows cells whole."""
        return self._renderer.whole()

    def open(self, pages: Pages) -> None:
        """Show pages without waiting until the user leaves them."""
        self._ui.start(self.show(pages))

    async def show(self, pages: Pages, further: Further | None = None) -> None:
        """Show pages until the user leaves them."""
        screen = self._ui.screen
        renderer = self.renderer
        if screen.theme.dumb:
            for section in pages.sections:
                text = renderer.text(section.cell, screen.width)
                screen.print(f"\n{text}" if section.space else text)
            return
        overlay = Overlay(pages, renderer, self._ui.status.working, further)
        await self._ui.panels.show(overlay)
        # Keys that were read so far are not for what comes next.
        await asyncio.sleep(0)
