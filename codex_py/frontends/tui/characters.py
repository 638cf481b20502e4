"""Replacements for characters that a terminal may lack or show in another width."""

from collections.abc import Container
from functools import lru_cache
from string import ascii_uppercase
from typing import Final

from prompt_toolkit.utils import get_cwidth

SIGNS: Final = {
    "\u00a0": " ",
    **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    **dict(zip("•└│\u203a✔□▸✗■⚠↵─·", "*`|>x->x#!|--", strict=True)),
    **dict(zip("⠋⠙⠸⠴⠦⠇☐☑✓…→←", "|/-\\|/oxx~><", strict=True)),
}
"""The signs that the program draws, and their replacements on a terminal with only ASCII."""
_FLAG_A: Final = 0x1F1E6
_TONES: Final = range(0x1F3FB, 0x1F400)
_JOINERS: Final = (0x200D, 0xFE0E, 0xFE0F, *range(0xE0020, 0xE0080))
"""The joiner, the selectors of a character's form, and the tags of flags."""
_ALONE: Final = {
    **dict.fromkeys(_JOINERS),
    **{tone: " " * get_cwidth(chr(tone)) for tone in _TONES},
    **{
        _FLAG_A + n: letter.ljust(get_cwidth(chr(_FLAG_A + n)))
        for n, letter in enumerate(ascii_uppercase)
    },
}
"""The replacement of each character that terminals join with its neighbours."""


def alone(text: str) -> str:
    """The text with emoji sequences split into single characters, and flags as their letters.

    Terminals disagree on how wide such sequences are. The result is as wide as prompt-toolkit takes
    the text to be.
    """
    if text.isascii():
        return text
    return text.translate(_ALONE)


def ascii_only(text: str) -> str:
    """The text in ASCII, in as many columns: similar characters for our signs, `?` for others."""
    if text.isascii():
        return text
    return "".join(map(_ascii, text))


def escaped(text: str, *, keeps: Container[str] = ()) -> str:
    """The text with an escape (`\\u30c7`) for each character that is neither ASCII nor in `keeps`.

    A similar letter would not do: it would make another command, or name another file.
    """
    if text.isascii():
        return text
    return "".join(_escape(char, keeps) for char in text)


def _escape(char: str, keeps: Container[str]) -> str:
    if char.isascii() or char in keeps:
        return char
    return char.encode("unicode_escape").decode()


@lru_cache(maxsize=1000)
def _ascii(char: str) -> str:
    if char.isascii():
        return char
    return SIGNS.get(char, "?" * get_cwidth(char))
