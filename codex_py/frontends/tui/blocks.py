"""Splits a Markdown answer, as it arrives, into finished blocks and an unfinished rest."""

import re
from dataclasses import dataclass

from codex_py.protocol.plans import CLOSING, OPENING, may_become_tag

_PLAN_TITLE = "**Proposed plan**"
_FENCE = re.compile(r"`{3,}|~{3,}")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_BEGINS_LIST = re.compile(r"(?:[-*+]|1[.)])[ \t]")
"""A list item that ends a paragraph. Other numbers at the margin are part of the paragraph."""
_HEADING = re.compile(r"#{1,6}[ \t]")
_COLUMN_RULE = re.compile(r":?-+:?")
_MAX_PROSE = 4_000
"""Characters of an unfinished block. Every frame draws them again."""
_MAX_TABLE = 20_000
"""Characters of an unfinished table, whose columns are only known when it is whole."""
_MAX_CODE_LINES = 40
_CODE_PIECE_LINES = 24
_MAX_MARKDOWN = 150_000
"""Characters of one answer that are read as Markdown. The rest is shown verbatim."""
_MAX_AT_ONCE = 50_000
"""The same for a piece of an answer: rendering more at once would stop the program for too long."""
_MAX_VERBATIM = 500_000
"""Characters of one answer. The rest is not shown."""


@dataclass(frozen=True, slots=True)
class Block:
    text: str
    """Markdown, or whole lines of code, unless a line is endless."""
    language: str | None = None
    """The language of code as its fence names it, empty if it names none; None for Markdown."""
    is_first: bool = True
    """False: the block continues the one before."""
    is_plan: bool = False

    @property
    def is_spaced(self) -> bool:
        """True if an empty row stands before the block.

        A block of a plan brings its own empty row, which shows the plan's bar.
        """
        return self.is_first and not self.is_plan


class Blocks:
    """Splits Markdown at the ends of its blocks, in time linear in the length of the answer.

    Each item of a list at the margin is a block of its own. Only fences at the margin are
    recognized; a fence in a list stays with the list. The opening tag of a proposed plan becomes a
    title, and the closing tag is dropped.
    """

    def __init__(self) -> None:
        self._partial = ""
        """The beginning of a line that has not ended yet."""
        self._lines: list[str] = []
        """The lines of the unfinished block, newlines included."""
        self._size = 0
        self._taken = 0
        self._fence: str | None = None
        self._language: str | None = None
        """The language of the open fence."""
        self._is_first = True
        self._is_plan = False
        self._is_verbatim = False
        self._finished: list[Block] = []

    def feed(self, delta: str) -> None:
        """Add the next piece of the answer."""
        if self._is_verbatim:
            room = 0
        else:
            left = max(0, _MAX_MARKDOWN - self._taken)
            room = min(left, _MAX_AT_ONCE)
        *lines, self._partial = (self._partial + delta[:room]).split("\n")
        for line in lines:
            self._take_line(f"{line}\n")
        while len(self._partial) > _MAX_PROSE:
            self._cut_partial()
        if len(delta) > room:
            self._feed_verbatim(delta[room : max(0, _MAX_VERBATIM - self._taken)])
        self._taken += len(delta)

    def _cut_partial(self) -> None:
        """End the block within a line that is too long, behind a blank if there is one."""
        blank = self._partial.rfind(" ", _MAX_PROSE // 2, _MAX_PROSE)
        if blank >= 0:
            cut = blank + 1
        else:
            cut = _MAX_PROSE
        self._lines.append(self._partial[:cut])
        self._partial = self._partial[cut:]
        self._end(continues=True)

    @property
    def hidden(self) -> int:
        """The number of characters of the answer that are in no block."""
        return max(0, self._taken - _MAX_VERBATIM)

    def take(self) -> list[Block]:
        """Take the blocks that were finished since the last call."""
        finished = self._finished
        self._finished = []
        return finished

    @property
    def rest(self) -> Block | None:
        """The unfinished block; None if it is empty."""
        if self._is_verbatim:
            if self._partial:
                return Block(self._partial, "", is_first=False)
            return None
        text = "".join(self._lines)
        # The beginning of a tag is not text.
        if not may_become_tag(self._partial.rstrip()):
            text += self._partial
        if self._fence is not None or text.strip():
            return self._block(text)
        return None

    def finish(self) -> list[Block]:
        """End the answer. Returns all blocks that have not been taken."""
        partial = self._partial
        self._partial = ""
        if partial and self._is_verbatim:
            self._finished.append(Block(partial, "", is_first=False))
        elif partial:
            self._take_line(partial)
        self._end_fence()
        return self.take()

    def _take_line(self, line: str) -> None:
        if self._took_tag(line):
            return
        fence, language = _fence(line)
        if self._fence is not None:
            if fence.startswith(self._fence) and not language:
                self._end_fence()
            else:
                self._take_code(line)
            return
        if fence:
            self._end()
            self._fence = fence
            self._language = language
        elif not line.strip():
            self._take_empty_line(line)
        else:
            self._take_prose(line)

    def _take_empty_line(self, line: str) -> None:
        # A list continues after empty lines, if the next line is indented.
        if self._is_list():
            self._lines.append(line)
        else:
            self._end()

    def _take_prose(self, line: str) -> None:
        is_heading = _HEADING.match(line) is not None
        if self._lines and not line[0].isspace():
            follows_empty_line = not self._lines[-1].strip()
            if follows_empty_line or is_heading:
                self._end()
            elif self._begins_item(line):
                self._end(continues=True)
        self._lines.append(line)
        self._size += len(line)
        if is_heading:
            self._end()
        elif len(self._lines) > 1 and _is_table_rule(self._lines[1]):
            if self._size > _MAX_TABLE:
                # The next block repeats the header.
                header = self._lines[:2]
                self._end(continues=True)
                self._lines = header
        elif self._size > _MAX_PROSE:
            self._end(continues=True)

    def _is_list(self) -> bool:
        """True if the block is an item of a list, or an indented part of one."""
        if not self._lines:
            return False
        first = self._lines[0]
        return _ITEM.match(first) is not None or first[0].isspace()

    def _begins_item(self, line: str) -> bool:
        """True if a line begins another item of the block's list, or a list after its paragraph."""
        if _ITEM.match(self._lines[0]):
            return _ITEM.match(line) is not None
        return _BEGINS_LIST.match(line) is not None

    def _took_tag(self, line: str) -> bool:
        """Begin or end a plan if the line is a plan's tag; True if it is.

        In a fence, a tag can only end a plan that began before the fence.
        """
        tag = CLOSING if self._is_plan else OPENING
        if line.rstrip() != tag:
            return False
        if self._fence is not None and not self._is_plan:
            return False
        self._end_fence()
        self._is_plan = not self._is_plan
        if self._is_plan:
            self._finished.append(Block(_PLAN_TITLE))
        return True

    def _take_code(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)
        if len(self._lines) > _MAX_CODE_LINES or self._size > 2 * _MAX_PROSE:
            end = self._end_of_piece()
            rest = self._lines[end:]
            del self._lines[end:]
            self._end(continues=True)
            self._lines = rest
            self._size = sum(map(len, rest))

    def _end_of_piece(self) -> int:
        """The number of lines of code that are shown together, before the rest is known.

        Highlighting starts again in the next piece, so a piece ends with an empty line if possible.
        """
        longest = max(1, min(_CODE_PIECE_LINES, len(self._lines) - 1))
        for end in range(longest, longest // 2, -1):
            if not self._lines[end - 1].strip():
                return end
        return longest

    def _feed_verbatim(self, delta: str) -> None:
        if not self._is_verbatim:
            self._finished = self.finish()
            self._is_verbatim = True
        lines, newline, self._partial = (self._partial + delta).rpartition("\n")
        if newline:
            self._finished.append(Block(lines + newline, "", is_first=False))
        elif len(self._partial) > _MAX_PROSE:
            self._finished.append(Block(self._partial, "", is_first=False))
            self._partial = ""

    def _end(self, *, continues: bool = False) -> None:
        text = "".join(self._lines)
        self._lines = []
        self._size = 0
        if self._fence is None:
            is_shown = text.strip() != ""
        else:
            # An empty fence is shown too, but no empty rest of one.
            is_shown = text != "" or self._is_first
        if is_shown:
            self._finished.append(self._block(text))
        self._is_first = not continues

    def _end_fence(self) -> None:
        self._end()
        self._fence = None
        self._language = None

    def _block(self, text: str) -> Block:
        return Block(text, self._language, self._is_first, self._is_plan)


def _fence(line: str) -> tuple[str, str]:
    """The marks that begin or end code, and the language after them.

    Both are empty if the line is not a fence.
    """
    marks = _FENCE.match(line)
    if marks is None:
        return "", ""
    info = line[marks.end() :]
    if "`" in info:
        return "", ""
    words = info.split(maxsplit=1)
    if not words:
        return marks[0], ""
    return marks[0], words[0]


def _is_table_rule(line: str) -> bool:
    if "|" not in line:
        return False
    # Split first: one expression for the whole line would take quadratic time.
    columns = line.strip().removeprefix("|").removesuffix("|").split("|")
    return all(_COLUMN_RULE.fullmatch(column.strip()) for column in columns)
