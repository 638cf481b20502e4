"""Follows lines through the versions of files in the journal, and finds the turn that wrote each.

A line belongs to the turn that added it. Between two versions, aligned lines keep their author, and
the other lines belong to somebody else. Lines that a turn moved keep their author. Lines that came
back, for instance by switching branches, and lines that somebody moved to another file, are
recognized by their text, if enough of it is in one piece.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from math import inf
from typing import Final, NamedTuple

_LETTERS: Final = re.compile(rb"[0-9A-Za-z_\x80-\xff]")
_DISTINCT: Final = 2
"""A line is distinctive from this number of letters and digits on: `}` is not."""
_FOUND_IN_FILE: Final = 20
"""Letters and digits that a piece needs to be recognized in its file, as for `git blame -M`."""
_FOUND_ELSEWHERE: Final = 40
"""Letters and digits that a piece needs to be recognized in another file, as for `git blame -C`."""
_ALIKE: Final = 0.5
"""The share of common lines from which on a file counts as renamed, as in git."""


class PieceLine(NamedTuple):
    """A line that a turn wrote, by the number of its piece and its place in the piece, from 0."""

    piece: int
    offset: int


class FirstSeen(NamedTuple):
    """A line of unknown author, by the number of the journal's entry that first saw it."""

    entry: float


Mark = PieceLine | FirstSeen


class LineAuthor(NamedTuple):
    thread_id: str
    turn: int
    how: str
    """`patch`; `command`; or `unsure`: a command, or somebody else while it ran."""
    began: float
    """The turn wrote the line after this time, in seconds since the epoch."""
    ended: float
    """A time during the turn, after its prompt, in seconds since the epoch."""


class FileStep(NamedTuple):
    """The change of a file by an entry of the journal. The path is relative to the repository."""

    path: str
    old: list[bytes] | None
    new: list[bytes] | None
    author: LineAuthor | None

    def mapped(self, change: Callable[[list[bytes]], list[bytes]]) -> "FileStep":
        """Copy the step with other lines. `change` gets the old ones and the new ones."""
        step = self
        if step.old is not None:
            step = step._replace(old=change(step.old))
        if step.new is not None:
            step = step._replace(new=change(step.new))
        return step


class _Version(NamedTuple):
    """The lines of a file, and a mark for each."""

    number: float
    """The number of the journal's entry after which the file had these lines."""
    lines: list[bytes]
    marks: list[Mark]


class _Piece(NamedTuple):
    """Neighbouring lines that a turn wrote."""

    author: LineAuthor
    number: float
    """The number of the journal's entry."""
    step: FileStep
    lines: list[bytes]


def as_lines(data: bytes) -> list[bytes]:
    """Split into lines without their line endings, which git may convert."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if b"\r" in data:
        return [line.removesuffix(b"\r") for line in lines]
    return lines


class FileHistories:
    """The versions of files in the journal, and the authors of their lines.

    Args:
        current: returns the current lines of a path, or None if the file does not exist.
        in_commits: returns the lines of a path in commits, each with the time of its commit.
    """

    def __init__(
        self,
        current: Callable[[str], list[bytes] | None],
        in_commits: Callable[[str], Sequence[tuple[float, Counter[bytes]]]],
    ) -> None:
        self._current = current
        self._in_commits = in_commits
        self._versions: dict[str, list[_Version]] = {}
        self._pieces: list[_Piece] = []
        self._alive: dict[str, set[Mark]] = {}

    def add(
        self,
        number: int,
        steps: Sequence[FileStep],
        since: int,
        until: int,
    ) -> None:
        """Add an entry of the journal, after all earlier ones.

        Args:
            since: the number of the entry's first part. Old versions are those before it, and lines
                that parts wrote belong to the parts.
            until: lines found by parts with a lower number are not credited to this entry.
        """
        removed: dict[bytes, list[Mark]] = defaultdict(list)
        found: list[tuple[FileStep, _Version, list[int]]] = []
        for step in steps:
            base = self._version(step.path, step.old or [], since, number)
            places = aligned(base.lines, step.new or [])
            for index in {*range(len(base.lines))}.difference(places):
                line = base.lines[index]
                if _weight(line) >= _DISTINCT:
                    removed[line].append(base.marks[index])
            found.append((step, base, places))
        for step, base, places in found:
            new = step.new or []
            marks = _carried_marks(new, base, places, removed)
            if since < number:
                by_parts = self._version(step.path, new, inf, number).marks
                for index, mark in enumerate(by_parts):
                    if marks[index] is None and self._is_of_parts(mark, since, until):
                        marks[index] = mark
            whole = list(self._claimed(number, step, marks))
            version = _Version(number, new, whole)
            self._versions.setdefault(step.path, []).append(version)

    def _is_of_parts(
        self,
        mark: Mark,
        since: int,
        until: int,
    ) -> bool:
        """True if an entry's parts account for this line; see `add`."""
        match mark:
            case PieceLine(piece):
                return self._pieces[piece].number >= since
            case FirstSeen(entry):
                return entry < until

    def unknown(self, path: str, lines: list[bytes]) -> set[bytes]:
        """The lines whose author is unknown."""
        return _unmarked(lines, self._version(path, lines, inf, inf).marks)

    def is_source(self, step: FileStep, unknown: set[bytes]) -> bool:
        """True if these unknown lines may come from this step, which changed another file."""
        there = unknown.intersection(step.new or ())
        added = there.difference(step.old or ())
        if sum(map(_weight, added)) >= _FOUND_ELSEWHERE:
            return True
        # The file may have been renamed.
        is_half = bool(unknown) and 2 * len(there) >= len(unknown)
        return is_half and self._current(step.path) is None

    def authors(
        self,
        path: str,
        lines: list[bytes],
        until: float = inf,
    ) -> list[LineAuthor | None]:
        """Find the author of each line, or None if unknown.

        Args:
            until: a time when the lines existed: turns that began later did not write them.
        """
        marks = self._version(path, lines, inf, inf).marks
        alive = {*marks}
        self._come_back(path, lines, marks, alive)
        self._found_again(path, lines, marks, alive)
        authors = [
            self._author(path, line, mark, until)
            for line, mark in zip(lines, marks, strict=True)
        ]
        _drop_unsure(lines, authors)
        return authors

    def _author(
        self,
        path: str,
        line: bytes,
        mark: Mark,
        until: float,
    ) -> LineAuthor | None:
        if isinstance(mark, FirstSeen):
            return None
        if self._was_there(path, line, mark.piece, until):
            return None
        return self._pieces[mark.piece].author

    def _version(
        self,
        path: str,
        lines: list[bytes],
        before: float,
        number: float,
    ) -> _Version:
        """Mark the lines of a file by its most similar version whose number is below `before`.

        A file without a version is compared with files that it may be the new name of.
        """
        versions = [
            each for each in self._versions.get(path, ()) if each.number < before
        ]
        if not versions and lines:
            versions = self._under_old_names(path, lines)
        if not versions:
            return _Version(number, lines, [FirstSeen(number)] * len(lines))
        best = versions[-1]
        if best.lines == lines:
            return _Version(number, lines, list(best.marks))
        if len(versions) > 1:

            def rank(version: _Version) -> tuple[float, float]:
                return _likeness(version.lines, lines), version.number

            best = max(versions, key=rank)
        marks: list[Mark] = []
        for place in aligned(best.lines, lines):
            if place >= 0:
                marks.append(best.marks[place])
            else:
                marks.append(FirstSeen(number))
        return _Version(number, lines, marks)

    def _under_old_names(self, path: str, lines: list[bytes]) -> list[_Version]:
        """The last versions of other files that are like these lines, and are not there now."""
        found: list[_Version] = []
        for name, versions in self._versions.items():
            last = versions[-1]
            if name == path or _likeness(last.lines, lines) < _ALIKE:
                continue
            if self._current(name) is None:
                found.append(last)
        return found

    def _claimed(
        self,
        number: int,
        step: FileStep,
        marks: Sequence[Mark | None],
    ) -> Iterator[Mark]:
        """Complete the marks with new ones for the lines that the entry wrote."""
        for mark, group in groupby(range(len(marks)), key=marks.__getitem__):
            places = list(group)
            if mark is not None:
                yield from [mark] * len(places)
                continue
            if step.author is None:
                yield from [FirstSeen(number)] * len(places)
                continue
            piece = len(self._pieces)
            for index in range(len(places)):
                yield PieceLine(piece, index)
            new = step.new or []
            written = new[places[0] : places[-1] + 1]
            self._pieces.append(_Piece(step.author, number, step, written))

    def _come_back(
        self,
        path: str,
        lines: list[bytes],
        marks: list[Mark],
        alive: set[Mark],
    ) -> None:
        """Mark unknown lines that have the same neighbour as in another version."""
        missing = _unmarked(lines, marks)
        for version in reversed(self._versions.get(path, ())):
            if missing.isdisjoint(version.lines):
                continue
            written = {
                line
                for line, mark in zip(version.lines, version.marks, strict=True)
                if isinstance(mark, PieceLine)
            }
            if missing.isdisjoint(written):
                continue
            places = aligned(version.lines, lines)
            for n, place in enumerate(places):
                if place < 0 or not _has_neighbour(places, n):
                    continue
                mark = version.marks[place]
                if mark not in alive and self._is_later(marks[n], mark):
                    marks[n] = mark
                    alive.add(mark)
            missing = _unmarked(lines, marks)

    def _found_again(
        self,
        path: str,
        lines: list[bytes],
        marks: list[Mark],
        alive: set[Mark],
    ) -> None:
        """Mark pieces that were moved within the file, or from a file that lacks them now."""
        missing = _unmarked(lines, marks)
        places: dict[bytes, list[PieceLine]] = defaultdict(list)
        for n, piece in enumerate(self._pieces):
            for offset, line in enumerate(piece.lines):
                if line in missing and _weight(line) >= _DISTINCT:
                    places[line].append(PieceLine(n, offset))
        index = 0
        while index < len(lines):
            best: list[PieceLine] = []
            for start in places.get(lines[index], ()):
                run = self._run(path, lines, marks, alive, index, start)
                if len(run) > len(best):
                    best = run
            marks[index : index + len(best)] = best
            alive.update(best)
            index += len(best) or 1

    def _run(
        self,
        path: str,
        lines: list[bytes],
        marks: list[Mark],
        alive: set[Mark],
        index: int,
        start: PieceLine,
    ) -> list[PieceLine]:
        """Follow a piece from `start` on, while its lines are those of the file from `index` on.

        Returns the marks of these lines, or none if they are too few to recognize the piece.
        """
        piece = self._pieces[start.piece]
        if piece.step.path == path:
            alive_there = alive
            least_weight = _FOUND_IN_FILE
        else:
            alive_there = self._alive_in(piece.step.path)
            least_weight = _FOUND_ELSEWHERE
        run: list[PieceLine] = []
        here = index
        for offset in range(start.offset, len(piece.lines)):
            mark = PieceLine(start.piece, offset)
            if here == len(lines) or piece.lines[offset] != lines[here]:
                break
            if mark in alive_there or mark in alive:
                break
            if not self._is_later(marks[here], mark):
                break
            run.append(mark)
            here += 1
        if sum(map(_weight, lines[index:here])) < least_weight:
            return []
        return run

    def _is_later(self, mark: Mark, piece: Mark) -> bool:
        """True if a line of unknown author was first seen after this piece."""
        if isinstance(mark, PieceLine) or isinstance(piece, FirstSeen):
            return False
        return mark.entry > self._pieces[piece.piece].number

    def _alive_in(self, path: str) -> set[Mark]:
        """The current marks of another file. A line that is still there was copied, not moved."""
        if path not in self._alive:
            lines = self._current(path) or []
            version = self._version(path, lines, inf, inf)
            self._alive[path] = set(version.marks)
        return self._alive[path]

    def _was_there(
        self,
        path: str,
        line: bytes,
        piece: int,
        until: float,
    ) -> bool:
        """True if the line is older than the turn: a command may have taken it from a commit."""
        author, _, step, _ = self._pieces[piece]
        if author.began > until:
            return True
        if author.how == "patch":
            return False
        began = int(author.began)  # as git keeps times
        in_commits = [
            lines[line] for time, lines in self._in_commits(path) if time < began
        ]
        before_turn = (step.old or []).count(line)
        return max(in_commits, default=0) > before_turn


def _carried_marks(
    new: Sequence[bytes],
    base: _Version,
    places: Sequence[int],
    removed: Mapping[bytes, list[Mark]],
) -> list[Mark | None]:
    """The marks of lines that were there before; None for the other lines.

    Args:
        places: the index in `base` of each line, or -1.
        removed: the marks of lines that an entry removed anywhere. Those that are found here are
            taken out.
    """
    marks: list[Mark | None] = []
    for line, place in zip(new, places, strict=True):
        if place >= 0:
            marks.append(base.marks[place])
        elif removed.get(line):
            marks.append(removed[line].pop())
        else:
            marks.append(None)
    return marks


def _drop_unsure(lines: Sequence[bytes], authors: list[LineAuthor | None]) -> None:
    """Forget the author of pieces without a distinctive line that occurs once in the file."""
    counts = Counter(lines)
    is_sure = [counts[line] == 1 and _weight(line) >= _DISTINCT for line in lines]
    turns = [author and (author.thread_id, author.turn) for author in authors]
    numbers = range(len(lines))
    for _, group in groupby(numbers, key=turns.__getitem__):
        piece = list(group)
        if not any(is_sure[number] for number in piece):
            for number in piece:
                authors[number] = None


def _has_neighbour(places: Sequence[int], n: int) -> bool:
    """True if the line before or after line `n` is also next to it in the other version.

    Args:
        places: the index in the other version of each line, or -1. That of line `n` is not -1.
    """
    place = places[n]
    if n > 0 and place > 0 and places[n - 1] == place - 1:
        return True
    return n + 1 < len(places) and places[n + 1] == place + 1


def _unmarked(lines: Sequence[bytes], marks: Sequence[Mark]) -> set[bytes]:
    """The lines of unknown author."""
    return {
        line
        for line, mark in zip(lines, marks, strict=True)
        if isinstance(mark, FirstSeen)
    }


def _weight(line: bytes) -> int:
    """The number of letters and digits in a line."""
    return len(_LETTERS.findall(line))


def _likeness(one: Sequence[bytes], other: Sequence[bytes]) -> float:
    """The share of lines that two files have in common."""
    lines = {*one}
    others = {*other}
    common = len(lines & others)
    both = len(lines) + len(others)
    return 2 * common / max(both, 1)


def aligned(old: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """Find the index of the same old line for each new line, or -1. The indices ascend."""
    # Equal lines at both ends are most lines, and need no matcher.
    least = min(len(old), len(new))
    head = 0
    while head < least and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < least - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    places = list(range(head))
    places += [-1] * (len(new) - head - tail)
    places += range(len(old) - tail, len(old))
    old_middle = old[head : len(old) - tail]
    new_middle = new[head : len(new) - tail]
    matcher = SequenceMatcher(None, old_middle, new_middle)
    for match in matcher.get_matching_blocks():
        for offset in range(match.size):
            places[head + match.b + offset] = head + match.a + offset
    return places
