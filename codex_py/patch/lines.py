"""Splits text into lines as patches do, and says which characters are blanks there.

Neither `str.splitlines` nor a bare `str.strip` may be used on patches or on the files that they
change. `splitlines` also cuts at nine characters that are ordinary text here, and `strip` also
removes U+001C to U+001F.
"""

import re

BLANK = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters of Unicode's White_Space, as the argument of `strip`, `lstrip` and `rstrip`."""

BOM = "\ufeff"

NO_NEWLINE = b"\n\\ No newline at end of file\n"
"""The end of a line of a diff if the line has no newline in the file."""
_TERMINATOR = re.compile(r"(\r\n|\n|\r)")


def line_of_diff(line: bytes) -> bytes:
    """Return a line as a diff has it: a missing newline is replaced by the remark that says so."""
    if line.endswith(b"\n"):
        return line
    return line + NO_NEWLINE


def split_lines(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of a file without their terminators, and the terminator of each.

    A terminator is CRLF, LF or a lone CR. The last line may have none, which is given as an empty
    string.
    """
    if "\r" in text:
        pieces = _TERMINATOR.split(text)
        lines = pieces[::2]
        terminators = pieces[1::2]
    else:
        # This gives the same result, twenty times as fast.
        lines = text.split("\n")
        terminators = ["\n"] * (len(lines) - 1)
    if lines[-1]:
        terminators.append("")
    else:
        lines.pop()
    return lines, terminators
