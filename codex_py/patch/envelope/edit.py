"""Apply the hunks of one section to the text of a file.

The places of hunks and the line ends follow the rules of Codex's `apply_patch`, with two differences:
additions under an `@@` line go right after the line that it names; and `@@ -12,3 +12,4 @@ text`, as
unified diffs have it, is a hint at the line number unless the file has such a line.
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
"""The rest of an `@@` line of a unified diff: its first line number, and the text after the range."""


class _Change(NamedTuple):
    """The replacement of some lines of the file."""

    start: int
    """Index of the first line that is replaced."""
    length: int
    lines: Sequence[str]
    """The new lines, without terminators."""


class _Anchor(NamedTuple):
    """The result of following the `@@` lines of a hunk."""

    start: int
    """Index of the line where the search for the old lines begins."""
    hint: int | None
    """Index of the line near which a unified diff says that the hunk is; None if it does not say."""


def edit_text(
    text: str,
    hunks: Sequence[Hunk],
    path: str,
) -> tuple[str, list[HunkReport]]:
    """Apply all hunks. Returns the new text, and a report on the place of each hunk.

    Context lines keep their bytes; new lines get the first line terminator that occurs in the text. The
    result ends in a terminator unless it is empty. A byte order mark at the start stays, and need not
    be in the patch.

    Args:
        path: the file's path, for reports and errors.

    Raises:
        PatchError: of kind `match`; the message names every hunk that does not fit.
    """
    bom = ""
    if text.startswith(BOM):
        is_in_patch = any(BOM in line for line in _searched(hunks))
        if not is_in_patch:
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
    """Every line that the file is searched for."""
    for hunk in hunks:
        yield from hunk.headers
        for header in hunk.headers:
            found = _RANGE.fullmatch(header)
            if found:
                yield found[2]
        yield from hunk.old_lines
        # New lines that are found show that a hunk has been applied before.
        yield from hunk.new_lines


def _written(
    lines: list[str],
    terminators: list[str],
    changes: list[_Change],
) -> str:
    """Write the lines of a file with the changes, which are sorted by their places."""
    end = "\n"
    if terminators and terminators[0]:
        end = terminators[0]
    if terminators and not terminators[-1]:
        terminators[-1] = end
    written: list[str] = []
    at = 0
    after_the_last = _Change(len(lines), 0, ())
    for change in [*changes, after_the_last]:
        kept = lines[at : change.start]
        kept_terminators = terminators[at : change.start]
        pairs = zip(kept, kept_terminators, strict=True)
        written += chain.from_iterable(pairs)
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
        """Find the place of the next hunk, and add its changes and report, or a failure."""
        anchor = self._anchor(hunk)
        if anchor is None:
            return
        if hunk.old_lines:
            self._replace(hunk, number, anchor)
        else:
            self._insert(hunk, number, anchor)

    def _insert(self, hunk: Hunk, number: int, anchor: _Anchor) -> None:
        """Add the lines of a hunk that has no old ones."""
        start, hint = anchor
        last = len(self._lines)
        if hunk.end_of_file or not hunk.headers:
            place = last
        elif hint is None:
            place = start
        else:
            place = min(max(hint, start), last)
        self.changes.append(_Change(place, 0, hunk.new_lines))
        report = HunkReport(self._path, number, hunk.line, placed=place + 1)
        self.reports.append(report)
        self._cursor = start

    def _replace(self, hunk: Hunk, number: int, anchor: _Anchor) -> None:
        """Find the old lines of a hunk and replace them."""
        old = hunk.old_lines
        new = hunk.new_lines
        match = self._find(old, hunk, anchor)
        if match is None and not old[-1]:
            # An extra blank line at the end is forgiven.
            old = old[:-1]
            if new and not new[-1]:
                new = new[:-1]
            match = self._find(old, hunk, anchor)
        if match is None:
            self._fail_to_find(hunk, anchor.start)
            return
        self._cursor = match.start + match.length
        self.changes += _changes(match.start, old, new, hunk.context)
        others: list[int] = []
        if old and not hunk.headers and not hunk.end_of_file:
            # Nothing but the lines themselves says which place is meant.
            others = self._index.places_at(
                match.level, old, match.start + 1, MAX_PLACES
            )
        report = HunkReport(
            self._path,
            number,
            hunk.line,
            match.start + 1,
            level=match.level,
            also_at=tuple([at + 1 for at in others]),
        )
        self.reports.append(report)

    def _fail_to_find(self, hunk: Hunk, start: int) -> None:
        lines = "\n".join(hunk.old_lines)
        failure = f"Failed to find expected lines in {self._path}:\n{lines}"
        if len(self.failures) < MAX_EXPLAINED:
            failure += f"\n{self._explained(hunk, start)}"
        self.failures.append(failure)

    def _anchor(self, hunk: Hunk) -> _Anchor | None:
        """Follow the headers of a hunk. Adds a failure and returns None if one is not found."""
        start = self._cursor
        hint = None
        for header in hunk.headers:
            match = self._index.find([header], start)
            if match is None:
                found = _RANGE.fullmatch(header)
                if found is None:
                    self._fail_to_follow(header, start)
                    return None
                hint = int(found[1])
                # Line numbers count from 1, but that of an empty range names the line before.
                if hunk.old_lines:
                    hint = max(hint - 1, 0)
                if found[2]:
                    match = self._index.find([found[2]], start)
            if match is not None:
                start = match.start + 1
        return _Anchor(start, hint)

    def _fail_to_follow(self, header: str, start: int) -> None:
        failure = f"Failed to find context '{header}' in {self._path}"
        if len(self.failures) < MAX_EXPLAINED:
            reason = explain_block(
                self._index, self._lines, [header], (), start, adds=False
            )
            failure += f"\n{reason}"
        self.failures.append(failure)

    def _find(
        self,
        block: Sequence[str],
        hunk: Hunk,
        anchor: _Anchor,
    ) -> Match | None:
        start, hint = anchor
        # An empty block is found at once, even where it should be the last.
        if hunk.end_of_file and block:
            return self._index.find_last(block, start)
        if hint is None:
            return self._index.find(block, start)
        match = self._index.find_nearest(block, start, hint)
        if match is not None:
            return match
        # The text after a range names a line that may stand anywhere above the hunk, so a line of
        # that text may have been found too far down.
        return self._index.find_nearest(block, self._cursor, hint)

    def _explained(self, hunk: Hunk, start: int) -> str:
        """Explain why the old lines were not found from line `start` on."""
        old = hunk.old_lines
        new = hunk.new_lines
        found = self._index.find(old, start)
        if found:
            return (
                f"The lines are at line {found.start + 1}, which is not the end of the file "
                f"({len(self._lines)} lines): leave out '*** End of File'."
            )
        adds = len(new) > len(hunk.context)
        return explain_block(
            self._index,
            self._lines,
            old,
            new,
            start,
            adds=adds,
        )


def _changes(
    at: int,
    old: Sequence[str],
    new: Sequence[str],
    context: Sequence[tuple[int, int]],
) -> Iterator[_Change]:
    """The runs of changed lines between the context lines of a hunk whose place is line `at`.

    Args:
        context: the indices of each context line in `old` and `new`; those beyond their ends are
            ignored.
    """
    old_at = 0
    new_at = 0
    stops = [
        (old_index, new_index)
        for old_index, new_index in context
        if old_index < len(old) and new_index < len(new)
    ]
    stops.append((len(old), len(new)))
    for old_next, new_next in stops:
        if old_next > old_at or new_next > new_at:
            lines = new[new_at:new_next]
            yield _Change(at + old_at, old_next - old_at, lines)
        old_at = old_next + 1
        new_at = new_next + 1
