"""Apply the hunks of one section to the text of a file.

Rules of place and of line ends are those of Codex's `apply_patch`, with two differences: additions under
an `@@` line go right after the line that it names, and `@@ -12,3 +12,4 @@ text`, as unified diffs have it,
is taken for a hint where the file has no such line.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.envelope.reader import Hunk
from codex_py.patch.lines import BOM, split_lines
from codex_py.patch.match import LineIndex, Match
from codex_py.patch.report import (
    MAX_EXPLAINED,
    MAX_PLACES,
    HunkReport,
    explain_block,
    joined,
)

_RANGE = re.compile(r"-(\d{1,9})(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)")


class _Change(NamedTuple):
    start: int
    length: int
    lines: Sequence[str]


def edit_text(
    text: str, hunks: Sequence[Hunk], path: str
) -> tuple[str, list[HunkReport]]:
    """Apply all hunks. Returns the text, and reports of the places of the hunks.

    Context lines keep their bytes; new lines get the first line terminator that occurs in the text. The
    result ends in a terminator unless it is empty. A byte order mark at the start stays, and need not
    be in the patch.

    Raises:
        PatchError: of kind `match`; it tells of every hunk that does not fit.
    """
    bom = ""
    if text.startswith(BOM) and not any(BOM in line for line in _searched(hunks)):
        bom = BOM
        text = text[1:]
    lines, terminators = split_lines(text)
    editor = _Editor(lines, hunks, path)
    for number, hunk in enumerate(hunks, 1):
        editor.apply(hunk, number)
    if editor.failures:
        raise PatchError(joined(editor.failures), kind="match")
    # The sort is stable: what is inserted at one place keeps its order.
    changes = sorted(editor.changes, key=lambda change: change.start)
    written = _written(lines, terminators, changes)
    return bom + written, editor.reports


def _searched(hunks: Sequence[Hunk]) -> Iterator[str]:
    for hunk in hunks:
        yield from hunk.headers
        for header in hunk.headers:
            found = _RANGE.fullmatch(header)
            if found:
                yield found[2]
        yield from hunk.old_lines
        # They are searched for to recognise a hunk that has been applied before.
        yield from hunk.new_lines


def _written(
    lines: list[str],
    terminators: list[str],
    changes: list[_Change],
) -> str:
    if terminators and terminators[0]:
        end = terminators[0]
    else:
        end = "\n"
    if terminators and not terminators[-1]:
        terminators[-1] = end
    written: list[str] = []
    at = 0
    for change in [*changes, _Change(len(lines), 0, ())]:
        kept = zip(
            lines[at : change.start], terminators[at : change.start], strict=True
        )
        written += chain.from_iterable(kept)
        written += [line + end for line in change.lines]
        at = change.start + change.length
    return "".join(written)


class _Editor:
    """Finds the hunks of a section one after the other; the search only moves forward."""

    def __init__(
        self,
        lines: list[str],
        hunks: Sequence[Hunk],
        path: str,
    ) -> None:
        self._index = LineIndex(lines, _searched(hunks), path)
        self._lines = lines
        self._path = path
        self._cursor = 0
        self.changes: list[_Change] = []
        self.reports: list[HunkReport] = []
        self.failures: list[str] = []

    def apply(self, hunk: Hunk, number: int) -> None:
        anchor = self._anchor(hunk)
        if anchor is None:
            return
        start, hint = anchor
        old = hunk.old_lines
        new = hunk.new_lines
        if not old:
            if hint is None:
                place = start
            else:
                place = min(max(hint, start), len(self._lines))
            if hunk.end_of_file or not hunk.headers:
                place = len(self._lines)
            self.changes.append(_Change(place, 0, new))
            self.reports.append(HunkReport(self._path, number, hunk.line, place + 1))
            self._cursor = start
            return
        match = self._find(old, hunk, start, hint)
        if match is None and not old[-1]:
            # An extra blank line at the end is forgiven.
            old = old[:-1]
            new = new[:-1] if new and not new[-1] else new
            match = self._find(old, hunk, start, hint)
        if match is None:
            lines = "\n".join(hunk.old_lines)
            failure = f"Failed to find expected lines in {self._path}:\n{lines}"
            if len(self.failures) < MAX_EXPLAINED:
                failure += f"\n{self._explained(hunk, start)}"
            self.failures.append(failure)
            return
        self._cursor = match.start + match.length
        self.changes += _changes(match.start, old, new, hunk.context)
        others: list[int] = []
        if old and not hunk.headers and not hunk.end_of_file:
            # Nothing but the lines themselves says which place is meant.
            others = self._index.places_at(
                match.level, old, match.start + 1, MAX_PLACES
            )
        also_at = tuple([at + 1 for at in others])
        level = match.level
        place = match.start + 1
        report = HunkReport(
            self._path, number, hunk.line, place, level=level, also_at=also_at
        )
        self.reports.append(report)

    def _anchor(self, hunk: Hunk) -> tuple[int, int | None] | None:
        """Follow the headers; None, and a failure, if one of them is not found.

        Returns the start of the search, and the line index near which a unified diff says that the hunk should be.
        """
        start = self._cursor
        hint = None
        for header in hunk.headers:
            match = self._index.find([header], start)
            if match is None and (found := _RANGE.fullmatch(header)):
                hint = int(found[1])
                # Line numbers count from 1, but those of an empty range name the line before.
                if hunk.old_lines:
                    hint = max(hint - 1, 0)
                if found[2]:
                    match = self._index.find([found[2]], start)
                else:
                    match = None
                if match is None:
                    continue
            if match is None:
                failure = f"Failed to find context '{header}' in {self._path}"
                if len(self.failures) < MAX_EXPLAINED:
                    reason = explain_block(
                        self._index, self._lines, [header], (), start, adds=False
                    )
                    failure += f"\n{reason}"
                self.failures.append(failure)
                return None
            start = match.start + 1
        return start, hint

    def _find(
        self, block: Sequence[str], hunk: Hunk, start: int, hint: int | None
    ) -> Match | None:
        # An empty block is found at once, even where it should be the last.
        if hunk.end_of_file and block:
            return self._index.find_last(block, start)
        if hint is None:
            return self._index.find(block, start)
        # The text after a range names what the hunk is in, and may stand anywhere above it.
        return self._index.find_nearest(block, start, hint) or (
            self._index.find_nearest(block, self._cursor, hint)
        )

    def _explained(self, hunk: Hunk, start: int) -> str:
        old = hunk.old_lines
        new = hunk.new_lines
        found = self._index.find(old, start)
        if found:
            return (
                f"The lines are at line {found.start + 1}, which is not the end of the file "
                f"({len(self._lines)} lines): leave out '*** End of File'."
            )
        adds = len(new) > len(hunk.context)
        return explain_block(self._index, self._lines, old, new, start, adds=adds)


def _changes(
    at: int, old: Sequence[str], new: Sequence[str], context: Sequence[tuple[int, int]]
) -> Iterator[_Change]:
    """The runs of changed lines between the context lines of a hunk whose place is line `at`."""
    old_at = new_at = 0
    kept = [pair for pair in context if pair[0] < len(old) and pair[1] < len(new)]
    ends = (len(old), len(new))
    for old_next, new_next in [*kept, ends]:
        if old_next > old_at or new_next > new_at:
            yield _Change(at + old_at, old_next - old_at, new[new_at:new_next])
        old_at = old_next + 1
        new_at = new_next + 1
