"""File names as diffs write them: C-style quotes, prefixes, and the two names of a `diff --git` line.

Quoting follows git's `core.quotePath`: https://git-scm.com/docs/git-config
"""

import os
import re

from codex_py.errors import PatchError

MAX_PATH_BYTES = 4096
"""`PATH_MAX` of Linux; macOS has 1024."""

_ESCAPE = rb"(?s)\\([0-3][0-7]{2}|.)"
_LETTERS = dict(zip(b'\a\b\t\n\v\f\r"\\', b'abtnvfr"\\', strict=True))
"""The letter after a backslash for each character that has one."""
_CHARACTERS = {letter: character for character, letter in _LETTERS.items()}
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
_SPECIAL = rb'[\x00-\x1f"\\\x7f]'
_SPECIAL_OR_NOT_ASCII = rb'[\x00-\x1f"\\\x7f-\xff]'
_STAMP = rb"""(?x)
    \s+ (?:
        \d{4}-\d\d-\d\d [ T] \d\d:\d\d (?: :\d\d (?: \.\d+ )? )?
        | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [ ]
          (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ ]{1,2} \d{1,2} [ ]
          \d\d:\d\d:\d\d (?: \.\d+ )? [ ] \d{4}
    )
    (?: [ ]? (?: [-+]\d\d:?\d\d | Z | UTC | GMT ) )? \s* $
"""
"""A time stamp after a name: ISO 8601 as `diff` writes it, or the form of ctime(3), as Mercurial does."""


def unquoted(name: bytes) -> bytes:
    """Undo git's C-style quotes. A name without quotes is returned unchanged."""
    is_quoted = name.startswith(b'"') and name.endswith(b'"')
    if len(name) < 2 or not is_quoted:
        return name
    return re.sub(_ESCAPE, _character, name[1:-1])


def quoted(name: str) -> bytes:
    """Write a name for a diff, in C-style quotes only if it could not be read otherwise."""
    raw = os.fsencode(name)
    is_utf8 = raw.decode(errors="ignore").encode() == raw
    pattern = _SPECIAL
    if not is_utf8:
        pattern = _SPECIAL_OR_NOT_ASCII
    if re.search(pattern, raw):
        return b'"%s"' % re.sub(pattern, _escaped, raw)
    return raw


def header_name(rest: bytes) -> tuple[bytes, bytes]:
    """Split the text after `--- ` or `+++ ` into the name and the time stamp, which may be empty."""
    rest = rest.rstrip(b"\r\n")
    quotes = _QUOTED.match(rest)
    if quotes:
        stamp = rest[quotes.end() :]
        return unquoted(quotes[0]), stamp.strip()
    name, tab, stamp = rest.partition(b"\t")
    if tab:
        return name, stamp
    time = re.search(_STAMP, rest)
    if time:
        return rest[: time.start()], time[0].strip()
    return name, b""


def git_names(rest: bytes) -> tuple[bytes, bytes] | None:
    """Split the text after `diff --git ` into the two names; None if the split is not certain.

    It is certain if one name is quoted, or if both are the same except for their first directory.
    In other cases git repeats the names in lines of their own.
    """
    rest = rest.rstrip(b"\r\n")
    quotes = _QUOTED.match(rest)
    if quotes:
        new = rest[quotes.end() + 1 :]
        return unquoted(quotes[0]), unquoted(new)
    at = rest.find(b' "')
    if rest.endswith(b'"') and at > 0:
        return rest[:at], unquoted(rest[at + 1 :])
    # A name may have spaces in it: look for the one where both sides agree.
    at = rest.find(b" ")
    while at >= 0:
        old = rest[:at]
        new = rest[at + 1 :]
        _, _, old_inner = old.partition(b"/")
        _, _, new_inner = new.partition(b"/")
        if old == new or (old_inner and old_inner == new_inner):
            return old, new
        at = rest.find(b" ", at + 1)
    return None


def refuse_long(name: str) -> None:
    """Refuse a name that is longer than any path can be, before a search for it takes minutes.

    Raises:
        PatchError: of kind `file`.
    """
    if len(name) > MAX_PATH_BYTES:
        raise PatchError(
            f"{name[:60]!r}… is a path of {len(name)} characters; {MAX_PATH_BYTES} are the most",
            kind="file",
        )


def stripped(name: str, count: int) -> str | None:
    """Drop the first `count` directories of a name; None if it has too few."""
    for _ in range(count):
        _, slash, name = name.partition("/")
        name = name.lstrip("/")
        if not slash:
            return None
    return name or None


def _character(found: re.Match[bytes]) -> bytes:
    """The byte that an escape stands for: three octal digits, or a letter."""
    code = found[1]
    if len(code) == 3:
        number = int(code, 8)
    else:
        number = _CHARACTERS.get(code[0], code[0])
    return bytes([number])


def _escaped(found: re.Match[bytes]) -> bytes:
    """The escape of a byte: its letter, or else three octal digits."""
    [code] = found[0]
    letter = _LETTERS.get(code)
    if letter is None:
        return b"\\%03o" % code
    return b"\\%c" % letter
