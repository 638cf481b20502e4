"""Binds keys by prompt-toolkit's names, and reads keys from a terminal's control sequences.

It understands xterm's sequences, its `modifyOtherKeys`, and the kitty keyboard protocol:
https://sw.kovidgoyal.net/kitty/keyboard-protocol/
"""

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import Final, TypeAlias

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

KeyNames: TypeAlias = tuple[str, ...]
"""Keys in the order in which they are pressed; `Keys.Escape` before another key is Alt."""

ESCAPE: Final = Keys.ControlF15
"""An Esc that came alone. `Keys.Escape` is Alt; no keyboard or sequence has this name."""
ESC: Final = ESCAPE.value
PASTE: Final = Keys.BracketedPaste.value
BURST: Final = "\uf8ff"
"""The key for a text that came at once without the marks of a paste. No keyboard has it."""

KITTY_ON: Final = "\x1b[>5u"
"""Makes Esc, Enter and keys with modifiers distinct, and reports the key of a Latin layout."""
KITTY_OFF: Final = "\x1b[<2u"
"""Undoes `KITTY_ON`, and the remains of a program that was killed, as Codex does."""

_SHIFT = 1
_ALT = 2
_CTRL = 4
_OTHER = 8 | 16 | 32
"""Super, Hyper and Meta, with which no key has a meaning here."""
_MODIFIERS = _SHIFT | _ALT | _CTRL | _OTHER
"""The modifiers that count, without Caps Lock and Num Lock."""
_RELEASED = 3
_LAST_CODE = 0x10FFFF

_CSI_KEY = re.compile(r"\x1b\[([0-9:;]{0,40})([A-Za-z~])")
_ENTER = re.compile(r"\x1b\[(?:13;(\d{1,3})(?::[12])?u|27;(\d{1,3});13~)")
"""Enter with modifiers, whose number is in one of the groups."""
_KEYPAD_TEXT: Final[Mapping[int, str]] = dict(enumerate("0123456789./*-+\r=,", 57399))
_KEYPAD_KEYS: Final[Mapping[int, str]] = dict(
    enumerate(
        (
            Keys.Left,
            Keys.Right,
            Keys.Up,
            Keys.Down,
            Keys.PageUp,
            Keys.PageDown,
            Keys.Home,
            Keys.End,
            Keys.Insert,
            Keys.Delete,
        ),
        57417,
    )
)
_CONTROL: Final[Mapping[str, str]] = {
    **{letter: Keys(f"c-{letter}") for letter in ascii_lowercase},
    **dict.fromkeys("@ 2", Keys.ControlAt),
    **dict.fromkeys("[3", ESCAPE),
    **dict.fromkeys("\\4", Keys.ControlBackslash),
    **dict.fromkeys("]5", Keys.ControlSquareClose),
    **dict.fromkeys("^6", Keys.ControlCircumflex),
    **dict.fromkeys("_/7", Keys.ControlUnderscore),
}
"""The names of keys with Ctrl, by the key that is held with it."""
_TAB: Final[Mapping[int, KeyNames]] = {
    0: (Keys.ControlI,),
    _SHIFT: (Keys.BackTab,),
}
"""The keys of Tab by its modifiers. With any others, it has no meaning."""


def bind(
    bindings: KeyBindings,
    keys: str,
    action: Callable[[KeyPressEvent], object],
    filter: FilterOrBool = True,
    *,
    eager: bool = False,
) -> None:
    """Bind keys to an action.

    `keys`: names with blanks between them, each of which does the action. `c-x+c-e` is one key
    after the other.
    """

    def handler(event: KeyPressEvent) -> None:
        action(event)

    for name in keys.split():
        bindings.add(*name.split("+"), filter=filter, eager=eager)(handler)


def keys_of(sequence: str) -> KeyNames:
    """The keys of a whole sequence; empty if it is not a key's, or the key has no meaning."""
    match = _CSI_KEY.fullmatch(sequence)
    if match is None:
        return _known(sequence)
    final = match[2]
    fields = match[1].split(";")
    code, shifted, base = _numbers(fields[0], 3)
    held = 0
    event = 0
    if len(fields) > 1:
        held, event = _numbers(fields[1], 2)
    modifiers = max(held - 1, 0) & _MODIFIERS
    if event == _RELEASED:
        return ()
    match final:
        case "u":
            return _from_code(code, shifted, base, modifiers)
        case "~" if code == 27 and len(fields) == 3:
            # The form of `modifyOtherKeys`.
            (code,) = _numbers(fields[2], 1)
            return _from_code(code, 0, 0, modifiers)
        case "~" if modifiers:
            return _known(f"\x1b[{code};{modifiers + 1}~")
        case "~":
            return _known(f"\x1b[{code}~")
        case _ if modifiers:
            return _known(f"\x1b[1;{modifiers + 1}{final}")
        case _:
            # F1 to F4 have both forms.
            return _known(f"\x1b[{final}") or _known(f"\x1bO{final}")


def _numbers(field: str, count: int) -> Sequence[int]:
    """The first `count` numbers of a field; missing ones are 0."""
    numbers = [int(part or 0) for part in field.split(":")]
    numbers += [0] * count
    return numbers[:count]


def enter_with_modifiers(sequence: str) -> str:
    """The name of Enter with modifiers, such as `ctrl-enter`; empty for other keys.

    prompt-toolkit has no names for these.
    """
    match = _ENTER.fullmatch(sequence)
    if match is None:
        return ""
    modifiers = (int(match[1] or match[2]) - 1) & _MODIFIERS
    if not modifiers:
        return ""
    marks = (("ctrl-", _CTRL), ("alt-", _ALT), ("shift-", _SHIFT))
    held = [name for name, bit in marks if modifiers & bit]
    return "".join(held) + "enter"


def alt_with(character: str) -> KeyNames:
    """The keys of Alt and a character, which a terminal sends after Esc."""
    # Alt-Enter begins a new line.
    if character in "\r\n":
        return (Keys.ControlJ,)
    return (Keys.Escape, *plain(character))


def plain(character: str) -> KeyNames:
    """The key of a character that came by itself."""
    return _known(character) or (character,)


def _known(sequence: str) -> KeyNames:
    keys = ANSI_SEQUENCES.get(sequence, Keys.Ignore)
    if isinstance(keys, tuple):
        return keys
    if keys is Keys.Ignore:
        return ()
    return (keys,)


def _from_code(
    code: int,
    shifted: int,
    base: int,
    modifiers: int,
) -> KeyNames:
    """The keys of a code point.

    `shifted` and `base`: the code points of the same key with Shift, and in a Latin layout.
    """
    if modifiers & _OTHER:
        return ()
    if code in _KEYPAD_KEYS:
        if modifiers:
            return ()
        return (_KEYPAD_KEYS[code],)
    match _KEYPAD_TEXT.get(code) or _character(code):
        case "\x1b":
            if modifiers:
                return ()
            return (ESCAPE,)
        case "\r":
            if modifiers:
                return (Keys.ControlJ,)
            return (Keys.ControlM,)
        case "\t":
            return _TAB.get(modifiers, ())
        case "\x7f" | "\b":
            deletes_word = modifiers & (_ALT | _CTRL)
            if deletes_word:
                return (Keys.Escape, Keys.ControlH)
            return (Keys.ControlH,)
        case text if text and text.isprintable():
            return _from_text(text, _printable(shifted), _printable(base), modifiers)
        case _:
            return ()


def _from_text(
    character: str,
    shifted: str,
    base: str,
    modifiers: int,
) -> KeyNames:
    """The keys of a printable character. `shifted` and `base`: see `_from_code`; may be empty."""
    alt: KeyNames = ()
    if modifiers & _ALT:
        alt = (Keys.Escape,)
    is_command = modifiers & (_ALT | _CTRL)
    if is_command and base and not character.isascii():
        character = base
    if modifiers & _CTRL:
        key = _CONTROL.get(character)
        if key is None or modifiers & _SHIFT or (alt and key is ESCAPE):
            return ()
        return (*alt, key)
    if modifiers & _SHIFT:
        character = shifted or character.upper()
    return (*alt, character)


def _printable(code: int) -> str:
    """The character of a code point; empty if it is none, or not printable."""
    text = _character(code)
    if text.isprintable():
        return text
    return ""


def _character(code: int) -> str:
    """The character of a code point; empty if Unicode has none."""
    if code > _LAST_CODE:
        return ""
    return chr(code)
