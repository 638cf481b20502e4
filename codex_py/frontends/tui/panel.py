"""Panels, which take the composer's place for a while: a question, a line to fill in."""

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, FilterOrBool
from prompt_toolkit.formatted_text import split_lines
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    Dimension,
    HSplit,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.processors import PasswordProcessor, Processor

from codex_py.frontends.tui.fitting import (
    INDENT,
    LOW,
    Fragments,
    bar,
    ends_of,
    indented,
    joined,
    panel_size,
    wrapped,
)
from codex_py.frontends.tui.key_codes import BURST, ESC, PASTE, bind
from codex_py.frontends.tui.keymap import answers
from codex_py.frontends.tui.menu import (
    MenuOption,
    bind_arrows,
    moved_within,
    row_of,
    sign_of,
    window,
    with_sign,
)

T = TypeVar("T")

_WORD_S = 0.3
"""Seconds; the letters of a word that is being typed come faster."""
_SLOW_WORD_S = 0.8
"""A longer wait for slow typists, unless the agent asks and the answer holds only once."""
_UNREAD_S = 0.3
"""Seconds for which nobody can have read a question that has just been shown."""
_REPEATS_S = 0.15
"""Seconds within which a key that is held down comes again."""
_BY_ARROWS = "Only arrows and {list.accept} answer; text goes to your prompt"
SHOWS_ALL = " ({approval.open_fullscreen} shows all)"
ROOMY = 9
"""Rows for a question. With fewer, no row is left blank."""
_FIELD_ROWS = 6
_MARGIN = len("> 1. ")
"""The columns before an answer that has a number."""


class Postponed(Exception):
    """Raised if a panel is put off because the user goes on writing.

    A question of the agent waits; a command ends.
    """


class Hold:
    """Keeps keys from a panel that replaces another one, until the user can have read it.

    A key that is pressed twice, or held down, was meant for the panel before.
    """

    def __init__(self) -> None:
        self._until = 0.0
        """The time when it ends, by `time.monotonic()`."""
        self._key = ""
        """The key that closed the panel before; empty if none did, or it was pressed anew."""

    @property
    def left_s(self) -> float:
        """The seconds until it ends; 0 or less if it has ended."""
        return self._until - time.monotonic()

    @property
    def is_on(self) -> bool:
        return self.left_s > 0

    @property
    def is_drawn(self) -> bool:
        """True if the panel has been drawn since the hold began."""
        return self._until < math.inf

    def begin(self, key: str) -> None:
        """Hold all keys until some time after the panel was drawn.

        `key`: the key that closed the panel before; empty if none did.
        """
        self._until = math.inf
        self._key = key

    def start_reading(self) -> None:
        """Start the time for reading, because the panel has been drawn, or a key repeats."""
        self._until = time.monotonic() + _UNREAD_S

    def end(self) -> None:
        """Take every key from now on."""
        self._until = 0.0
        self._key = ""

    def is_repeated(self, event: KeyPressEvent) -> bool:
        """True for the key that closed the panel before."""
        return self._key != "" and name_of(event) == self._key

    def swallows(self, event: KeyPressEvent) -> bool:
        """True if a key must do nothing. A key that repeats prolongs the hold."""
        if not self.is_on:
            return False
        if self.is_drawn and self.is_repeated(event):
            self.start_reading()
        return True


def name_of(event: KeyPressEvent) -> str:
    """The name of the last key of an event."""
    return str(event.key_sequence[-1].key)


class Panel(Generic[T]):
    """A panel, shown until it has its result, which is `cancelled` on Esc.

    It has the focus, and its own keys come first.

    Attributes:
        hint: the panel's keys, for the line below; empty if the panel shows them itself.
        by_letter: typed text may answer, not only the arrows and Enter.
        is_asked: the agent asks, not a command of the user.
        is_question: the panel takes no answer before the user can have read it.
        hold: keeps early keys from a question.
        last_key: the name of the last key that the panel has taken.
        lasting: letters that answer for longer than this question.
        changed: called when there is something new to draw.
        postpone: closes the panel; the text goes to the prompt.
        covers: the panel takes the whole screen.
        named: replaces the actions in a text by their keys.
        contexts: the contexts of `tui.keymap` in which the panel reads keys.
    """

    hint = ""
    by_letter = True
    is_asked = False
    is_question = False
    covers = False
    last_key = ""
    contexts: Sequence[str] = ("list",)
    named: Callable[[str], str]
    lasting: Set[str] = frozenset()
    container: AnyContainer
    changed: Callable[[], None]
    postpone: Callable[[str], None]

    def __init__(self, cancelled: T) -> None:
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.keys = KeyBindings()
        self.hold = Hold()
        self._letter = ""
        """The typed text that takes effect in a moment."""
        self._timer: asyncio.TimerHandle | None = None
        self._pressed_again: Callable[[], object] | None = None
        """The action of the key that closed the panel before, until it is known not to repeat."""
        self.bind(f"{ESC} c-c", lambda _: self.give(cancelled))
        is_empty = Condition(lambda: not get_app().current_buffer.text)
        self.bind("c-d", lambda _: self.give(cancelled), is_empty)

    def bind(
        self,
        keys: str,
        action: Callable[[KeyPressEvent], object],
        filter: FilterOrBool = True,
    ) -> None:
        """Bind keys to an action that no early key does. See `Hold` and `key_codes.bind`."""

        def act(event: KeyPressEvent) -> None:
            if self.hold.swallows(event):
                return
            self.last_key = name_of(event)
            if self.hold.is_repeated(event):
                self._press_again(partial(action, event))
                return
            self._act_again()
            action(event)

        bind(self.keys, keys, act, filter)

    def _press_again(self, action: Callable[[], object]) -> None:
        """Do the action of the key that closed the panel before, unless that key is held down."""
        if self._pressed_again is not None:
            self._pressed_again = None
            self.hold.start_reading()
            self.changed()
            return
        self._pressed_again = action
        loop = asyncio.get_running_loop()
        loop.call_later(_REPEATS_S, self._act_again, action)

    def _act_again(self, action: Callable[[], object] | None = None) -> None:
        """Do the action that waits, if it is this one. None: whichever it is."""
        waiting = self._pressed_again
        is_other = action is not None and action is not waiting
        if waiting is None or is_other or self.result.done():
            return
        self._pressed_again = None
        self.hold.end()
        waiting()

    def give(self, value: T) -> None:
        """Set the result, unless the panel has one."""
        self.forget_letter()
        if not self.result.done():
            self.result.set_result(value)

    def take_text(self, meaning: Callable[[str], Callable[[], None] | None]) -> None:
        """Bind letters and numbers to their meanings.

        Each takes effect after a moment in which nothing more is typed, because it could begin a
        word. Text without a meaning closes the panel and goes to the prompt.

        Args:
            meaning: returns the action of a text; None if it has none.
        """

        def take(text: str) -> None:
            act = None
            if self.by_letter and not self.result.done():
                act = meaning(text)
            if act is None:
                self.write(text)
            else:
                self._act_soon(text, act)

        def press(event: KeyPressEvent) -> None:
            # Keys that are not text have no data: Shift-Tab, Home, F5.
            if event.data and event.data.isprintable():
                take(self._letter + event.data)

        def paste(event: KeyPressEvent) -> None:
            self.write(self._letter + event.data)

        def burst(event: KeyPressEvent) -> None:
            self.take_burst(self._letter + event.data, take)

        self.bind("<any>", press)
        # Nobody pastes by accident: a paste is for the prompt at any time.
        bind(self.keys, PASTE, paste)
        self.bind(BURST, burst)

    def _act_soon(self, text: str, act: Callable[[], None]) -> None:
        """Act on a typed text after a moment, unless more is typed."""

        def take_effect() -> None:
            self.forget_letter()
            act()

        is_quick = self.is_asked and text not in self.lasting
        wait_s = _WORD_S if is_quick else _SLOW_WORD_S
        self.forget_letter()
        self._letter = text
        self._timer = asyncio.get_running_loop().call_later(wait_s, take_effect)

    def take_burst(self, text: str, take: Callable[[str], None]) -> None:  # noqa: ARG002
        """Handle a text that came at once, and so is for the prompt.

        A subclass may call `take` instead, which handles the text as if it were typed.
        """
        self.write(text)

    def forget_letter(self) -> None:
        """Cancel the effect of a letter that was typed before."""
        self._letter = ""
        if self._timer is not None:
            self._timer.cancel()

    def write(self, text: str) -> None:
        """Close the panel and put the text into the prompt."""
        if not text:
            return
        self.forget_letter()
        self.postpone(text)
        # The key before, in the same read, may have been the answer.
        if not self.result.done():
            self.result.set_exception(Postponed())

    def refuse_letters(self) -> None:
        """From now on, only arrows and Enter answer."""
        self.by_letter = False
        if self.hint:
            self.hint = _BY_ARROWS

    def contain(self, text: Callable[[], Fragments], *, wraps: bool = False) -> None:
        """Make this text the whole content of the panel."""
        control = FormattedTextControl(
            text, focusable=True, key_bindings=self.keys, show_cursor=False
        )
        self.container = HSplit(
            [Window(control, wrap_lines=wraps, dont_extend_height=True)]
        )


class Choice(Panel[T]):
    """A question with a few answers: arrows and Enter, a number, or an answer's own key.

    Args:
        question: the text, or a function that makes it for a number of rows, at each drawing.
        default: the index of the answer that Enter gives if the selection was not moved.
        cancelled: the answer of Esc and Ctrl-C.
        others: the answers of further keys.
        show_all: shows the question in full, on `v` and Ctrl-T.
    """

    hint = "{list.accept} or a key answers; other text goes to your prompt"
    contexts = ("approval", "list")
    is_question = True

    def __init__(
        self,
        question: "Fragments | Callable[[int], Fragments]",
        options: Sequence[MenuOption[T]],
        *,
        cancelled: T,
        default: int = 0,
        others: Mapping[str, T] | None = None,
        hint: str = "",
        show_all: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(cancelled)
        self.hint = hint or self.hint
        self._question = question
        self._options = options
        self.lasting = _lasting_keys(options)
        self._selected = default
        self._show_all = show_all
        bind_arrows(self.keys, self._move)
        self.bind("enter", lambda _: self._enter())
        for key, value in (others or {}).items():
            self.bind(key, lambda _, value=value: self.give(value))
        if show_all is not None:
            self.bind("c-t", lambda _: show_all())
        self.take_text(self._meaning)
        self.contain(self._text, wraps=True)

    def _text(self) -> Fragments:
        room, columns = panel_size()
        answers = self._answers(columns, room)
        free = max(0, room - len(answers))
        left = free
        if free > ROOMY:
            # A blank row stands between the question and the answers.
            left -= 1
        question = self._question_rows(left, columns - len(INDENT))
        rows = indented(question)
        if len(question) < free and not _is_low():
            rows.append([])
        return joined(rows + answers)

    def _question_rows(self, room: int, columns: int) -> Sequence[Fragments]:
        if not callable(self._question):
            more = self.named(SHOWS_ALL) if self._show_all else ""
            return ends_of(wrapped(self._question, columns), room, more)
        if room < 1:
            return []
        return list(split_lines(self._question(room)))

    def _answers(self, columns: int, room: int) -> list[Fragments]:
        """The rows of the answers; on a low screen one row each, and as many as fit."""
        indent = _MARGIN if self.by_letter else len("> ")
        width = max(1, columns - indent)
        options = [
            replace(option, key=self._shown_key(option.key)) for option in self._options
        ]
        answers: list[list[Fragments]] = []
        for n, option in enumerate(options):
            answers.append(wrapped(row_of(option, n == self._selected), width))
        if sum(map(len, answers)) > room // 2:
            for n, option in enumerate(options):
                answers[n] = [row_of(option, n == self._selected, width)]
        rows: list[Fragments] = []
        for n in window(self._selected, len(answers), max(1, room - 2)):
            is_selected = n == self._selected
            sign = f"{sign_of(is_selected)}{n + 1}. "[:indent]
            lines = with_sign(sign, answers[n])
            if is_selected:
                rows += bar(lines, columns)
            else:
                rows += lines
        return rows

    def _shown_key(self, key: str) -> str:
        """The user's key for an answer; empty if letters are refused."""
        if not self.by_letter:
            return ""
        return self.named(answers().get(key, key))

    def _enter(self) -> None:
        self.give(self._options[self._selected].value)

    def _move(self, rows: int) -> None:
        if self.hold.is_on:
            return
        self.forget_letter()
        self._selected = moved_within(self._selected, rows, len(self._options))

    def _meaning(self, typed: str) -> Callable[[], None] | None:
        for n, option in enumerate(self._options):
            if typed in {str(n + 1), option.key}:
                self._selected = n
                return partial(self.give, option.value)
        if typed == "v":
            return self._show_all
        return None


def _lasting_keys(options: Sequence[MenuOption[Any]]) -> set[str]:
    """The numbers and letters of the answers that apply to more than the question."""
    keys: set[str] = set()
    for n, option in enumerate(options, 1):
        if option.lasts:
            keys |= {str(n), option.key}
    return keys


def yes_or_no(
    question: Fragments,
    yes: str,
    no: str,
    *,
    by_letter: bool = True,
    show_all: Callable[[], None] | None = None,
) -> Choice[bool]:
    """A question whose default is no."""
    answers = [MenuOption(yes, True, "y", lasts=True), MenuOption(no, False, "n")]
    panel = Choice(question, answers, cancelled=False, default=1, show_all=show_all)
    if not by_letter:
        panel.refuse_letters()
    return panel


def field_of(text: str = "") -> Buffer:
    """The field of a `TextField`, with a text to begin with."""
    return Buffer(document=Document(text), multiline=True)


class TextField(Panel[str | None]):
    """A field for a text that `check` accepts. Its result is stripped; None if the user leaves it.

    Args:
        check: returns what is wrong with a text; empty if nothing is.
        field: keeps the text, also after Esc, and when the same question is asked again.
        is_hidden: asterisks are shown.
    """

    contexts = ("editor",)
    is_question = True
    hint = "Enter sends, {editor.insert_newline} begins a new line, Esc goes back"

    def __init__(
        self,
        question: Fragments,
        *,
        check: Callable[[str], str] = lambda _: "",
        field: Buffer,
        is_hidden: bool = False,
    ) -> None:
        super().__init__(None)
        if is_hidden:
            self.hint = "Enter keeps it, Esc goes back"
        self._question = question
        self._check = check
        self._problem = ""
        self._field = field
        self.bind("enter", lambda _: self._enter())
        self.bind("c-j", lambda _: field.insert_text("\n"))
        bind(self.keys, f"{PASTE} {BURST}", self._insert)
        is_held = Condition(lambda: self.hold.is_on)
        bind(self.keys, "<any>", self._take_early_text, is_held)
        self.container = self._layout(is_hidden=is_hidden)

    def _layout(self, *, is_hidden: bool) -> HSplit:
        """The question, the field after its sign, and what is wrong with its text."""
        question = Window(
            FormattedTextControl(self._text), wrap_lines=True, dont_extend_height=True
        )
        processors: list[Processor] = []
        if is_hidden:
            processors = [PasswordProcessor()]
        control = BufferControl(self._field, processors, key_bindings=self.keys)
        field = Window(
            control, height=self._field_rows, wrap_lines=True, dont_extend_height=True
        )
        sign = Window(FormattedTextControl("> "), width=2)
        problem = FormattedTextControl(lambda: joined(self._problem_rows()))
        below = Window(problem, height=lambda: len(self._problem_rows()))
        return HSplit([question, VSplit([sign, field]), below])

    def _problem_rows(self) -> list[Fragments]:
        """The rows of what is wrong with the text; one blank row while nothing is."""
        if not self._problem:
            return [[]]
        rows, columns = panel_size()
        text: Fragments = [("class:warning", self._problem)]
        lines = indented(wrapped(text, columns - len(INDENT)))
        # A row of the question and one of the field stay on the screen.
        return list(ends_of(lines, max(1, rows - 2)))

    def _take_early_text(self, event: KeyPressEvent) -> None:
        """Write a text that comes during the hold, unless its key only repeats.

        Whoever writes into the field has seen it, so the hold ends.
        """
        is_text = event.data.isprintable() and event.data
        if self.hold.is_repeated(event):
            self.hold.swallows(event)
        elif is_text:
            self._insert(event)

    def _insert(self, event: KeyPressEvent) -> None:
        self.hold.end()
        self._field.insert_text(re.sub("\r\n?", "\n", event.data))

    def _enter(self) -> None:
        text = self._field.text.strip()
        self._problem = self._check(text)
        if not self._problem:
            self.give(text)

    def _text(self) -> Fragments:
        rows, columns = panel_size()
        room = rows - self._field_rows().max - len(self._problem_rows())
        lines = wrapped(self._question, columns - len(INDENT))
        return joined(indented(ends_of(lines, max(1, room))))

    def _field_rows(self) -> Dimension:
        if _is_low():
            return Dimension(min=1, max=2)
        return Dimension(min=1, max=_FIELD_ROWS)


def _is_low() -> bool:
    return get_app().output.get_size().rows < LOW
