"""Formats text for a terminal, which no control sequence of a model or a tool may reach."""

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

# Compiled by the first text that needs them: together 4 ms.
_UNSAFE = (
    # C0 and C1 controls except tab and newline; controls of writing direction, which can make text
    # read as something else; what UTF-8 cannot carry.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    # Characters without width, which can hide a message to a model in a text that a person
    # approves.
    "\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINED = (
    "[\u0590-\u115e\u1161-\u1fff\u2070-\u3163\u3165-\ud7ff\ufe0f\U0001f000-\U0001faff]"
)
"""Letters of the scripts that need joiners, and emoji."""
_SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
"""Variation selectors, each of which chooses a form of the character before it."""
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{4,6}\U000e007f"
"""The flag of a part of a country, such as Scotland."""
_LONGEST_FLAG = 8
"""The length of the longest flag in characters."""
_MAX_NAMED = 20

_SGR = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "magenta": 35,
    "cyan": 36,
}
"""The numbers that set graphic renditions (SGR), of ECMA-48."""


def printable(text: str) -> str:
    """Make every control or invisible character except newline and tab visible.

    `\\r\\n` becomes a newline; C0 controls become their pictures (`␛`), others an escape
    (`\\u202e`). Joiners of emoji or letters, and one variation selector after a character, stay as
    they are.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return re.sub(_UNSAFE, _visible, text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """Make a text `printable`, with blanks in place of its newlines."""
    return " ".join(printable(text).splitlines())


def some_of(paths: Sequence[str], most: int = _MAX_NAMED) -> str:
    """Name the first `most` paths in one line, and say how many more there are."""
    named = ", ".join(paths[:most])
    named = named.replace("\n", "\u240a").replace("\t", "\u2409")
    more = len(paths) - most
    if more > 0:
        named += f" and {more:,} more"
    return named


def _visible(match: re.Match[str]) -> str:
    """The picture or the escape of an unsafe character; itself where it belongs to its
    neighbours."""
    character = match[0]
    code = ord(character)
    if code > 0x200B and _belongs(character, match.string, match.start()):
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _belongs(
    character: str,
    text: str,
    at: int,
) -> bool:
    """True if an invisible character at this place of a text has an effect on its neighbours."""
    before = text[at - 1] if at else ""
    if character in "\u200c\u200d":
        after = text[at + 1 : at + 2]
        return bool(re.match(_JOINED, before) and re.match(_JOINED, after))
    if re.match(_SELECTORS, character):
        return before > " " and not re.match(_UNSAFE, before)
    flag_at = re.compile(_FLAG).match
    earliest = max(at - _LONGEST_FLAG, 0)
    for start in range(earliest, at):
        flag = flag_at(text, start)
        if flag is not None and flag.end() > at:
            return True
    return False


def wants_color(
    choice: Literal["always", "never", "auto"],
    environment: Mapping[str, str],
    *,
    isatty: bool,
) -> bool:
    """True if text should be coloured.

    `auto` means on a terminal that can show colours, unless `NO_COLOR` is set and not empty.
    """
    if choice != "auto":
        return choice == "always"
    shows_colors = isatty and environment.get("TERM") != "dumb"
    return shows_colors and not environment.get("NO_COLOR")


def shown_folder(folder: Path) -> str:
    """The path of a folder, safe for a terminal, with `~` for the user's home."""
    shown = str(folder)
    with suppress(ValueError, RuntimeError):
        below_home = folder.relative_to(Path.home())
        shown = f"~/{below_home}".removesuffix("/.")
    return printable(shown)


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Make lines of the rows of a table, with each cell as wide as its column.

    Args:
        right: the columns that are aligned at the right, from 0, such as those with numbers.
    """
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for number, cell in enumerate(row):
            width = widths[number]
            if number in right:
                cells.append(cell.rjust(width))
            else:
                cells.append(cell.ljust(width))
        lines.append("  ".join(cells))
    return lines


class Style:
    """Puts SGR sequences around text, or leaves it as it is."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, name: str, text: str) -> str:
        if self._color:
            return f"\x1b[{_SGR[name]}m{text}\x1b[0m"
        return text
