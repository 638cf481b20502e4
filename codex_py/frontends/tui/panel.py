"""What takes the composer's place for a while: a question, a list to pick from."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import AnyContainer, HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.frontends.tui.render import Fragments

T = TypeVar("T")


class Panel(Protocol[T]):
    """Shown until its result is there. It has the focus, and its own keys come first."""

    @property
    def container(self) -> AnyContainer: ...

    @property
    def result(self) -> "asyncio.Future[T]": ...


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    label: str
    value: T
    key: str = ""
    """A single key that takes it at once."""


class Choice(Generic[T]):
    """A question with a few answers: arrows and Enter, a number, or an answer's own key.

    Args:
        default: index of the answer that Enter gives if nothing is moved.
        cancelled: the answer of Esc and Ctrl-C.
    """

    def __init__(
        self,
        question: Fragments,
        options: Sequence[Option[T]],
        *,
        cancelled: T,
        default: int = 0,
    ) -> None:
        self._question = question
        self._options = options
        self._cancelled = cancelled
        self._selected = default
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
        text = [*self._question, ("", "\n")]
        for n, option in enumerate(self._options):
            mark, style = ("> ", "bold") if n == self._selected else ("  ", "")
            key = f" ({option.key})" if option.key else ""
            text.append((style, f"\n{mark}{n + 1}. {option.label}{key}"))
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
            self._give(self._options[self._selected].value)

        @keys.add("escape")
        @keys.add("c-c")
        def _(_event: KeyPressEvent) -> None:
            self._give(self._cancelled)

        @keys.add("<any>")
        def _(event: KeyPressEvent) -> None:
            for n, option in enumerate(self._options):
                if event.data in {str(n + 1), option.key}:
                    self._give(option.value)

        return keys

    def _give(self, value: T) -> None:
        if not self._answer.done():
            self._answer.set_result(value)
