"""Reads text, keys, pastes and reports from a terminal; reports must not end up as text.

A control sequence is read whole, as ECMA-48 delimits it, even if it is unknown here or comes in
several reads. So the rest of an unknown one is never typed, and its beginning is never an Esc.
"""

import fcntl
import re
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.frontends.tui.bursts import Bursts
from codex_py.frontends.tui.key_codes import (
    BURST,
    ESCAPE,
    KeyNames,
    alt_with,
    enter_with_modifiers,
    keys_of,
    plain,
)

ESCAPE_S = 0.05
"""Seconds. An Esc that nothing follows for so long is the key, not the beginning of a sequence."""
_REST_S = 0.5
"""Seconds within which the rest of a sequence arrives; later input was typed."""
_KEPT_OF_SEQUENCE = 64
"""Characters of an unfinished sequence that are kept."""
_KEPT_OF_STRING = 32
_STRINGS = frozenset("]PX^_")
"""The characters that begin a string, such as the answer to a question, after Esc."""
_BACKGROUND = "\x1b]11;"
_PASTE_END = "\x1b[201~"
_CTRL_C = ("\x03", "\x1b[99;5u", "\x1b[27;5;99~")
"""The forms of Ctrl-C that terminals send."""

# The forms of sequences, after their Esc.
_LINUX_F_KEY = r"\[\[[A-E]"
"""F1 to F5 of the Linux console: `[[A`."""
_MOUSE = r"\[M[^\x00-\x1f]{3}"
"""A report of the mouse in its oldest form, with three characters behind the `M`."""
_CSI = r"\[[0-?]*[ -/]*(?!(?<=\x1b\[)[\[M])[@-~]"
"""All other keys and reports: `[A`, `[1;5C`. `[[` and `[M` begin the two forms above."""
_SS3 = r"O[0-9;]*[ @-~]"
"""Keys in the application mode: `OP`."""
_STRING = r"\x1b[\]PX^_]"
"""The beginning of a string. Strings are answers of the terminal, not keys."""
_SEQUENCE = re.compile(
    rf"\x1b?\x1b(?:{_LINUX_F_KEY}|{_MOUSE}|{_CSI}|{_SS3})"
    rf"|{_STRING}[^\x00-\x1f\x9c]*(?:\x07|\x9c|\x1b\\)"
)
"""A whole control sequence. Another Esc before it is Alt."""
_UNFINISHED = re.compile(
    r"\x1b?\x1b(?:\[\[?|\[M[^\x00-\x1f]{0,2}|\[[0-?]*[ -/]*|O[0-9;]*)?"
    rf"|{_STRING}[^\x00-\x1f\x9c]*\x1b?"
)
"""The beginning of a sequence, of which the rest may come with the next read."""
_ESCAPE_AND_TEXT = re.compile(r"\x1b(?![OPX])\w")
_OTHER_KEY = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
"""The controls that texts do not have: all but Tab and the ends of lines."""
_NOT_AFTER_KEY = rf"(?<![{_OTHER_KEY}])"
_TYPED = re.compile(rf"[^{_OTHER_KEY}][^\x08\x1b\x7f]*{_NOT_AFTER_KEY}")
"""Characters that may be a text, with no such control at its ends. Backspace is always a key."""
_IN_BURST = re.compile(rf"[^\x08\x1b\x7f]+{_NOT_AFTER_KEY}")
"""More of a text that has begun, so that such a control may be its first character."""
_BACKSPACES = frozenset("\x08\x7f")
_BROKEN_OFF = re.compile(
    rf"\x1b?\x1b(?:\[[0-?]*[ -/]*|O[0-9;]*)|{_STRING}[^\x00-\x1f\x9c]*"
)
"""The beginning of a sequence that something else follows."""


Translate: TypeAlias = Callable[[str, KeyNames, str], tuple[KeyNames, str]]
"""Returns the keys and the text to use in place of those that were read.

Args:
    name: of a key that prompt-toolkit has no name for, such as `ctrl-enter`; else empty.
    keys: as they were read.
    text: of the keys.
"""
_UNTRANSLATED = ((Keys.BracketedPaste,), (BURST,), (Keys.Escape,), ())
"""Texts, the Alt before another key, and no key."""


class KeyParser(Vt100Parser):
    """Reads keys out of a terminal's input.

    A burst is text that comes faster than anybody types: a paste without the marks of one.

    Args:
        press: called with each key; Alt is `Keys.Escape` before the key that it is held with.
        focus: called when the terminal reports that it has, or has lost, the focus.
        background: called with the background colour when the terminal reports it.
        clock: seconds.

    Attributes:
        finds_bursts: a text that comes at once is the key `BURST`, not the keys of its characters.
        in_burst: called whenever more of a burst has come. `end_burst` is to be called when nothing
            has followed for `BURST_S`.
        reads_commands: returns True if each letter is a command now; a burst of letters alone is
            then keys after all.
    """

    def __init__(
        self,
        press: Callable[[KeyPress], None],
        focus: Callable[[bool], None],
        background: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._focus = focus
        self._background = background
        self._clock = clock
        self.translate: Translate | None = None
        self.finds_bursts = True
        self.in_burst: Callable[[], None] = lambda: None
        self.reads_commands: Callable[[], bool] = lambda: False
        super().__init__(press)

    def expect_cooked(self) -> None:
        """Expect that the next input was typed before `raw_mode`, and undo what the terminal did to it."""
        self._is_cooked = True

    def reset(self, request: bool = False) -> None:  # noqa: ARG002
        self._is_cooked = False
        self._unfinished = ""
        self._read_at = 0.0
        self._paste: list[str] | None = None
        self._bursts = Bursts()
        self._has_key_in_burst = False
        """True if this read has a key in the middle of a burst."""

    def feed(self, data: str) -> None:
        """Report the keys in the input. A sequence at its end may continue in the next read."""
        if not data:
            return
        now = self._clock()
        apart_s = now - self._read_at
        self._read_at = now
        if self._paste is None and self._unfinished and self._is_over(data, apart_s):
            self.flush()
            self._unfinished = ""
        if self._is_cooked:
            self._is_cooked = False
            data = _as_raw(data)
        if self._paste is not None and data in _CTRL_C:
            # Ctrl-C alone is the key: the mark of the end was lost, and would never come.
            data = _PASTE_END
        text = self._unfinished + data
        self._unfinished = ""
        place = 0
        while place < len(text):
            if self._paste is not None:
                place = self._take_paste(text, place)
                continue
            typed = self._typed_at(text, place)
            if typed:
                self._take_typed(typed, apart_s)
                place += len(typed)
                apart_s = 0.0
            elif text[place] != "\x1b":
                self._take_control(text[place], is_last=place + 1 == len(text))
                place += 1
            else:
                place = self._take_escape(text, place)
        if self._has_key_in_burst:
            # Whoever presses such keys writes; an Enter that comes by itself is one more.
            self._has_key_in_burst = False
            self._bursts.forget_lines()
        if self._bursts.is_open:
            self.in_burst()

    def _is_over(self, data: str, apart_s: float) -> bool:
        """True if this read does not continue the sequence that the last one left unfinished."""
        if apart_s > _REST_S:
            return True
        # A program that was busy reads this before it hears that the time of the Esc is over.
        is_key = _ESCAPE_AND_TEXT.match(self._unfinished + data) is not None
        return is_key and apart_s > ESCAPE_S

    def _typed_at(self, text: str, place: int) -> str:
        """The characters from a place on that may be a text; empty if a control is there."""
        pattern = _IN_BURST if self._bursts.is_open else _TYPED
        match = pattern.match(text, place)
        if match is None:
            return ""
        return match[0]

    def _take_escape(self, text: str, place: int) -> int:
        """Handle an Esc, and the sequence that it begins. Returns the place after that.

        A sequence that is not finished is kept for the next read.
        """
        match = _SEQUENCE.match(text, place)
        if match is not None:
            self._take_sequence(match[0], is_last=match.end() == len(text))
            return match.end()
        if _UNFINISHED.fullmatch(text, place):
            self._unfinished = _kept(text[place:])
            return len(text)
        # The character behind the Esc may be the last one.
        self._pass_key(is_last=place + 2 >= len(text))
        return self._take_other(text, place)

    def _pass_key(self, *, is_last: bool) -> None:
        """Let a key act that comes in a burst. The last one of a read ends the burst.

        After any other one the burst goes on, and the Enter that it has held back is text.
        """
        if is_last or not self._bursts.is_open:
            self.end_burst()
            return
        self._has_key_in_burst = True
        held = self._bursts.release()
        if held:
            self._press((BURST,), held.replace("\r", "\n"))

    def end_burst(self) -> None:
        """End a burst: nothing has followed for a while, or a key that is not part of it."""
        held = self._bursts.end()
        if held:
            self._press(plain(held), held)

    def flush(self) -> None:
        """Report the keys that were held, because nothing has followed for a while.

        Either Esc was pressed, or Alt with a key that begins a sequence.
        """
        if self._paste is not None:
            return
        match self._unfinished:
            case "\x1b" | "\x1b\x1b" as escapes:
                self._unfinished = ""
                self.end_burst()
                for _ in escapes:
                    self._press((ESCAPE,), "")
            case "\x1b]" | "\x1bP" | "\x1bX" | "\x1b^" | "\x1b_" as alt:
                self._unfinished = ""
                self.end_burst()
                self._press(alt_with(alt[1]), alt[1])
            case _:
                # The rest comes late, or never.
                pass

    def _take_typed(self, typed: str, apart_s: float) -> None:
        """Handle characters of one read with no sequence between them."""
        if self.finds_bursts:
            text = self._bursts.text_of(typed, apart_s)
        else:
            text = None
        if text is None:
            # They were typed one by one.
            self._press_each(typed)
        elif text.isprintable() and self.reads_commands():
            self._press_each(text)
        elif text:
            # An empty text means that all of it is held back for now.
            self._press((BURST,), text)

    def _press_each(self, text: str) -> None:
        for character in text:
            self._press(plain(character), character)

    def _take_control(self, character: str, *, is_last: bool) -> None:
        """Handle a control character. Only the last one of a read can be a key in a burst."""
        if self._bursts.is_open and not is_last:
            self._take_control_in_burst(character)
            return
        if character == "\x03":
            held = self._bursts.end()
            # A user who stops a paste does not want it sent.
            if held:
                self._press((BURST,), held.replace("\r", "\n"))
        self.end_burst()
        self._press(plain(character), character)

    def _take_control_in_burst(self, character: str) -> None:
        """Handle a control character in the middle of a text.

        A Backspace is a key all the same: the text so far is reported before it.
        """
        if character not in _BACKSPACES:
            self._take_typed(character, 0.0)
            return
        self._pass_key(is_last=False)
        self._press(plain(character), character)

    def _take_sequence(self, sequence: str, *, is_last: bool) -> None:
        """Handle a whole sequence. `is_last`: nothing follows it in the same read."""
        if sequence.startswith("\x1b\x1b"):
            keys = keys_of(sequence[1:])
            if keys:
                self._pass_key(is_last=is_last)
                self._press((Keys.Escape, *keys), "")
            return
        match sequence:
            case "\x1b[I" | "\x1b[O":
                self._focus(sequence.endswith("I"))
            case "\x1b[200~":
                self.end_burst()
                self._paste = []
            case str() if sequence.startswith(_BACKGROUND):
                color = sequence.removeprefix(_BACKGROUND).rstrip("\x07\x1b\\\x9c")
                self._background(color)
            case _:
                self._take_key(sequence, is_last=is_last)

    def _take_key(self, sequence: str, *, is_last: bool) -> None:
        keys = keys_of(sequence)
        if not keys:
            return
        self._pass_key(is_last=is_last)
        is_character = len(keys[-1]) == 1
        data = keys[-1] if is_character else ""
        self._press(keys, data, enter_with_modifiers(sequence))

    def _take_other(self, text: str, place: int) -> int:
        """Handle Esc before anything but a whole sequence. Returns the place after it."""
        match = _BROKEN_OFF.match(text, place)
        if match is not None:
            return match.end()
        character = text[place + 1]
        if character == "\x1b":
            self._press((ESCAPE,), "")
            return place + 1
        keys = alt_with(character)
        if self.translate is not None:
            name = "alt-enter" if character in "\r\n" else ""
            own_keys, data = self.translate(name, keys, character)
            if own_keys != keys:
                self._feed(own_keys, data)
                return place + 2
        # Unlike in a sequence that names Alt, this may be Esc and then a text. So the keys are
        # reported one by one, and the first has the Esc as its text.
        self._press(keys[:-1], "\x1b")
        self._press(keys[-1:], character)
        return place + 2

    def _take_paste(self, text: str, place: int) -> int:
        assert self._paste is not None
        end = text.find(_PASTE_END, place)
        if end < 0:
            # The mark of the end may be cut in two.
            start = text.rfind("\x1b", max(place, len(text) - len(_PASTE_END) + 1))
            is_cut = start >= 0 and _PASTE_END.startswith(text[start:])
            end = start if is_cut else len(text)
            self._paste.append(text[place:end])
            self._unfinished = text[end:]
            return len(text)
        pasted = "".join((*self._paste, text[place:end]))
        self._paste = None
        self._press((Keys.BracketedPaste,), pasted)
        return end + len(_PASTE_END)

    def _press(
        self,
        keys: KeyNames,
        data: str,
        name: str = "",
    ) -> None:
        """Report keys after translation. `name`: see `Translate`."""
        if self.translate is not None and keys not in _UNTRANSLATED:
            keys, data = self.translate(name, keys, data)
        self._feed(keys, data)

    def _feed(self, keys: KeyNames, data: str) -> None:
        for key in keys:
            self.feed_key_callback(KeyPress(key, data))


def _as_raw(data: str) -> str:
    """Convert input of a cooked terminal to input of a raw one."""
    # Linux keeps Ctrl-D as a zero byte.
    data = data.replace("\0", "\x04")
    # Enter came as a newline.
    line, _, rest = data.partition("\n")
    is_one_line = line != "" and "\n" not in rest
    # A report of the terminal may follow the line.
    is_whole = rest == "" or rest.startswith("\x1b")
    if is_one_line and is_whole:
        return data.replace("\n", "\r")
    # It may be a paste, which is never sent by itself.
    return data


def _kept(sequence: str) -> str:
    """The part of an unfinished sequence that suffices to find its end.

    Longer sequences have no meaning here.
    """
    is_string = sequence[1:2] in _STRINGS
    if is_string:
        most = _KEPT_OF_STRING
    else:
        most = _KEPT_OF_SEQUENCE
    kept = sequence[:most]
    if is_string and len(sequence) > most and sequence.endswith("\x1b"):
        kept += "\x1b"
    return kept


def read_whole_sequences(
    keyboard: Input, focus: Callable[[bool], None], background: Callable[[str], None]
) -> None:
    """Make a `KeyParser` read a keyboard; it passes reports to `focus` and `background`."""
    assert isinstance(keyboard, Vt100Input)
    keyboard.vt100_parser = KeyParser(
        keyboard.vt100_parser.feed_key_callback, focus, background
    )


def parser_of(keyboard: Input) -> KeyParser:
    """The parser that `read_whole_sequences` gave to a keyboard."""
    assert isinstance(keyboard, Vt100Input)
    assert isinstance(keyboard.vt100_parser, KeyParser)
    return keyboard.vt100_parser


@contextmanager
def raw_mode(keyboard: Input) -> Generator[None]:
    """Give the program every key as it is pressed.

    Until then the terminal translates Enter and Ctrl-D; those typed so early are recognized too.
    """
    is_cooked = False
    modes = None
    with suppress(termios.error):
        modes = termios.tcgetattr(keyboard.fileno())
        is_cooked = bool(modes[0] & termios.ICRNL)
    with keyboard.raw_mode():
        if is_cooked:
            # The number of bytes that were typed and not read yet.
            waiting = fcntl.ioctl(keyboard.fileno(), termios.FIONREAD, bytes(4))
            if any(waiting):
                parser_of(keyboard).expect_cooked()
        yield
    if modes is not None:
        # Input from here on is for the shell, which must find its lines whole. The other modes are
        # restored by `take_keyboard`.
        modes[0] |= termios.ICRNL
        modes[3] |= termios.ICANON | termios.ECHO
        with suppress(termios.error):
            termios.tcsetattr(keyboard.fileno(), termios.TCSANOW, modes)
