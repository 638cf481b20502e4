"""Decides who made a change between two copies of a work tree: the turn, or somebody else."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from codex_py.patch.undo.copies.run_times import Author, RunTimes
from codex_py.protocol.patched_file import PatchedFile


class Evidence(NamedTuple):
    """The facts that tell who changed files between two copies. Pairs begin with the earlier copy."""

    has_run: bool
    """True if anything of the session ran between the copies."""
    written_by_others: Mapping[str, bytes | None]
    """The contents that others wrote through the journal since the turn began, by path.

    None: they removed the file.
    """
    patched: Mapping[Path, PatchedFile]
    """The changes of the session's patches since the earlier copy, by path."""
    branches: tuple[str, str]
    """The branch at each copy."""
    run_times: RunTimes
    """The times in which calls and hooks of the session ran."""
    began_ns: tuple[int, int]
    """The time when each copy began, by the clock of the file system."""

    @property
    def is_switched(self) -> bool:
        """True if the copies are of different branches."""
        return self.branches[0] != self.branches[1]


def author(change: PatchedFile, evidence: Evidence) -> Author:
    """Tell who made a change. The first row that applies decides:

    | Evidence | Author |
    |---|---|
    | nothing of the session ran between the copies | `ANOTHER` |
    | an undo, another session or `codex-py apply` wrote these contents | `ANOTHER` |
    | the file changed while nothing of the session ran | `ANOTHER` |
    | a patch of the session wrote these contents | `SESSION` |
    | the branch was switched between the copies | `UNSURE` |
    | the file changed while something of the session ran | `SESSION` |
    | the time of the change is not known, or something ran for long | `UNSURE` |
    """
    if not evidence.has_run:
        return Author.ANOTHER
    path = str(change.path)
    written = evidence.written_by_others
    if path in written and written[path] == change.new:
        return Author.ANOTHER
    by_time = evidence.run_times.author(change.path, *evidence.began_ns)
    if by_time is Author.ANOTHER:
        return Author.ANOTHER
    patch = evidence.patched.get(change.path)
    if patch is not None and patch.new == change.new:
        return Author.SESSION
    if evidence.is_switched:
        return Author.UNSURE
    return by_time
