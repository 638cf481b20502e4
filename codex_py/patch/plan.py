"""A patch that has been checked, ready to be written."""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, Self

from codex_py.errors import PatchError
from codex_py.patch.files.commit import Committed, commit
from codex_py.patch.files.handles import join
from codex_py.patch.files.journal import Journal
from codex_py.patch.files.tree import PlannedFile
from codex_py.patch.kind import SUBMODULE
from codex_py.patch.report import HunkReport, Reject
from codex_py.protocol.protected import PROTECTED_NAMES


@dataclass(frozen=True, slots=True)
class FileChangePlan:
    """What becomes of one file, all sections that name it taken together."""

    path: Path
    """Absolute; the old path of a move."""
    kind: Literal["add", "delete", "update"]
    """`add` also where an Add section overwrites a file."""
    move_to: Path | None
    """Absolute."""
    old: bytes | None
    """None where there was no file, or it was deleted unread: too large, or no regular file."""
    new: bytes | None
    """None for a deleted file."""
    replaced: bytes | None = None
    """Contents of a file that a move overwrites."""
    old_mode: int | None = field(default=None, compare=False)
    """File type and permission bits, as `st_mode`; None where there was no file."""
    new_mode: int | None = field(default=None, compare=False)
    """None for a deleted file, and for a new one whose bits the umask decides."""
    replaced_mode: int | None = field(default=None, compare=False)


class PatchPlan:
    """A patch that has been checked against the files as they are."""

    def __init__(
        self,
        files: Sequence[PlannedFile],
        named: Sequence[tuple[Literal["A", "M", "D"], str]],
        notes: Sequence[str],
        hunks: Sequence[HunkReport],
        *,
        rejects: Sequence[Reject] = (),
        conflicts: Sequence[Path] = (),
        emptied: Sequence[str] = (),
        only_read: Sequence[PlannedFile] = (),
    ) -> None:
        self.notes = tuple(notes)
        """What the author of the patch may want to check, a sentence each."""
        self.hunks = tuple(hunks)
        """Where each hunk goes, in the order of the patch."""
        self.rejects = tuple(rejects)
        """What is left out, where that was asked for."""
        self.conflicts = tuple(conflicts)
        """Absolute paths of files that will have conflict markers in them."""
        self.emptied = tuple(emptied)
        """Absolute, real paths of directories that go too, the innermost first."""
        self.locations = {Path(file.location) for file in (*files, *only_read)}
        """Where the files that are changed, or whose contents go into others, really are. Absolute."""
        self._named = named
        self._files = files

    @cached_property
    def changes(self) -> list[FileChangePlan]:
        """In the order of the patch."""
        return _changes(self._files)

    def refused(self, writable: Callable[[str], bool]) -> list[Path]:
        """Those of `locations` that may not be touched, sorted. What a patch copies counts as well."""
        return sorted(path for path in self.locations if not writable(str(path)))

    def checked(self, writable: Callable[[str], bool] | None) -> Self:
        """The plan itself, if it keeps to what may be written; None allows everything.

        Raises:
            PatchError: of kind `refused`.
        """
        if writable is not None and self.refused(writable):
            raise PatchError(
                "patch rejected: writing outside of the project; rejected by user approval settings",
                kind="refused",
            )
        return self

    def commit(self, journal: Journal | None = None) -> Committed:
        """Write everything, or nothing. To be called once.

        Args:
            journal: keeps what is replaced, so that "nothing" holds even if we are killed, and so
                that the patch can be undone.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was read.
        """
        made = [file.location for file in self._files if file.present and file.is_submodule]
        return commit(self._files, journal, obsolete=self.emptied, made=made)

    def summary(self) -> str:
        """What was done, as Codex prints it: paths as written, added, modified, deleted ones in turn."""
        order = sorted(self._named, key=lambda named: "AMD".index(named[0]))
        lines = [
            "Success. Updated the following files:",
            *[f"{kind} {path}" for kind, path in order],
        ]
        return "\n".join(lines) + "\n"


def writable_under(roots: Iterable[Path]) -> Callable[[str], bool]:
    """A rule for one patch: what is under one of these directories, but for the protected names.

    `.git` is protected however deep it lies: git runs what the hooks and the configuration of any
    repository say, that of a submodule or of a vendored one too, and no diff has such a file in it. The
    other names mean something at the top of a project alone.
    """
    real_roots = [str(root.resolve()) for root in roots]
    protected = {_identity(join(root, name)) for root in real_roots for name in PROTECTED_NAMES} - {
        None
    }

    # Most files of a patch are in a few directories under the root.
    @cache
    def is_protected(root: str, name: str) -> bool:
        # Some file systems ignore case, or know an entry by a second, shorter name.
        return name.casefold() in PROTECTED_NAMES or _identity(join(root, name)) in protected

    def writable(path: str) -> bool:
        location = f"{path}/"
        below = [root for root in real_roots if location.startswith(join(root, ""))]
        if not below or "/.git/" in location[len(min(below, key=len)) :].casefold():
            return False
        # A root inside another one is protected too.
        return not any(
            is_protected(root, name)
            for root in below
            if (name := location[len(join(root, "")) :].partition("/")[0])
        )

    return writable


def readable_under(roots: Iterable[Path]) -> Callable[[str], bool]:
    """A rule for one patch: what is under one of these directories."""
    real_roots = tuple([join(str(root.resolve()), "") for root in roots])
    return lambda path: path.startswith(real_roots)


def _identity(path: str) -> tuple[int, int] | None:
    """What a file is known by whatever its name; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _changes(files: Sequence[PlannedFile]) -> list[FileChangePlan]:
    moved = {
        id(file.origin)
        for file in files
        if file.present and file.origin and not file.origin.present
    }
    changes: list[FileChangePlan] = []
    for file in files:
        origin = file.origin
        if file.present and origin is not None and not origin.present:
            changes.append(_change(origin, file, "update", Path(file.path)))
        elif file.present:
            kind = "add" if file.before is None or file.added else "update"
            changes.append(_change(file, file, kind))
        elif file.before is not None and id(file) not in moved:
            changes.append(_change(file, file, "delete"))
    return changes


def _change(
    old: PlannedFile,
    new: PlannedFile,
    kind: Literal["add", "delete", "update"],
    move_to: Path | None = None,
) -> FileChangePlan:
    return FileChangePlan(
        Path(old.path),
        kind,
        move_to,
        old.old,
        new.new,
        new.old if move_to else None,
        old_mode=mode_before(old.before),
        new_mode=mode_after(new),
        replaced_mode=mode_before(new.before) if move_to else None,
    )


def mode_before(before: os.stat_result | None) -> int | None:
    """What was there, as `FileChangePlan.old_mode` has it."""
    if before is None:
        return None
    # What a patch knows of directories is submodules.
    return SUBMODULE if stat.S_ISDIR(before.st_mode) else before.st_mode


def mode_after(file: PlannedFile) -> int | None:
    """What will be there, as `FileChangePlan.new_mode` has it."""
    if not file.present:
        return None
    if file.is_submodule:
        return SUBMODULE
    if file.is_link:
        return stat.S_IFLNK | 0o777
    if file.mode is not None:
        return stat.S_IFREG | file.mode
    is_kept = file.before is not None and stat.S_ISREG(file.before.st_mode)
    return file.before.st_mode if file.before is not None and is_kept else None
