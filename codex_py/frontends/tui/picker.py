"""A list to pick from, narrowed by typing, with a preview of the selected row."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    Dimension,
    HSplit,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.fitting import (
    INDENT,
    Fragments,
    bar,
    fit,
    joined,
    panel_size,
    shortened,
    wrapped,
)
from codex_py.frontends.tui.key_codes import BURST, ESC, PASTE, bind
from codex_py.frontends.tui.menu import (
    MOST_ROWS,
    MenuOption,
    bind_arrows,
    moved,
    row_of,
    sign_of,
    window,
    with_sign,
)
from codex_py.frontends.tui.panel import Panel

T = TypeVar("T")

_HEAD_ROWS = 2
"""The title, and the field for what is searched."""
_MARGIN = len("> ")
_PREVIEW_ROWS = 8
_HINT = "type to search, {list.accept} picks, Esc leaves"
_PART_FOR_LABELS = 3
"""The part of the columns for labels. If all labels fit, the notes form a second column."""

Search: TypeAlias = "Callable[[str], Awaitable[Sequence[MenuOption[T]]]]"
"""Finds the rows for the typed text."""
Preview: TypeAlias = Callable[[T], Awaitable[str]]
"""Describes a value, in text for a terminal; lines beyond the room are cut."""
Action: TypeAlias = Callable[[T | None], Awaitable[None]]
"""Does something with a value, or with None if there is no row."""


class Picker(Panel[T | None]):
    """A list to pick from; its result is the picked value, or None.

    Args:
        rows: a list, in which every typed word has to be in the label or the note; or a search,
            which is called at once and whenever something is typed, and cancelled when more is
            typed.
        selected: the index of the row that Enter takes if the selection was not moved.
        actions: by key; each acts on the selected row, and then the search is made again.
    """

    def __init__(
        self,
        title: str,
        rows: "Sequence[MenuOption[T]] | Search[T]",
        *,
        preview: "Preview[T] | None" = None,
        selected: int = 0,
        actions: Mapping[str, Action[T]] | None = None,
    ) -> None:
        super().__init__(None)
        self.title = title
        self._source = rows
        self._preview = preview
        self._rows: Sequence[MenuOption[T]] = ()
        self._selected = selected
        self._described = ""
        """The preview of the selected row, as soon as it is there."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The tasks of the search, of the preview and of actions."""
        self._typed = Buffer(
            multiline=False,
            on_text_changed=lambda _: self._restart("search", self._find(0)),
        )
        self._bind(actions or {})
        self.container = self._layout()
        self.result.add_done_callback(lambda _: self._stop())
        self._restart("search", self._find(selected))

    def _bind(self, actions: Mapping[str, Action[T]]) -> None:
        keys = self.keys
        bind_arrows(keys, self._move, page=lambda: MOST_ROWS)
        bind(keys, "c-r", lambda _: self._move(1))
        bind(keys, "enter", lambda _: self._enter())
        bind(keys, f"{ESC} c-c", lambda _: self._leave())
        for key, action in actions.items():
            act = partial(self._act, action)
            bind(keys, key, lambda _, act=act: self._begin(act()), eager=True)
        bind(keys, f"{PASTE} {BURST}", lambda event: self._insert(event.data))
        # The sign of the search is on the screen already: a user who presses it wants to search.
        bind(keys, "/", lambda _: None, Condition(lambda: not self._typed.text))

    def _layout(self) -> HSplit:
        """The title, the field after its sign, the list, and the preview if there is one."""
        hint = AfterInput(self._hint, style="class:quiet")
        field = BufferControl(self._typed, [hint], key_bindings=self.keys)
        sign = Window(FormattedTextControl("  / "), width=4)
        found = FormattedTextControl(self._list)
        parts: list[AnyContainer] = [
            Window(FormattedTextControl(self._head), height=1),
            VSplit([sign, Window(field, height=1)]),
            Window(found, height=self._height, dont_extend_height=True),
        ]
        if self._preview is not None:
            preview = FormattedTextControl(lambda: [("class:quiet", self._described)])
            parts.append(
                Window(preview, height=self._preview_height, dont_extend_height=True)
            )
        return HSplit(parts)

    def _restart(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do this work as the task of this name, and cancel the one before."""
        if name in self._tasks:
            self._tasks[name].cancel()
        self._tasks[name] = asyncio.ensure_future(work)

    async def _find(self, selected: int) -> None:
        typed = self._typed.text
        if callable(self._source):
            self._rows = await self._source(typed)
        else:
            words = typed.lower().split()
            self._rows = [
                row
                for row in self._source
                if all(word in f"{row.label} {row.told}".lower() for word in words)
            ]
        self._select(min(selected, len(self._rows) - 1))

    async def _act(self, action: Action[T]) -> None:
        value = None
        if self._rows:
            value = self._rows[self._selected].value
        await action(value)
        self._restart("search", self._find(self._selected))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start an action. Unlike a search, it is not cancelled by the next key."""
        self._restart(f"action {len(self._tasks)}", work)

    def _select(self, index: int) -> None:
        self._selected = max(0, index)
        self._described = ""
        self._restart("preview", self._describe())
        self.changed()

    async def _describe(self) -> None:
        if self._preview is not None and self._rows:
            self._described = await self._preview(self._rows[self._selected].value)
            self.changed()

    def _stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _insert(self, text: str) -> None:
        """Write a pasted text into the field, which has one line."""
        if not self._typed.text:
            text = text.removeprefix("/")
        self._typed.insert_text(re.sub(r"\s+", " ", text))

    def _enter(self) -> None:
        if self._rows:
            self.give(self._rows[self._selected].value)

    def _leave(self) -> None:
        # A text that is found nowhere was meant for the prompt.
        if not self._rows and self._typed.text:
            self.postpone(self._typed.text)
        self.give(None)

    def _move(self, rows: int) -> None:
        if self._rows:
            self._select(moved(self._selected, rows, len(self._rows)))

    def _hint(self) -> str:
        if self._typed.text:
            return ""
        return fit(self.named(_HINT), panel_size().columns - 5)

    def _head(self) -> Fragments:
        count = len(self._rows)
        place = ""
        if count > self._height().max:
            place = f"  {self._selected + 1}/{count}"
        title: Fragments = [("bold", INDENT + self.title), ("class:quiet", place)]
        return shortened(title, panel_size().columns)

    def _list(self) -> Fragments:
        if not self._rows:
            return [("class:quiet", "  nothing found")]
        most = self._height().max
        shown = window(self._selected, len(self._rows), most)
        spare = most - len(shown)
        columns = panel_size().columns
        rows: list[Fragments] = []
        for index in shown:
            option = self._rows[index]
            if index == self._selected:
                lines = self._lines(option, columns - _MARGIN, spare + 1)
                rows += bar(with_sign(sign_of(True), lines), columns)
            else:
                lines = self._lines(option, columns - _MARGIN, 1)
                rows += with_sign(sign_of(False), lines)
        return joined(rows)

    def _lines(
        self,
        option: MenuOption[T],
        columns: int,
        most: int,
    ) -> list[Fragments]:
        """The label and the note of a row; on one line, cut, if they need more than `most`."""
        widest = max(get_cwidth(each.label) for each in self._rows) + 2
        if widest <= columns // _PART_FOR_LABELS:
            label = option.label + " " * (widest - get_cwidth(option.label))
            note: Fragments = [("class:quiet", option.told)]
            text: Fragments = [("", label), *note]
            lines = with_sign(label, wrapped(note, columns - widest))
        else:
            text = row_of(option, option is self._rows[self._selected])
            lines = wrapped(text, columns)
        if len(lines) > most:
            return [shortened(text, columns)]
        return lines

    def _height(self) -> Dimension:
        left = panel_size().rows - _HEAD_ROWS
        return Dimension(max=max(1, min(MOST_ROWS, left)))

    def _preview_height(self) -> Dimension:
        list_rows = min(len(self._rows), self._height().max)
        left = panel_size().rows - _HEAD_ROWS - list_rows
        return Dimension(max=max(0, min(_PREVIEW_ROWS, left)))
