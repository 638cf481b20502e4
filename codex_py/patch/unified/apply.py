"""Find the places of a unified diff's hunks in a file, and apply them, byte for byte.

A hunk goes to the first of these places that fits:

1. the place that its line numbers give, moved by the offset of the hunk before it;
2. the nearest place where its lines are;
3. as with `patch`, the nearest place where they are without its outermost lines of context (fuzz);
4. the nearest place where only blanks and punctuation differ.

As with `git apply`, a hunk that ends with a change instead of context belongs at the end of the file,
if it fits there.
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
    """A report for each hunk, in order."""
    failures: list[tuple[DiffHunk, str]]
    """The hunks that do not fit, each with the reason."""


class _Place(NamedTuple):
    """A place where a hunk fits. Lines of context that differ may be ignored at its ends."""

    start: int
    """The index of the line of the file where the hunk begins, without ignored lines."""
    skipped: int = 0
    """The number of lines that are ignored at the start of the hunk."""
    cut: int = 0
    """The number of lines that are ignored at its end."""
    fuzz: int = 0
    level: Level = Level.EXACT
    others: tuple[int, ...] = ()
    """The line indices of other places."""


def _attempts() -> Iterator[tuple[int, Level]]:
    """The fuzz and the level of each attempt: exact matches first, then less fuzz before more."""
    for fuzz in range(_MAX_FUZZ + 1):
        yield fuzz, Level.EXACT
    for fuzz in range(_MAX_FUZZ + 1):
        for level in Level:
            if level is not Level.EXACT:
                yield fuzz, level


def apply_hunks(
    data: bytes,
    hunks: Sequence[DiffHunk],
    path: str,
    *,
    strict: bool,
) -> Applied:
    """Apply the hunks, in order and without overlap, leaving out those that do not fit.

    Args:
        path: names the file in reports and reasons.
        strict: lines must be exactly those of the diff, and must not fit several places, unless the
            diff names one of them. As with `git apply`, a hunk that lacks context on one side has to
            be at that end of the file.
    """
    applied = _applied_as_written(data, hunks, path)
    if applied:
        return applied
    lines = list(BytesIO(data))
    return _Applier(lines, hunks, path, strict=strict).run()


def _applied_as_written(
    data: bytes,
    hunks: Sequence[DiffHunk],
    path: str,
) -> Applied | None:
    """Apply the hunks without splitting the file into lines.

    This suffices for most diffs. Returns None if a hunk does not fit exactly at its line number.
    """
    reports: list[HunkReport] = []
    written: list[bytes] = []
    at = 0
    line = 0
    for number, hunk in enumerate(hunks, 1):
        block = b"".join(hunk.old)
        if not block:
            return None
        start = data.find(block, at)
        if start < 0:
            return None
        if start > 0 and data[start - 1] != _NEWLINE:
            # It was found in the middle of a line.
            return None
        line += data.count(b"\n", at, start)
        end = start + len(block)
        if line != hunk.at or (end != len(data) and _ends_file(hunk)):
            return None
        written += (data[at:start], *hunk.new)
        at = end
        line += len(hunk.old)
        reports.append(
            HunkReport(
                path,
                number,
                hunk.line,
                hunk.at + 1,
                0,
            )
        )
    written.append(data[at:])
    return Applied(b"".join(written), reports, [])


class _Applier:
    """Finds a place for each hunk of a file, in order."""

    def __init__(
        self,
        lines: list[bytes],
        hunks: Sequence[DiffHunk],
        path: str,
        *,
        strict: bool,
    ) -> None:
        self.lines = lines
        self.hunks = hunks
        self.path = path
        self.strict = strict
        self.cursor = 0
        """Index of the line where the search for the next hunk begins."""
        self.offset = 0
        """The lines from the last hunk's own line number to its place."""
        self.written = list[bytes]()
        """The lines of the result, up to the cursor."""
        self.failures = list[tuple[DiffHunk, str]]()

    def run(self) -> Applied:
        reports = list[HunkReport]()
        for number, hunk in enumerate(self.hunks, 1):
            place = self._place(hunk)
            reason = None
            if place is None:
                reason = self._reason_not_found(hunk)
            elif self.strict:
                reason = self._objection(hunk, place)
            if place is None or reason is not None:
                failure = f"{self.path}: hunk {number} {reason}"
                self.failures.append((hunk, failure))
                reports.append(HunkReport(self.path, number, hunk.line, None))
            else:
                self._write(hunk, place)
                reports.append(self._report(hunk, number, place))
        self.written += self.lines[self.cursor :]
        # If the file is not the one that the diff was made for, a line without a newline may come
        # before others.
        ended = list(map(_ended, self.written[:-1]))
        ended += self.written[-1:]
        return Applied(b"".join(ended), reports, self.failures)

    def _write(self, hunk: DiffHunk, place: _Place) -> None:
        """Write the lines before a hunk and those that it makes, and move on behind it."""
        self.written += self.lines[self.cursor : place.start]
        if place.fuzz or place.level:
            self.written += self._replacement(hunk, place)
        else:
            self.written += hunk.new
        length = len(hunk.old) - place.skipped - place.cut
        self.cursor = place.start + length
        self.offset = place.start - place.skipped - hunk.at

    def _report(self, hunk: DiffHunk, number: int, place: _Place) -> HunkReport:
        # Lines count from 1, and those that are ignored at the start count too.
        shift = 1 - place.skipped
        return HunkReport(
            self.path,
            number,
            hunk.line,
            placed=place.start + shift,
            offset=self.offset,
            fuzz=place.fuzz,
            level=place.level,
            also_at=tuple([start + shift for start in place.others]),
        )

    def _reason_not_found(self, hunk: DiffHunk) -> str:
        reason = f"(line {hunk.line} of the patch) does not fit at line {hunk.at + 1}."
        if len(self.failures) < MAX_EXPLAINED:
            reason += f" {self._explained(hunk)}"
        return reason

    @cached_property
    def _index(self) -> LineIndex:
        sides = chain.from_iterable((hunk.old, hunk.new) for hunk in self.hunks)
        wanted = chain.from_iterable(map(_text, sides))
        return LineIndex(_text(self.lines), wanted, self.path)

    def _place(self, hunk: DiffHunk) -> _Place | None:
        target = hunk.at + self.offset
        if not hunk.old:
            return _Place(min(max(target, self.cursor), len(self.lines)))
        if target == hunk.at and self._fits_at(hunk, target):
            return _Place(target)
        for fuzz, level in _attempts():
            place = self._nearest(hunk, target, fuzz, level)
            if place is not None:
                return place
        return None

    def _fits_at(self, hunk: DiffHunk, at: int) -> bool:
        """True if the lines from this index on are exactly the old lines of a hunk."""
        end = at + len(hunk.old)
        if at < self.cursor or self.lines[at:end] != hunk.old:
            return False
        return end == len(self.lines) or not _ends_file(hunk)

    def _nearest(
        self,
        hunk: DiffHunk,
        target: int,
        fuzz: int,
        level: Level,
    ) -> _Place | None:
        """Find the place nearest to the line index `target`, with this fuzz and level."""
        context = max(hunk.leading, hunk.trailing)
        if fuzz > context:
            return None
        skipped = max(fuzz + hunk.leading - context, 0)
        cut = max(fuzz + hunk.trailing - context, 0)
        block = hunk.old[skipped : len(hunk.old) - cut]
        if not block:
            return None
        # Blank lines alone would fit in too many places.
        if fuzz and not any(map(bytes.strip, block)):
            return None
        sought = _text(block)
        start = None
        last = len(self.lines) - len(block)
        belongs_at_end = not cut and _ends_file(hunk)
        if belongs_at_end and last >= self.cursor:
            start = self._index.nearest_at(level, sought, last, last)
        if start is None:
            start = self._index.nearest_at(level, sought, self.cursor, target + skipped)
        if start is None:
            return None
        places = self._index.places_at(level, sought, self.cursor, MAX_PLACES + 1)
        others = tuple([at for at in places if at != start][:MAX_PLACES])
        is_named_by_diff = start - skipped == hunk.at and not fuzz and not level
        if is_named_by_diff or (belongs_at_end and start == last):
            # Only one line has that number, and the file has only one end.
            others = ()
        return _Place(start, skipped, cut, fuzz, level, others)

    def _replacement(self, hunk: DiffHunk, place: _Place) -> list[bytes]:
        """The new lines at a place that does not fit exactly; context keeps the bytes of the file."""
        body = hunk.body[place.skipped : len(hunk.body) - place.cut]
        at = place.start
        size = len(hunk.old) - place.skipped - place.cut
        file_has_crlf = _has_crlf(self.lines[at : at + size])
        changes_ends = place.level and file_has_crlf != _has_crlf(hunk.old)
        end = b"\r\n" if file_has_crlf else b"\n"
        new: list[bytes] = []
        for line in body:
            if line[0] == _PLUS:
                added = line[1:]
                if changes_ends:
                    added = added.rstrip(b"\r\n") + end
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
        has_context = hunk.leading or hunk.trailing
        if not has_context and place.start != hunk.at + self.offset:
            return f"does not fit at line {hunk.at + 1}, and has no context that says it goes to {line}."
        end = place.start + len(hunk.old)
        if _ends_file(hunk) and end < len(self.lines):
            return f"is for the end of a file; where it fits, at line {line}, others follow."
        if hunk.at == 0 and hunk.leading < hunk.trailing and place.start:
            return f"is for the beginning of a file; it fits at line {line}."
        return None

    def _explained(self, hunk: DiffHunk) -> str:
        """Explain why a hunk does not fit."""
        lines = [text.rstrip("\n") for text in _text(self.lines)]
        old = _text(hunk.old)
        new = _text(hunk.new)
        adds = len(new) > hunk.leading + hunk.trailing
        return explain_block(
            self._index,
            lines,
            old,
            new,
            self.cursor,
            adds=adds,
        )


def _ends_file(hunk: DiffHunk) -> bool:
    """True if a hunk shows that nothing comes after it: it has context, but none at its end, or its
    last line has no newline."""
    if not hunk.trailing and hunk.leading:
        return True
    last_lines = hunk.old[-1:] + hunk.new[-1:]
    return any(not line.endswith(b"\n") for line in last_lines)


def _has_crlf(lines: Sequence[bytes]) -> bool:
    """True if all lines that have a newline end in CRLF."""
    return all(line.endswith(b"\r\n") for line in lines if line.endswith(b"\n"))


def _ended(line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return line
    return line + b"\n"


def _text(lines: Sequence[bytes]) -> list[str]:
    return [line.decode(errors="surrogateescape") for line in lines]
