"""An answer in Markdown as it arrives: what is finished and can be printed for good, and what is not."""

import re
from dataclasses import dataclass
from typing import TypeAlias

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
_MAX_PROSE = 4_000
"""Characters that may wait for the end of a block. Every frame draws them anew."""
_MAX_CODE_LINES = 60
_CODE_PIECE_LINES = 40
"""More than is lost where highlighting starts anew in the middle of a block."""


@dataclass(frozen=True, slots=True)
class Prose:
    markdown: str
    is_first: bool = True
    """False: it goes on with the block before."""


@dataclass(frozen=True, slots=True)
class Code:
    language: str
    """As the fence names it; empty where it does not."""
    text: str
    """Whole lines."""
    is_first: bool = True


Block: TypeAlias = Prose | Code


class Blocks:
    """Splits Markdown at the ends of its blocks: time is linear in the length of the answer.

    Only fences at the margin are told apart; one inside of a list stays with the list.
    """

    def __init__(self) -> None:
        self._partial = ""
        """A line without its end."""
        self._lines: list[str] = []
        """Of the unfinished block, newlines included."""
        self._size = 0
        self._fence: str | None = None
        self._language = ""
        self._is_first = True
        self._finished: list[Block] = []

    def feed(self, delta: str) -> None:
        *lines, self._partial = (self._partial + delta).split("\n")
        for line in lines:
            self._take_line(f"{line}\n")
        if self._fence is None and len(self._partial) > _MAX_PROSE:
            # One endless line.
            cut = self._partial.rfind(" ", 0, _MAX_PROSE) + 1 or _MAX_PROSE
            self._lines.append(self._partial[:cut])
            self._partial = self._partial[cut:]
            self._end(goes_on=True)

    def take(self) -> list[Block]:
        """What has been finished since it was last asked for."""
        finished = self._finished
        self._finished = []
        return finished

    @property
    def rest(self) -> Block | None:
        """What may still change."""
        text = "".join(self._lines) + self._partial
        if self._fence is not None:
            return Code(self._language, text, self._is_first)
        return Prose(text, self._is_first) if text.strip() else None

    def finish(self) -> list[Block]:
        """The answer is whole: all that has not been taken."""
        if self._partial:
            partial, self._partial = self._partial, ""
            self._take_line(partial)
        self._end()
        self._fence = None
        return self.take()

    def _take_line(self, line: str) -> None:
        fence = _FENCE.match(line.rstrip())
        if self._fence is not None:
            if fence and not fence[2] and fence[1].startswith(self._fence):
                self._end()
                self._fence = None
                return
            self._lines.append(line)
            if len(self._lines) > _MAX_CODE_LINES:
                rest = self._lines[_CODE_PIECE_LINES:]
                del self._lines[_CODE_PIECE_LINES:]
                self._end(goes_on=True)
                self._lines = rest
            return
        if fence:
            self._end()
            self._fence, self._language = fence[1], fence[2]
            return
        after_blank = bool(self._lines) and not self._lines[-1].strip()
        # An indented line belongs to the list before it.
        if after_blank and line.strip() and not line[0].isspace():
            self._end()
        self._lines.append(line)
        self._size += len(line)
        if self._size > _MAX_PROSE:
            self._end(goes_on=True)

    def _end(self, *, goes_on: bool = False) -> None:
        text = "".join(self._lines)
        self._lines = []
        self._size = 0
        if self._fence is not None:
            if text or self._is_first:
                self._finished.append(Code(self._language, text, self._is_first))
        elif text.strip():
            self._finished.append(Prose(text, self._is_first))
        self._is_first = not goes_on
