"""Text on a terminal: nothing that a model or a tool wrote may steer it."""

import re
from collections.abc import Mapping
from typing import Literal

_UNSAFE = re.compile(
    # C0 and C1 controls but for tab and newline; controls of writing direction, which can make
    # text read as something else; the byte order mark; what UTF-8 can not carry.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with every control character but newline and tab made visible.

    `\\r\\n` becomes a newline; C0 controls become their pictures (`␛`), others an escape (`\\u202e`).
    """
    return _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def wants_color(
    choice: Literal["always", "never", "auto"], environment: Mapping[str, str], *, isatty: bool
) -> bool:
    """Whether to colour. `auto`: on a terminal that can, unless `NO_COLOR` is set and not empty."""
    if choice != "auto":
        return choice == "always"
    return isatty and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


class Style:
    """Dresses text in SGR sequences, or leaves it as it is."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def bold(self, text: str) -> str:
        return self._sgr("1", text)

    def dim(self, text: str) -> str:
        return self._sgr("2", text)

    def italic(self, text: str) -> str:
        return self._sgr("3", text)

    def red(self, text: str) -> str:
        return self._sgr("31", text)

    def green(self, text: str) -> str:
        return self._sgr("32", text)

    def yellow(self, text: str) -> str:
        return self._sgr("33", text)

    def magenta(self, text: str) -> str:
        return self._sgr("35", text)

    def cyan(self, text: str) -> str:
        return self._sgr("36", text)

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._color else text
