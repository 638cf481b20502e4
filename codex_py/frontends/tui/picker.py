"""A list to pick from, narrowed by typing, with a look into what is selected."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, HSplit, VSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.fitting import joined, panel_rows, wrapped
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.key_codes import ESCAPE

T = TypeVar("T")

_ROWS = 8
_HEAD_ROWS = 2
_MARGIN = len("> ")
_PREVIEW_ROWS = 8
_HINT = "type to search, Enter picks, Esc leaves"


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """Texts are for a terminal: nothing in them steers it, and the label has no newline."""

    label: str
    value: T
    note: str = ""
    """Stands behind the label, dimmed."""


Search: TypeAlias = "Callable[[str], Awaitable[Sequence[Row[T]]]]"
"""What there is to pick from, given what has been typed."""


def rows_with(rows: Sequence[Row[T]]) -> "Search[T]":
    """A search in a list that does not change: every word has to be in the label or the note."""

    async def search(typed: str) -> Sequence[Row[T]]:
        words = typed.lower().split()
        return [
            row for row in rows if all(word in f"{row.label} {row.note}".lower() for word in words)
        ]

    return search


class Picker(Generic[T]):
    """A `Panel`. Its result is the value that was picked; None if none was.

    Args:
        search: is asked at once and whenever something is typed; a question that is overtaken is
            cancelled.
        preview: what is known of a value, for a terminal; lines beyond the room are cut.
        changed: is told to draw.
        selected: index of the row that Enter takes if nothing is moved.
    """

    hint = ""

    def __init__(
        self,
        title: str,
        search: "Search[T]",
        *,
        changed: Callable[[], None],
        preview: "Callable[[T], Awaitable[str]] | None" = None,
        selected: int = 0,
    ) -> None:
        self._search = search
        self._preview = preview
        self._changed = changed
        self._rows: Sequence[Row[T]] = ()
        self._selected = selected
        self._seen = ""
        self._picked: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._searching: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._typed = Buffer(multiline=False, on_text_changed=lambda _: self._ask(0))
        hint = AfterInput(self._hint, style="class:quiet")
        control = BufferControl(self._typed, [hint], key_bindings=self._keys())
        parts: list[AnyContainer] = [
            Window(FormattedTextControl(lambda: [("bold", title), self._place()]), height=1),
            VSplit([Window(FormattedTextControl("  / "), width=4), Window(control, height=1)]),
            Window(
                FormattedTextControl(self._list),
                height=self._height,
                dont_extend_height=True,
            ),
        ]
        if preview is not None:
            look = FormattedTextControl(lambda: [("class:quiet", self._seen)])
            parts.append(Window(look, height=self._preview_height, dont_extend_height=True))
        self._container = HSplit(parts)
        self._picked.add_done_callback(lambda _: self._stop())
        self._ask(selected)

    @property
    def container(self) -> AnyContainer:
        return self._container

    @property
    def result(self) -> "asyncio.Future[T | None]":
        return self._picked

    def _ask(self, selected: int) -> None:
        if self._searching is not None:
            self._searching.cancel()
        self._searching = asyncio.ensure_future(self._find(self._typed.text, selected))

    async def _find(self, typed: str, selected: int) -> None:
        self._rows = await self._search(typed)
        self._select(min(selected, len(self._rows) - 1))

    def _select(self, index: int) -> None:
        self._selected = max(0, index)
        if self._looking is not None:
            self._looking.cancel()
        self._seen = ""
        if self._preview is not None and self._rows:
            self._looking = asyncio.ensure_future(
                self._look(self._preview, self._rows[self._selected].value)
            )
        self._changed()

    async def _look(self, preview: "Callable[[T], Awaitable[str]]", value: T) -> None:
        self._seen = await preview(value)
        self._changed()

    def _stop(self) -> None:
        for task in (self._searching, self._looking):
            if task is not None:
                task.cancel()

    def _hint(self) -> str:
        return "" if self._typed.text else cut(_HINT, get_app().output.get_size().columns - 5)

    def _place(self) -> tuple[str, str]:
        """Which row of how many is selected, if they are not all seen."""
        count = len(self._rows)
        is_cut = count > self._height().max
        return ("class:quiet", f"  {self._selected + 1} of {count}" if is_cut else "")

    def _list(self) -> Fragments:
        if not self._rows:
            return [("class:quiet", "  nothing found")]
        most = self._height().max
        first = max(0, min(self._selected - most // 2, len(self._rows) - most))
        shown = self._rows[first : first + most]
        spare = most - len(shown)
        columns = get_app().output.get_size().columns - _MARGIN
        rows: list[Fragments] = []
        for index, row in enumerate(shown, first):
            is_selected = index == self._selected
            text: Fragments = [
                ("bold" if is_selected else "", row.label),
                ("class:quiet", f"  {row.note}" if row.note else ""),
            ]
            lines = wrapped(text, columns)
            if len(lines) > 1 and not (is_selected and len(lines) <= spare + 1):
                lines = [_cut_row(text, columns)]
            rows += [
                [("", "  " if n or not is_selected else "> "), *line]
                for n, line in enumerate(lines)
            ]
        return joined(rows)

    def _height(self) -> Dimension:
        return Dimension(max=max(1, min(_ROWS, _room() - _HEAD_ROWS)))

    def _preview_height(self) -> Dimension:
        left = _room() - _HEAD_ROWS - min(len(self._rows), self._height().max)
        return Dimension(max=max(0, min(_PREVIEW_ROWS, left)))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("up")
        @keys.add("c-p")
        def _(_event: KeyPressEvent) -> None:
            self._move(-1)

        @keys.add("down")
        @keys.add("c-r")
        @keys.add("c-n")
        def _(_event: KeyPressEvent) -> None:
            self._move(1)

        @keys.add("pageup")
        def _(_event: KeyPressEvent) -> None:
            self._move(-_ROWS)

        @keys.add("pagedown")
        def _(_event: KeyPressEvent) -> None:
            self._move(_ROWS)

        @keys.add("enter")
        def _(_event: KeyPressEvent) -> None:
            if self._rows and not self._picked.done():
                self._picked.set_result(self._rows[self._selected].value)

        @keys.add(ESCAPE)
        @keys.add("c-c")
        def _(_event: KeyPressEvent) -> None:
            if not self._picked.done():
                self._picked.set_result(None)

        return keys

    def _move(self, rows: int) -> None:
        if self._rows:
            last = len(self._rows) - 1
            # By one row from an end to the other, as in a question.
            is_around = abs(rows) == 1 and not 0 <= self._selected + rows <= last
            wanted = (self._selected + rows) % (last + 1) if is_around else self._selected + rows
            self._select(max(0, min(wanted, last)))


def _room() -> int:
    return panel_rows(get_app().output.get_size().rows)


def _cut_row(text: Fragments, columns: int) -> Fragments:
    """The beginning of a row, whose end shows that there is more."""
    row: Fragments = []
    for style, part, *_ in text:
        room = columns - sum(get_cwidth(shown[1]) for shown in row)
        if get_cwidth(part) > room:
            # Blanks are between the parts.
            blanks = part[: len(part) - len(part.lstrip())]
            return [*row, (style, blanks + cut(part, room - len(blanks)))]
        row.append((style, part))
    return row


def cut(text: str, columns: int) -> str:
    """The text in so many columns, on one line, with an ellipsis if it is longer."""
    line = " ".join(text.split())
    if get_cwidth(line) <= columns:
        return line
    kept = ""
    for character in line:
        if get_cwidth(kept + character) > columns - 1:
            break
        kept += character
    return f"{kept}…"
