"""Find the place of a block of lines in a file, forgivingly and in linear time."""

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.lines import BLANK


class Level(IntEnum):
    """The differences that are ignored when lines are compared.

    Each level also ignores the differences of the levels before it.
    """

    EXACT = 0
    TRAILING_BLANKS = 1
    INDENTATION = 2
    PUNCTUATION = 3
    """Typographic dashes, quotes and spaces are as good as their ASCII forms."""


_ASCII = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys(
        "\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
        " ",
    )
)

_LEVELS = tuple(Level)
"""Iterating over the class itself takes 2 us, each time."""

_NORMAL_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    lambda line: line.rstrip(BLANK),
    lambda line: line.strip(BLANK),
    lambda line: line.strip(BLANK).translate(_ASCII),
)

_MAX_TRIES = 50
"""The places at which one search compares a block with the lines, before the file is indexed."""

_MAX_SCANS = 50
"""The searches that compare the lines themselves, before the file is indexed."""

_OTHER = "\0"
"""Stands for every line that is not looked for."""


class Match(NamedTuple):
    """The place of a block of lines."""

    start: int
    """Index of the first line."""
    length: int
    level: Level


class LineIndex:
    """The lines of one file, made ready to be searched for blocks.

    At each level every distinct line that may be looked for becomes one character, so that finding
    a block is finding a string: `str.find` is written in C and linear even in bad cases. A level is
    only prepared when all before it have failed. The first searches compare the lines themselves,
    so a file is not indexed for a few blocks that are found exactly and soon.

    Args:
        lines: the lines of the file, without terminators.
        wanted: every line of every block that will be searched for. Only iterated over when needed.
        path: the file's path, for the `PatchError` if more than a million distinct lines are to be
            looked for.
    """

    def __init__(
        self,
        lines: list[str],
        wanted: Iterable[str],
        path: str,
    ) -> None:
        self._lines = lines
        self._path = path
        self._wanted = wanted
        self._prepared: list[tuple[dict[str, str], str]] = []
        self._scans = 0

    def find(self, block: Sequence[str], start: int = 0) -> Match | None:
        """Find the first place from line `start` on, at the strictest level that has one."""
        for level in _LEVELS:
            at = self._first_at(level, block, start)
            if at >= 0:
                return Match(at, len(block), level)
        return None

    def find_last(self, block: Sequence[str], start: int = 0) -> Match | None:
        """Find the place at the very end of the file, if it is not before line `start`."""
        at = len(self._lines) - len(block)
        if at < start:
            return None
        for level in _LEVELS:
            symbols, text = self._encoded(level, block)
            if text.startswith(symbols, at):
                return Match(at, len(block), level)
        return None

    def find_nearest(
        self, block: Sequence[str], start: int, target: int
    ) -> Match | None:
        """Find the place nearest to `target`, from line `start` on, at the strictest level that has
        one."""
        for level in _LEVELS:
            at = self.nearest_at(level, block, start, target)
            if at is not None:
                return Match(at, len(block), level)
        return None

    def nearest_at(
        self, level: Level, block: Sequence[str], start: int, target: int
    ) -> int | None:
        """Find the place of a level nearest to `target`, from line `start` on.

        Of two equally near places, the later one counts.
        """
        symbols, text = self._encoded(level, block)
        target = max(target, start)
        after = text.find(symbols, target)
        before = text.rfind(symbols, start, target + len(block))
        if after < 0 and before < 0:
            return None
        if before < 0:
            return after
        if after < 0:
            return before
        if after - target <= target - before:
            return after
        return before

    def places_at(
        self, level: Level, block: Sequence[str], start: int, limit: int
    ) -> list[int]:
        """Find the first places of a level from line `start` on, up to `limit`."""
        places: list[int] = []
        while len(places) < limit:
            at = self._first_at(level, block, start)
            if at < 0:
                break
            places.append(at)
            start = at + 1
        return places

    def _first_at(
        self,
        level: Level,
        block: Sequence[str],
        start: int,
    ) -> int:
        """Find the first place of a level from line `start` on; -1 if the block is not found."""
        may_scan = not self._prepared and self._scans < _MAX_SCANS
        if level == Level.EXACT and block and may_scan:
            self._scans += 1
            at = self._scanned(list(block), start)
            if at is not None:
                return at
        symbols, text = self._encoded(level, block)
        return text.find(symbols, start)

    def _scanned(self, block: list[str], start: int) -> int | None:
        """Find the first exact place; -1 if the block is not found, and None if that takes too long
        to find out."""
        lines = self._lines
        first = block[0]
        length = len(block)
        at = start
        for _ in range(_MAX_TRIES):
            try:
                at = lines.index(first, at)
            except ValueError:
                return -1
            if lines[at : at + length] == block:
                return at
            at += 1
        return None

    def _encoded(self, level: Level, block: Sequence[str]) -> tuple[str, str]:
        """Return the block and the whole file, with a character for each line."""
        while len(self._prepared) <= level:
            self._prepare(_NORMAL_FORMS[len(self._prepared)])
        symbols, text = self._prepared[level]
        normal = _NORMAL_FORMS[level]
        return "".join([symbols[normal(line)] for line in block]), text

    @cached_property
    def _distinct(self) -> Collection[str]:
        """The distinct lines that will be searched for."""
        return dict.fromkeys(self._wanted)

    def _prepare(self, normal: Callable[[str], str]) -> None:
        if len(self._distinct) >= sys.maxunicode:
            reason = (
                f"Failed to apply the hunks of {self._path}: too many distinct lines"
            )
            raise PatchError(reason, kind="match")
        symbols: dict[str, str] = {}
        for line in self._distinct:
            symbols.setdefault(normal(line), chr(len(symbols) + 1))
        text = "".join([symbols.get(normal(line), _OTHER) for line in self._lines])
        self._prepared.append((symbols, text))
