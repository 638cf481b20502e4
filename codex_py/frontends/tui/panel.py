"""What takes the composer's place for a while: a question, a line to fill in."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Generic, Protocol, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import split_lines
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, HSplit, VSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.frontends.tui.fitting import LOW, both_ends, ends_of, joined, panel_rows, wrapped
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.key_codes import ESCAPE

T = TypeVar("T")

_WORD_S = 0.3
"""Between the letters of a word that is being typed there is less."""
_FIELD_ROWS = 6
_MARGIN = len("> 1. ")


class Panel(Protocol[T]):
    """Shown until its result is there. It has the focus, and its own keys come first."""

    hint: str
    """What its keys are, for the line below; empty if it says so itself."""

    @property
    def container(self) -> AnyContainer: ...

    @property
    def result(self) -> "asyncio.Future[T]": ...


# No slots: in Python 3.11, `Option[X](…)` fails on a class with both these and a parent that is generic.
@dataclass(frozen=True)
class Option(Generic[T]):
    label: str
    value: T
    key: str = ""
    """A single key that takes it at once."""


class Postponed(Exception):
    """The user writes on, and the question waits: it is the result of a `Choice` that was put off."""


class Choice(Generic[T]):
    """A question with a few answers: arrows and Enter, a number, or an answer's own key.

    A key answers after a moment in which nothing more is typed, for it could begin a word.

    Args:
        question: or what gives it for so many rows, each time it is drawn.
        default: index of the answer that Enter gives if nothing is moved.
        cancelled: the answer of Esc and Ctrl-C.
        put_off: is given text that answers nothing; the question is closed then, its result `Postponed`.
            Without it, such text does nothing.
        look: what `v` and Ctrl-T do.
    """

    hint = "Enter or a key answers; other text goes to your prompt"

    def __init__(
        self,
        question: "Fragments | Callable[[int], Fragments]",
        options: Sequence[Option[T]],
        *,
        cancelled: T,
        default: int = 0,
        put_off: Callable[[str], None] | None = None,
        look: Callable[[], None] | None = None,
    ) -> None:
        self._question = question
        self._options = options
        self._cancelled = cancelled
        self._default = self._selected = default
        self._put_off = put_off
        self._look = look
        self._typed = ""
        """The key that answers in a moment."""
        self._timer: asyncio.TimerHandle | None = None
        self._answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        control = FormattedTextControl(
            self._text, focusable=True, key_bindings=self._keys(), show_cursor=False
        )
        self._container = HSplit([Window(control, wrap_lines=True, dont_extend_height=True)])
        if put_off is None:
            self.hint = ""

    @property
    def container(self) -> AnyContainer:
        return self._container

    @property
    def result(self) -> "asyncio.Future[T]":
        return self._answer

    def _text(self) -> Fragments:
        """The answers, and as much of the question as there is room for beside them."""
        size = get_app().output.get_size()
        room = panel_rows(size.rows)
        answers = self._answers(size.columns, room)
        blank: list[Fragments] = [] if size.rows < LOW else [[]]
        left = max(0, room - len(answers) - len(blank))
        if callable(self._question):
            question = list(split_lines(self._question(left))) if left else []
        else:
            question = ends_of(wrapped(self._question, size.columns), left, _left_out)
        return joined([*question, *blank, *answers])

    def _answers(self, columns: int, room: int) -> list[Fragments]:
        """One row each where there is little room, and then as many as there is room for."""
        width = max(1, columns - _MARGIN)
        text = [wrap(o.label + _key(o), width, break_on_hyphens=False) for o in self._options]
        if sum(map(len, text)) > room // 2:
            text = [[both_ends(o.label, width - len(_key(o))) + _key(o)] for o in self._options]
        shown = range(len(text))
        if len(text) > (most := max(1, room - 2)):
            first = max(0, min(self._selected - most // 2, len(text) - most))
            shown = range(first, first + most)
        return [
            self._row(n, line, is_first=not at) for n in shown for at, line in enumerate(text[n])
        ]

    def _row(self, n: int, line: str, *, is_first: bool) -> Fragments:
        is_selected = n == self._selected
        margin = f"{'>' if is_selected else ' '} {n + 1}. " if is_first else " " * _MARGIN
        return [("bold" if is_selected else "", margin + line)]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("up")
        @keys.add("c-p")
        def _(_event: KeyPressEvent) -> None:
            self._select(self._selected - 1)

        @keys.add("down")
        @keys.add("c-n")
        def _(_event: KeyPressEvent) -> None:
            self._select(self._selected + 1)

        @keys.add("enter")
        def _(_event: KeyPressEvent) -> None:
            self._give(self._options[self._selected].value)

        @keys.add(ESCAPE)
        @keys.add("c-c")
        def _(_event: KeyPressEvent) -> None:
            self._give(self._cancelled)

        @keys.add("c-t")
        def _(_event: KeyPressEvent) -> None:
            self._show_all()

        @keys.add("<any>")
        def _(event: KeyPressEvent) -> None:
            if event.data.isprintable():
                self._take(event.data)

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self._write(self._typed + event.data)

        return keys

    def _select(self, n: int) -> None:
        self._settle(n % len(self._options), "")

    def _take(self, typed: str) -> None:
        found = [n for n, o in enumerate(self._options) if typed in {str(n + 1), o.key}]
        if self._typed or not (found or (typed == "v" and self._look)):
            self._write(self._typed + typed)
        elif found:
            self._settle(found[0], typed)
            self._timer = asyncio.get_running_loop().call_later(
                _WORD_S, self._give, self._options[found[0]].value
            )
        else:
            self._settle(self._selected, typed)
            self._timer = asyncio.get_running_loop().call_later(_WORD_S, self._show_all)

    def _settle(self, selected: int, typed: str) -> None:
        """Select an answer; no key that was typed before answers any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._selected, self._typed = selected, typed

    def _write(self, text: str) -> None:
        self._settle(self._default, "")
        if self._put_off is not None and text and not self._answer.done():
            self._put_off(text)
            self._answer.set_exception(Postponed())

    def _show_all(self) -> None:
        self._typed = ""
        if self._look is not None:
            self._look()

    def _give(self, value: T) -> None:
        self._settle(self._selected, "")
        if not self._answer.done():
            self._answer.set_result(value)


def _key(option: Option[Any]) -> str:
    return f" ({option.key})" if option.key else ""


def _left_out(rows: int) -> Fragments:
    return [("class:quiet", f"… +{rows} lines")]


class Entry:
    """A `Panel` with a text to be written. Its result is the text, stripped; None if there is to be none.

    Args:
        check: says what is wrong with a text, or nothing.
    """

    hint = "Enter sends, Ctrl-J begins a new line, Esc goes back"

    def __init__(
        self,
        question: Fragments,
        *,
        check: Callable[[str], str] = lambda _: "",
        text: str = "",
    ) -> None:
        self._question = question
        self._check = check
        self._problem = ""
        self._result: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._buffer = Buffer(multiline=True)
        self._buffer.text = text
        self._buffer.cursor_position = len(text)
        field = BufferControl(self._buffer, key_bindings=self._keys())
        self._container = HSplit(
            [
                Window(FormattedTextControl(self._text), wrap_lines=True, dont_extend_height=True),
                VSplit(
                    [
                        Window(FormattedTextControl("> "), width=2),
                        Window(
                            field,
                            height=self._field_rows,
                            wrap_lines=True,
                            dont_extend_height=True,
                        ),
                    ]
                ),
                Window(FormattedTextControl(lambda: [("class:warning", self._problem)]), height=1),
            ]
        )

    @property
    def container(self) -> AnyContainer:
        return self._container

    @property
    def result(self) -> "asyncio.Future[str | None]":
        return self._result

    def _text(self) -> Fragments:
        size = get_app().output.get_size()
        room = panel_rows(size.rows) - self._field_rows().max - 1
        return joined(ends_of(wrapped(self._question, size.columns), max(1, room), _left_out))

    def _field_rows(self) -> Dimension:
        is_low = get_app().output.get_size().rows < LOW
        return Dimension(min=1, max=2 if is_low else _FIELD_ROWS)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(_event: KeyPressEvent) -> None:
            text = self._buffer.text.strip()
            self._problem = self._check(text)
            if not self._problem:
                self._give(text)

        @keys.add("c-j")
        def _(_event: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self._buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

        @keys.add(ESCAPE)
        @keys.add("c-c")
        def _(_event: KeyPressEvent) -> None:
            self._give(None)

        return keys

    def _give(self, text: str | None) -> None:
        if not self._result.done():
            self._result.set_result(text)
