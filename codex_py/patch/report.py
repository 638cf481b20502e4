"""Report on a patch: the places of its hunks, and the hunks that do not fit."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.match import Level, LineIndex


class HunkReport(NamedTuple):
    """The place of one hunk. The fields are those of `codex-py apply --json`."""

    path: str
    """The absolute path of the file before the patch."""
    hunk: int
    """The number of the hunk in its section of the patch, from 1."""
    line: int
    """The line of the patch where the hunk begins, from 1."""
    placed: int | None
    """The line of the old file where the hunk was applied, from 1; None if the hunk was left out."""
    offset: int | None = None
    """How many lines the place is below the one that the patch names; None if it names none."""
    fuzz: int = 0
    """Lines of context that were ignored, at the end that had more of them."""
    level: Level = Level.EXACT
    """The differences that were ignored when the lines were compared."""
    also_at: tuple[int, ...] = ()
    """Some other lines where the hunk fits as well, from 1."""

    def note(self) -> str | None:
        """Describe how the place differs from what the patch says, in a sentence; None if it does not."""
        told: list[str] = []
        if self.offset:
            told.append(f"offset {self.offset:+d}")
        if self.fuzz:
            told.append(f"fuzz {self.fuzz}")
        if self.level:
            told.append(_DIFFERENCES[self.level])
        if self.also_at:
            others = ", ".join(map(str, self.also_at))
            told.append(f"it also fits at {others}")
        if self.placed is None or not told:
            return None
        where = f"{self.path}: hunk {self.hunk} was applied at line {self.placed}"
        return f"{where} ({'; '.join(told)})."

    def ambiguity(self) -> str | None:
        """List all places where the hunk fits, in a sentence; None if there is only one."""
        if self.placed is None or not self.also_at:
            return None
        places = ", ".join(map(str, (self.placed, *self.also_at)))
        return (
            f"{self.path}: hunk {self.hunk} fits at lines {places}, and it is not clear which is meant: "
            "add lines of context, or an @@ line that names what it is in."
        )


_DIFFERENCES = {
    Level.TRAILING_BLANKS: "line ends differ",
    Level.INDENTATION: "indentations differ, and added lines are as given",
    Level.PUNCTUATION: "punctuation and blanks differ, and added lines are as given",
}


class Reject(NamedTuple):
    """The hunks of one file that do not fit."""

    path: Path
    """Absolute."""
    text: bytes
    """A unified diff of these hunks, for a `.rej` file."""
    reasons: tuple[str, ...]
    """One reason for each hunk."""


class Findings:
    """The results of planning a patch, except the changes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """A sentence for each thing that the author of the patch may want to check."""
        self.hunks: list[HunkReport] = []
        """The reports in the order of the patch."""
        self.rejects: list[Reject] = []
        """The parts that are left out, if that was asked for."""
        self.conflicts: list[Path] = []
        """Absolute paths of files that will have conflict markers in them."""
        self.failures: list[PatchError] = []

    def raise_failures(self) -> None:
        """Raise one `PatchError` for all failures, if there are any.

        Its exit code blames the system only if all failures are the system's.
        """
        if not self.failures:
            return
        reasons = [error.reason for error in self.failures]
        failure = PatchError(joined(reasons), kind=self.failures[0].kind)
        failure.exit_code = max(error.exit_code for error in self.failures)
        raise failure


MAX_EXPLAINED = 5
"""The number of failures of one file that are explained. An explanation takes longer than the search
that failed."""
MAX_PLACES = 5
"""The number of other places of an ambiguous hunk that are reported."""
_MAX_SHOWN = 200
"""The number of characters of a line that are shown."""
_MAX_COMPARED = 20_000
"""The number of lines of a file that are compared to find a similar one."""
_MAX_VOTES = 50
"""The number of occurrences of one line that count as votes for places of its block."""
_SIMILAR = 0.6
"""The likeness, from 0 to 1, above which two lines are similar."""


def joined(failures: Sequence[str]) -> str:
    """Join several failures to one message, with the first one at the beginning."""
    text = "\n\n".join(failures[:MAX_EXPLAINED])
    more = len(failures) - MAX_EXPLAINED
    if more > 0:
        text += f"\n\n{more} more failures."
    return text


def explain_block(
    index: LineIndex,
    lines: Sequence[str],
    old: Sequence[str],
    new: Sequence[str],
    start: int,
    *,
    adds: bool,
) -> str:
    """Explain why the old lines of a hunk, or the line that an `@@` names, were not found.

    Args:
        start: index of the line where the search began.
        adds: true if the new lines are more than lines of context.
    """
    early = index.find(old)
    if early:
        return (
            f"It is at line {early.start + 1}, but the search began at line {start + 1}, after the hunk or "
            "the @@ line before: hunks must be in the order of the file and may not share lines."
        )
    if adds and any(new):
        applied = index.find(new)
        if applied:
            return (
                f"The lines that this hunk would make are already at line {applied.start + 1}: "
                "it seems to be already applied."
            )
    return _nearest(lines, [line.rstrip("\n") for line in old])


def _nearest(lines: Sequence[str], block: Sequence[str]) -> str:
    """Describe the place most like the block, and the first difference there, in a sentence.

    Lines have no terminators.
    """
    if not lines:
        return "The file is empty."
    place = _most_alike(lines, block)
    if place is None:
        return f"Nothing in the file ({len(lines)} lines) resembles these lines."
    for at, wanted in enumerate(block, place):
        if not 0 <= at < len(lines):
            found = "the file ends before it"
        elif lines[at] != wanted:
            found = f"the file has {_shown(lines[at])}"
        else:
            continue
        return (
            f"The nearest place is line {max(place, 0) + 1}. First difference, line {at + 1}: "
            f"{found}, the patch {_shown(wanted)}."
        )
    return f"The nearest place is line {place + 1}."


def _most_alike(lines: Sequence[str], block: Sequence[str]) -> int | None:
    """Find the place most like the block: the index of its first line, perhaps before or after the
    file's lines; None if no line is similar."""
    places: dict[str, list[int]] = {}
    keys = [_key(line) for line in block]
    sought = {key for key in keys if key}
    for at, line in enumerate(lines):
        key = _key(line)
        if key in sought:
            places.setdefault(key, []).append(at)
    # Each line of the block votes for the places at which the block would begin.
    votes: Counter[int] = Counter()
    for offset, key in enumerate(keys):
        found = places.get(key, ())[:_MAX_VOTES]
        votes.update(at - offset for at in found if at >= offset)
    if votes:
        [(place, _)] = votes.most_common(1)
        return place
    return _similar(lines, block)


def _similar(lines: Sequence[str], block: Sequence[str]) -> int | None:
    """Find the place at which the longest line of the block is most like the file's line."""
    sizes = [len(line) for line in block]
    offset = sizes.index(max(sizes))
    limit = 2 * _MAX_SHOWN
    wanted = _key(block[offset])[:limit]
    best = _SIMILAR
    place = None
    for at, line in enumerate(lines[:_MAX_COMPARED]):
        likeness = _likeness(_key(line[:limit]), wanted)
        if likeness > best:
            best = likeness
            place = at - offset
    return place


def _likeness(a: str, b: str) -> float:
    """Compare how two lines begin and end: the share of the longer one that is the same, 0 to 1."""
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) < _SIMILAR * len(longer):
        return 0.0
    head = 0
    while head < len(shorter) and shorter[head] == longer[head]:
        head += 1
    rest = len(shorter) - head
    tail = 0
    while tail < rest and shorter[-1 - tail] == longer[-1 - tail]:
        tail += 1
    return (head + tail) / max(len(longer), 1)


def _key(line: str) -> str:
    """Reduce a line to what is compared: its characters without blanks, in lower case."""
    return "".join(line.split()).casefold()


def _shown(line: str) -> str:
    if len(line) > _MAX_SHOWN:
        line = line[:_MAX_SHOWN] + "…"
    return repr(line)
