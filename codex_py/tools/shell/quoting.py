"""Quotes a command line as one line of text, as Codex does.

Codex uses the Rust crate `shlex`, whose rules differ from Python's module of that name: a backslash
never stands between single quotes, where fish would interpret it; `$`, a backtick, `!` and `^`
never stand between double quotes.
"""

import re
from collections.abc import Iterable

_UNQUOTED = re.compile(r"[+\-./:@\]_0-9A-Za-z]+")
# Both patterns match everywhere. A caret is safe only right after an opening single quote.
_SINGLE = re.compile(r"\^?[^'^\\]*")
_DOUBLE = re.compile(r"[^`$!^]*")
_ESCAPED_IN_DOUBLE = re.compile(r'(["\\])')


def quote_argv(argv: Iterable[str]) -> str:
    """The words, quoted where needed and joined by spaces. A shell reads the line back as `argv`."""
    return " ".join(map(_quote, argv))


def _quote(word: str) -> str:
    if not word:
        return "''"
    parts: list[str] = []
    start = 0
    while start < len(word):
        single, double = (
            found.group()
            for each in (_SINGLE, _DOUBLE)
            if (found := each.match(word, start))
        )
        part = max(single, double, key=len)
        start += len(part)
        if _UNQUOTED.fullmatch(part):
            parts.append(part)
        elif part is single:
            parts.append(f"'{part}'")
        else:
            parts.append('"' + _ESCAPED_IN_DOUBLE.sub(r"\\\1", part) + '"')
    return "".join(parts)
