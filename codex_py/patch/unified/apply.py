"""Find the places of a unified diff's hunks in a file, and apply them, byte for byte.

A hunk goes to the place that its line numbers give, moved by the offset of the hunk before it, if
it fits there. If not, it goes to the nearest place that fits; then, as with `patch`, to the nearest
that fits without its outermost lines of context (fuzz); and last, to one where blanks and
punctuation differ. As with `git apply`, a hunk that ends with a change instead of context belongs
at the end of the file, if it fits there.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from io import BytesIO
from itertools import chain
from typing import NamedTuple

from codex_py.patch.match import Level, LineIndex
from codex_py.patch.report import MAX_EXPLAINED, MAX_PLACES, HunkReport, explain_block
from codex_py.patch.unified.hunks import DiffHunk

_MAX_FUZZ = 2
_PLUS = ord("+")
_MINUS = ord("-")
_NEWLINE = ord("\n")


class Applied(NamedTuple):
    """The result of applying the hunks of one file."""

    data: bytes
    """The file after the hunks that fit."""
    reports: list[HunkReport]
    """One for each hunk."""
    failures: list[tuple[DiffHunk, str]]
    """The hunks that do not fit, and why."""


class _Place(NamedTuple):
    start: int
    """The index of the first line that the hunk stands for, without ignored lines."""
    skipped: int = 0
    """The number of lines that are ignored at the start of the hunk."""
    cut: int = 0
    """The number of lines that are ignored at its end."""
    fuzz: int = 0
    level: Level = Level.EXACT
    others: tuple[int, ...] = ()
    """The line indices of other places."""


def _attempts() -> Iterator[tuple[int, Level]]:
    """The fuzz and the level of each attempt, in order.

    Exact matches come before others, and then less fuzz before more.
    """
    for fuzz in range(_MAX_FUZZ + 1):
        yield fuzz, Level.EXACT
    for fuzz in range(_MAX_FUZZ + 1):
        for level in Level:
            if level is not Level.EXACT:
                yield fuzz, level


def apply_hunks(
    data: bytes, hunks: Sequence[DiffHunk], path: str, *, strict: bool
) -> Applied:
    """Apply the hunks, in order and without overlap, leaving out those that do not fit.

    Args:
        path: names the file in reports and reasons.
        strict: lines must be as the diff says, and must not fit several places, unless one of these
            is the place that the diff says. As with `git apply`, a hunk that lacks context on one
            side has to be at that end of the file.
    """
    applied = _applied_as_written(data, hunks, path)
    if applied:
        return applied
    lines = list(BytesIO(data))
    return _Applier(lines, hunks, path, strict=strict).run()


def _applied_as_written(
    data: bytes, hunks: Sequence[DiffHunk], path: str
) -> Applied | None:
    """The result if every hunk fits exactly the lines that it names; else None.

    Most diffs do, and then the file need not be split into lines.
    """
    reports: list[HunkReport] = []
    written: list[bytes] = []
    at = 0
    line = 0
    for number, hunk in enumerate(hunks, 1):
        block = b"".join(hunk.old)
        start = data.find(block, at) if block else -1
        if start < 0 or (start and data[start - 1] != _NEWLINE):
            return None
        line += data.count(b"\n", at, start)
        end = start + len(block)
        if line != hunk.at or (end != len(data) and _ends_file(hunk)):
            return None
        written += (data[at:start], *hunk.new)
        at = end
        line += len(hunk.old)
        reports.append(HunkReport(path, number, hunk.line, hunk.at + 1, 0))
    written.append(data[at:])
    return Applied(b"".join(written), reports, [])


class _Applier:
    def __init__(
        self, lines: list[bytes], hunks: Sequence[DiffHunk], path: str, *, strict: bool
    ) -> None:
        self.lines = lines
        self.hunks = hunks
        self.path = path
        self.strict = strict
        self.cursor = 0
        self.carried = 0
        """The offset of the last hunk: the lines from its own line number to its place."""

    def run(self) -> Applied:
        reports = list[HunkReport]()
        failures = list[tuple[DiffHunk, str]]()
        lines = self.lines
        written = list[bytes]()
        for number, hunk in enumerate(self.hunks, 1):
            place = self._place(hunk)
            reason = None
            if place is None:
                reason = f"(line {hunk.line} of the patch) does not fit at line {hunk.at + 1}."
                if len(failures) < MAX_EXPLAINED:
                    reason += f" {self._explained(hunk)}"
            elif self.strict:
                reason = self._objection(hunk, place)
            if place is None or reason is not None:
                failures.append((hunk, f"{self.path}: hunk {number} {reason}"))
                reports.append(HunkReport(self.path, number, hunk.line, None))
                continue
            length = len(hunk.old) - place.skipped - place.cut
            written += lines[self.cursor : place.start]
            if place.fuzz or place.level:
                written += self._replacement(hunk, place)
            else:
                written += hunk.new
            self.cursor = place.start + length
            self.carried = place.start - place.skipped - hunk.at
            first = 1 - place.skipped
            also_at = tuple([start + first for start in place.others])
            where = (
                place.start + first,
                self.carried,
                place.fuzz,
                place.level,
                also_at,
            )
            reports.append(HunkReport(self.path, number, hunk.line, *where))
        written += lines[self.cursor :]
        # If the file is not the one that the diff was made for, a line without a newline may come
        # before others.
        last = written[-1:]
        data = b"".join([*map(_ended, written[:-1]), *last])
        return Applied(data, reports, failures)

    @cached_property
    def _index(self) -> LineIndex:
        sides = chain.from_iterable((hunk.old, hunk.new) for hunk in self.hunks)
        wanted = chain.from_iterable(map(_text, sides))
        return LineIndex(_text(self.lines), wanted, self.path)

    def _place(self, hunk: DiffHunk) -> _Place | None:
        old = hunk.old
        lines = self.lines
        target = hunk.at + self.carried
        if not old:
            return _Place(min(max(target, self.cursor), len(lines)))
        end = target + len(old)
        if (
            target >= self.cursor
            and lines[target:end] == old
            and (end == len(lines) or not _ends_file(hunk))
            and target == hunk.at
        ):
            return _Place(target)
        for fuzz, level in _attempts():
            place = self._fuzzy(hunk, target, fuzz, level)
            if place is not None:
                return place
        return None

    def _fuzzy(
        self, hunk: DiffHunk, target: int, fuzz: int, level: Level
    ) -> _Place | None:
        context = max(hunk.leading, hunk.trailing)
        skipped = max(fuzz + hunk.leading - context, 0)
        cut = max(fuzz + hunk.trailing - context, 0)
        block = hunk.old[skipped : len(hunk.old) - cut]
        # The remaining lines must say something about the place.
        if fuzz > context or not any(map(bytes.strip, block) if fuzz else block):
            return None
        sought = _text(block)
        start = None
        last = len(self.lines) - len(block)
        if not cut and _ends_file(hunk) and last >= self.cursor:
            start = self._index.nearest_at(level, sought, last, last)
        if start is None:
            start = self._index.nearest_at(level, sought, self.cursor, target + skipped)
        if start is None:
            return None
        places = self._index.places_at(level, sought, self.cursor, MAX_PLACES + 1)
        others = tuple([at for at in places if at != start][:MAX_PLACES])
        is_said = start - skipped == hunk.at and not fuzz and not level
        if is_said or (not cut and start == last and _ends_file(hunk)):
            # Only one line has that number, and the file has only one end.
            others = ()
        return _Place(start, skipped, cut, fuzz, level, others)

    def _replacement(self, hunk: DiffHunk, place: _Place) -> list[bytes]:
        """The new lines; context keeps the bytes of the file."""
        body = hunk.body[place.skipped : len(hunk.body) - place.cut]
        at = place.start
        size = len(hunk.old) - place.skipped - place.cut
        there = self.lines[at : at + size]
        file_has_crlf = all(
            line.endswith(b"\r\n") for line in there if line.endswith(b"\n")
        )
        hunk_has_crlf = all(
            line.endswith(b"\r\n") for line in hunk.old if line.endswith(b"\n")
        )
        new: list[bytes] = []
        for line in body:
            if line[0] == _PLUS:
                added = line[1:]
                if place.level and file_has_crlf != hunk_has_crlf:
                    added = added.rstrip(b"\r\n")
                    added += b"\r\n" if file_has_crlf else b"\n"
                new.append(added)
                continue
            if line[0] != _MINUS:
                new.append(self.lines[at])
            at += 1
        return new

    def _objection(self, hunk: DiffHunk, place: _Place) -> str | None:
        """The reason why strict mode refuses a place; None if it accepts it."""
        line = place.start - place.skipped + 1
        if place.fuzz or place.level:
            return f"does not fit exactly: at line {line}, some of its context differs."
        if place.others:
            numbers = ", ".join(str(at + 1) for at in place.others)
            return f"does not fit at line {hunk.at + 1}, but at several others: {line}, {numbers}."
        if not hunk.old and place.start != hunk.at:
            return f"should go to line {hunk.at + 1}, which the file does not have."
        if (
            not hunk.leading
            and not hunk.trailing
            and place.start != hunk.at + self.carried
        ):
            return f"does not fit at line {hunk.at + 1}, and has no context that says it goes to {line}."
        end = place.start + len(hunk.old)
        if _ends_file(hunk) and end < len(self.lines):
            return f"is for the end of a file; where it fits, at line {line}, others follow."
        if hunk.at == 0 and hunk.leading < hunk.trailing and place.start:
            return f"is for the beginning of a file; it fits at line {line}."
        return None

    def _explained(self, hunk: DiffHunk) -> str:
        lines = [text.rstrip("\n") for text in _text(self.lines)]
        old = _text(hunk.old)
        new = _text(hunk.new)
        adds = len(new) > hunk.leading + hunk.trailing
        return explain_block(self._index, lines, old, new, self.cursor, adds=adds)


def _ends_file(hunk: DiffHunk) -> bool:
    """True if the hunk shows that nothing comes after it: it has context, but none at its end."""
    if not hunk.trailing and hunk.leading:
        return True
    last_lines = [*hunk.old[-1:], *hunk.new[-1:]]
    return any(not line.endswith(b"\n") for line in last_lines)


def _ended(line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return line
    return line + b"\n"


def _text(lines: Sequence[bytes]) -> list[str]:
    return [line.decode(errors="surrogateescape") for line in lines]
