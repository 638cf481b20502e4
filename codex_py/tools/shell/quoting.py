"""Quotes a command line as one line of text, as Codex does.

Codex uses the Rust crate `shlex`, whose rules differ from those of Python's module `shlex`. Between
single quotes, it writes no backslash, which fish would interpret. Between double quotes, it writes
no `$`, backtick, `!` or `^`. So one word may have several parts with different quotes.
"""

import re
from collections.abc import Iterable

_UNQUOTED = re.compile(r"[+\-./:@\]_0-9A-Za-z]+")
_SINGLE = re.compile(r"\^?[^'^\\]*")
"""A part that may stand between single quotes. A caret is safe only right after the opening one."""
_DOUBLE = re.compile(r"[^`$!^]*")
"""A part that may stand between double quotes. At any place, one of both is not empty."""
_ESCAPED_IN_DOUBLE = re.compile(r'(["\\])')


def quote_argv(argv: Iterable[str]) -> str:
    """Join the words by spaces, and quote those that need it. A shell reads the line as `argv`."""
    return " ".join(map(_quote, argv))


def _quote(word: str) -> str:
    if not word:
        return "''"
    parts: list[str] = []
    start = 0
    while start < len(word):
        single = _part_at(start, word, _SINGLE)
        double = _part_at(start, word, _DOUBLE)
        longest = max(single, double, key=len)
        start += len(longest)
        if _UNQUOTED.fullmatch(longest):
            parts.append(longest)
        elif longest == single:
            parts.append(f"'{single}'")
        else:
            escaped = _ESCAPED_IN_DOUBLE.sub(r"\\\1", double)
            parts.append(f'"{escaped}"')
    return "".join(parts)


def _part_at(start: int, word: str, pattern: re.Pattern[str]) -> str:
    found = pattern.match(word, start)
    assert found is not None, "the pattern also matches nothing"
    return found[0]
