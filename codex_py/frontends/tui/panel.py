"""What takes the composer's place for a while: a question, a line to fill in."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Generic, Protocol, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, HSplit, VSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.key_codes import ESCAPE

T = TypeVar("T")

PAUSE_S = 0.6
"""Who types faster than this is writing, and has not seen the question yet."""
_FIELD_ROWS = 6
_MARGIN = len("> 1. ")


class Panel(Protocol[T]):
    """Shown until its result is there. It has the focus, and its own keys come first."""

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


class Choice(Generic[T]):
    """A question with a few answers: arrows and Enter, a number, or an answer's own key.

    Args:
        question: or what gives it, each time it is drawn.
        default: index of the answer that Enter gives if nothing is moved.
        cancelled: the answer of Esc and Ctrl-C.
        typed_at: when the last key before this was pressed, `time.monotonic()`. What is typed on without
            a pause is not meant for a question that came up meanwhile: it is thrown away.
        look: what `v` and Ctrl-T do.
    """

    def __init__(
        self,
        question: "Fragments | Callable[[], Fragments]",
        options: Sequence[Option[T]],
        *,
        cancelled: T,
        default: int = 0,
        typed_at: float | None = None,
        look: Callable[[], None] | None = None,
    ) -> None:
        self._question = question
        self._options = options
        self._cancelled = cancelled
        self._selected = default
        self._typed_at = typed_at
        self._look = look
        self._answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        control = FormattedTextControl(
            self._text, focusable=True, key_bindings=self._keys(), show_cursor=False
        )
        self._container = HSplit([Window(control, wrap_lines=True, dont_extend_height=True)])

    @property
    def container(self) -> AnyContainer:
        return self._container

    @property
    def result(self) -> "asyncio.Future[T]":
        return self._answer

    def _text(self) -> Fragments:
        question = self._question() if callable(self._question) else self._question
        columns = get_app().output.get_size().columns
        text: Fragments = [*question, ("", "\n")]
        for n, option in enumerate(self._options):
            mark, style = ("> ", "bold") if n == self._selected else ("  ", "")
            key = f" ({option.key})" if option.key else ""
            rows = wrap(option.label + key, max(columns - _MARGIN, 1), break_on_hyphens=False)
            text.append((style, f"\n{mark}{n + 1}. " + f"\n{' ' * _MARGIN}".join(rows)))
        return text

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("up")
        @keys.add("c-p")
        def _(_event: KeyPressEvent) -> None:
            self._selected = (self._selected - 1) % len(self._options)

        @keys.add("down")
        @keys.add("c-n")
        def _(_event: KeyPressEvent) -> None:
            self._selected = (self._selected + 1) % len(self._options)

        @keys.add("enter")
        def _(_event: KeyPressEvent) -> None:
            if not self._was_writing():
                self._give(self._options[self._selected].value)

        @keys.add(ESCAPE)
        @keys.add("c-c")
        def _(_event: KeyPressEvent) -> None:
            self._give(self._cancelled)

        @keys.add("c-t")
        def _(_event: KeyPressEvent) -> None:
            if self._look is not None:
                self._look()

        @keys.add("<any>")
        def _(event: KeyPressEvent) -> None:
            if not self._was_writing():
                self._take(event.data)

        return keys

    def _take(self, typed: str) -> None:
        for n, option in enumerate(self._options):
            if typed in {str(n + 1), option.key}:
                self._give(option.value)
                return
        if typed == "v" and self._look is not None:
            self._look()

    def _was_writing(self) -> bool:
        if self._typed_at is None:
            return False
        now = time.monotonic()
        is_writing = now - self._typed_at < PAUSE_S
        self._typed_at = now if is_writing else None
        return is_writing

    def _give(self, value: T) -> None:
        if not self._answer.done():
            self._answer.set_result(value)


class Entry:
    """A `Panel` with a text to be written. Its result is the text, stripped; None if there is to be none.

    Args:
        check: says what is wrong with a text, or nothing.
    """

    def __init__(
        self,
        question: Fragments,
        *,
        check: Callable[[str], str] = lambda _: "",
        text: str = "",
    ) -> None:
        self._check = check
        self._problem = ""
        self._result: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._buffer = Buffer(multiline=True)
        self._buffer.text = text
        self._buffer.cursor_position = len(text)
        field = BufferControl(self._buffer, key_bindings=self._keys())
        self._container = HSplit(
            [
                Window(FormattedTextControl(question), wrap_lines=True, dont_extend_height=True),
                VSplit(
                    [
                        Window(FormattedTextControl("> "), width=2),
                        Window(
                            field,
                            height=Dimension(max=_FIELD_ROWS),
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
