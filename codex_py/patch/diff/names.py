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
"""Characters, and the letter that stands for each of them after a backslash."""
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
"""A time after a name: ISO 8601 as `diff` writes it, or the form of ctime(3), as Mercurial does."""


def unquoted(name: bytes) -> bytes:
    """The name that git's C-style quotes stand for; a name without quotes is itself."""
    is_quoted = name.startswith(b'"') and name.endswith(b'"')
    if len(name) < 2 or not is_quoted:
        return name
    return re.sub(_ESCAPE, _character, name[1:-1])


def quoted(name: str) -> bytes:
    """A name as it stands in a diff: in quotes only where it could not be read otherwise."""
    raw = os.fsencode(name)
    is_utf8 = raw.decode(errors="ignore").encode() == raw
    pattern = _SPECIAL if is_utf8 else _SPECIAL_OR_NOT_ASCII
    if re.search(pattern, raw):
        return b'"%s"' % re.sub(pattern, _escaped, raw)
    return raw


def header_name(rest: bytes) -> tuple[bytes, bytes]:
    """The name and the time stamp of what follows `--- ` or `+++ `; the stamp may be empty."""
    rest = rest.rstrip(b"\r\n")
    found = _QUOTED.match(rest)
    if found:
        return unquoted(found[0]), rest[found.end() :].strip()
    name, tab, stamp = rest.partition(b"\t")
    if not tab and (found := re.search(_STAMP, rest)):
        return rest[: found.start()], found[0].strip()
    return name, stamp


def git_names(rest: bytes) -> tuple[bytes, bytes] | None:
    """The two names after `diff --git `; None where they cannot be told apart.

    They can be told apart if one is quoted, or if both are the same apart from their first
    directory. In other cases git repeats the names in lines of their own.
    """
    rest = rest.rstrip(b"\r\n")
    found = _QUOTED.match(rest)
    if found:
        new = rest[found.end() + 1 :]
        return unquoted(found[0]), unquoted(new)
    at = rest.find(b' "')
    if rest.endswith(b'"') and at > 0:
        return rest[:at], unquoted(rest[at + 1 :])
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
    """Raise a `PatchError` if no file can have a path of this length: to look for one would take minutes."""
    if len(name) > MAX_PATH_BYTES:
        raise PatchError(
            f"{name[:60]!r}… is a path of {len(name)} characters; {MAX_PATH_BYTES} are the most",
            kind="file",
        )


def stripped(name: str, count: int) -> str | None:
    """The name without its first `count` directories; None where it has too few."""
    for _ in range(count):
        _, slash, name = name.partition("/")
        name = name.lstrip("/")
        if not slash:
            return None
    return name or None


def _character(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if len(code) == 3:
        number = int(code, 8)
    else:
        number = _CHARACTERS.get(code[0], code[0])
    return bytes([number])


def _escaped(found: re.Match[bytes]) -> bytes:
    letter = _LETTERS.get(found[0][0])
    if letter is None:
        return b"\\%03o" % found[0][0]
    return b"\\%c" % letter
