"""Makes text of models and tools safe to show: nothing in it controls a terminal or a page."""

import re

from codex_py.streams.terminal import printable

_SEQUENCES = re.compile(
    # The control sequences of ECMA-48 and xterm: CSI, OSC and other strings, and the short ones.
    "\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])"
)
_OVERSTRUCK = re.compile("[^\n]\x08")
"""A character that the next one overwrites, as in manual pages."""
_MARKS = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200d"
    "\u2060-\u2064\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U000e0000-\U000e0fff]"
)
_PILE = re.compile(f"({_MARKS}{{6}}){_MARKS}+")
"""More combining marks on a letter than any script uses. Terminals take long to draw them."""
_LINE_ENDS = str.maketrans({"\u2028": "\n", "\u2029": "\n"})
"""The separators of lines and paragraphs, which become newlines."""


def plain(text: str, *, tab: int = 8) -> str:
    """Make a text `printable`, expand its tabs, and cut piles of combining marks."""
    if text.isascii() and text.isprintable():
        return text
    text = printable(text)
    if "\t" in text:
        text = text.expandtabs(tab)
    if not text.isascii():
        text = _PILE.sub(r"\1", text.translate(_LINE_ENDS))
    return text


def command_output(text: str) -> str:
    """The output of a command as the terminal would show it in the end, without colours.

    Control sequences are removed. A line that was overwritten with `\\r` keeps only its last version.
    """
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        lines: list[str] = []
        for line in text.split("\n"):
            _, _, last = line.rstrip("\r").rpartition("\r")
            lines.append(last)
        text = "\n".join(lines)
    return plain(text)


def colors_only(text: str) -> str:
    """Remove all control sequences except those that set colours (SGR). The text is not safe to
    show yet."""
    if "\x1b" in text:
        return _SEQUENCES.sub(_color, text)
    return text


def _color(match: re.Match[str]) -> str:
    """The sequence if it sets colours, else an empty text."""
    if re.fullmatch("\x1b\\[[0-9;:]*m", match[0]):
        return match[0]
    return ""


def cut(
    text: str,
    size: int,
    more: str = "…",
) -> str:
    """The first `size` characters of a text, followed by `more` if it is longer."""
    if len(text) <= size:
        return text
    return text[:size] + more
