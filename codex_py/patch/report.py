"""Report on a patch: the places of its hunks, and what did not fit."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.explain import joined
from codex_py.patch.match import Level


class HunkReport(NamedTuple):
    """The place of one hunk. The fields are those of `codex-py apply --json`."""

    path: str
    """Absolute; of the file as it was called before the patch."""
    hunk: int
    """From 1, in each section of the patch anew."""
    line: int
    """Of the patch, from 1: where the hunk begins."""
    placed: int | None
    """First line of the file that it stands for, from 1, as the file was before; None if left out."""
    offset: int | None = None
    """Lines further down than the patch says; None if it does not say."""
    fuzz: int = 0
    """Lines of context that were ignored, at the end that had more of them."""
    level: Level = Level.EXACT
    also_at: tuple[int, ...] = ()
    """Some other lines where it fits as well."""

    def note(self) -> str | None:
        """A sentence if the place is not exactly the one that the patch says; else None."""
        if self.placed is None or not (self.offset or self.fuzz or self.level or self.also_at):
            return None
        parts: list[str] = []
        if self.offset:
            parts.append(f"offset {self.offset:+d}")
        if self.fuzz:
            parts.append(f"fuzz {self.fuzz}")
        if self.level:
            parts.append(_DIFFERENCES[self.level])
        if self.also_at:
            parts.append(f"it also fits at {', '.join(map(str, self.also_at))}")
        where = f"{self.path}: hunk {self.hunk} was applied at line {self.placed}"
        return f"{where} ({'; '.join(parts)})."

    def ambiguity(self) -> str | None:
        """A sentence that lists the places where the lines fit as well; None if there is one place alone."""
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
    """One reason for each of them."""


@dataclass(slots=True)
class Findings:
    """The results of planning a patch, apart from the changes."""

    notes: list[str] = field(default_factory=list[str])
    """A sentence for each thing that the author of the patch may want to check."""
    hunks: list[HunkReport] = field(default_factory=list[HunkReport])
    """In the order of the patch."""
    rejects: list[Reject] = field(default_factory=list[Reject])
    """The parts that are left out, if that was asked for."""
    conflicts: list[Path] = field(default_factory=list[Path])
    """Absolute paths of files that will have conflict markers in them."""
    failures: list[PatchError] = field(default_factory=list[PatchError])

    def raise_failures(self) -> None:
        """
        Raises:
            PatchError: there are failures; it tells of all of them.
        """
        if self.failures:
            reasons = [error.reason for error in self.failures]
            raise PatchError(joined(reasons), kind=self.failures[0].kind)
