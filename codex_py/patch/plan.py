"""Plan a patch of either format. A plan has been checked, and is ready to be written."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Generic, Literal, Self, TypeVar

from codex_py.errors import PatchError
from codex_py.patch.files.change import (
    EntryChange,
    JournalEntry,
    patched_files,
    where_written,
)
from codex_py.patch.files.commit import Committed, commit
from codex_py.patch.files.handles import join
from codex_py.patch.files.journal import Journal
from codex_py.patch.report import Findings
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.protected import PROTECTED_NAMES, spelt_out

_PartT = TypeVar("_PartT")


class Rejected(Exception):
    """A part does not fit, and the findings have that already."""


class Planner(ABC, Generic[_PartT]):
    """Plans the parts of a patch, one after the other. The subclass of a format says what a part
    does to the tree."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.named: list[tuple[Literal["A", "M", "D"], str]] = []
        """The paths of the parts that fit, as written."""
        self._failed: set[str] = set()

    def run(self, parts: Iterable[_PartT]) -> None:
        """Plan all parts. After a failed part, later parts of the same files are skipped: they
        cannot be judged."""
        for part in parts:
            paths: Collection[str] = ()
            try:
                paths = self._paths(part)
                if self._failed.isdisjoint(paths):
                    self._plan(part)
            except (PatchError, Rejected) as error:
                self._failed.update(paths)
                if isinstance(error, PatchError):
                    self._reject(part, error)

    @abstractmethod
    def _paths(self, part: _PartT) -> Collection[str]:
        """The absolute paths that a part names. Raises a `PatchError` if no file can have one of
        them."""

    @abstractmethod
    def _plan(self, part: _PartT) -> None:
        """Plan one part. Raises a `PatchError` or `Rejected` if it does not fit."""

    @abstractmethod
    def _reject(self, part: _PartT, error: PatchError, /) -> None:
        """Note why a part does not fit."""


class PatchPlan:
    """A patch that has been checked against the files as they are.

    Args:
        findings: the plan has them as `notes`, `hunks`, `rejects` and `conflicts`.
    """

    def __init__(
        self,
        files: Sequence[EntryChange],
        named: Sequence[tuple[Literal["A", "M", "D"], str]],
        findings: Findings,
        *,
        emptied: Sequence[str] = (),
        only_read: Sequence[EntryChange] = (),
    ) -> None:
        self.notes = tuple(findings.notes)
        self.hunks = tuple(findings.hunks)
        self.rejects = tuple(findings.rejects)
        self.conflicts = tuple(findings.conflicts)
        self.emptied = tuple(emptied)
        """Absolute, real paths of directories that are removed too, the innermost first."""
        self._named = named
        self._files = files
        self._only_read = only_read

    @cached_property
    def changes(self) -> list[PatchedFile]:
        """The changes in the order of the patch."""
        return patched_files(self._files)

    @property
    def links(self) -> list[PatchedFile]:
        """The changes that make symbolic links, or change them. Most patches have none."""
        made = patched_files([file for file in self._files if file.is_link])
        return [change for change in made if change.link is not None]

    @cached_property
    def locations(self) -> set[Path]:
        """The real, absolute paths of files that are changed, or whose contents go into others."""
        return {Path(file.location) for file in (*self._files, *self._only_read)}

    def changes_by_place(self, outside: Collection[Path]) -> list[PatchedFile]:
        """The `changes`. Files at the `locations` in `outside` are named by these, not by links
        that lead there."""
        return where_written(
            self.changes, [f for f in self._files if Path(f.location) in outside]
        )

    def refused(self, writable: Callable[[str], bool]) -> list[Path]:
        """The `locations` that may not be touched, sorted. A file that the patch copies counts as well."""
        places = {file.location for file in (*self._files, *self._only_read)}
        return sorted(Path(place) for place in places if not writable(place))

    def checked(self, writable: Callable[[str], bool] | None) -> Self:
        """Return the plan itself. Raises a `PatchError` of kind `refused` if it touches what is not
        `writable`."""
        if writable is not None and self.refused(writable):
            raise PatchError(
                "patch rejected: writing outside of the project; rejected by user approval settings",
                kind="refused",
            )
        return self

    def commit(self, journal: Journal | None = None) -> Committed:
        """Write everything, or nothing. Call this once.

        Args:
            journal: keeps what is replaced, so that "nothing" holds even if we are killed, and so
                that the patch can be undone.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was read.
        """
        made = [file.location for file in self._files if file.fate == "submodule"]
        return commit(
            JournalEntry(list(self._files), obsolete=list(self.emptied), made=made),
            journal,
        )

    def summary(self) -> str:
        """The changed paths as Codex prints them: as written; added, modified, then deleted ones."""
        order = sorted(self._named, key=lambda named: "AMD".index(named[0]))
        lines = [f"{kind} {path}\n" for kind, path in order]
        return "".join(["Success. Updated the following files:\n", *lines])


def writable_under(roots: Iterable[Path]) -> Callable[[str], bool]:
    """A rule for one patch: allow paths under one of these directories, except the protected names.

    `.git` is protected however deep it lies: git runs what the hooks and the configuration of any
    repository say, that of a submodule or of a vendored one too, and no diff has such a file in it. The
    other names mean something at the top of a project alone.
    """
    real_roots = [str(root.resolve()) for root in roots]
    protected = {
        _identity(join(root, name)) for root in real_roots for name in PROTECTED_NAMES
    } - {None}

    spelt = cache(spelt_out)

    # Most files of a patch are in a few directories under the root.
    @cache
    def is_protected(root: str, name: str) -> bool:
        # Some file systems ignore case, or know an entry by other names.
        return (
            spelt(name) in PROTECTED_NAMES or _identity(join(root, name)) in protected
        )

    def writable(path: str) -> bool:
        location = f"{path}/"
        below = [root for root in real_roots if location.startswith(join(root, ""))]
        if not below:
            return False
        outermost = min(below, key=len)
        names = location[len(outermost) :].split("/")
        if ".git" in map(spelt, names):
            return False
        # A root inside another one is protected too.
        for root in below:
            name, _, _ = location[len(join(root, "")) :].partition("/")
            if name and is_protected(root, name):
                return False
        return True

    return writable


def readable_under(roots: Iterable[Path]) -> Callable[[str], bool]:
    """A rule for one patch: allow paths under one of these directories."""
    real = [str(root.resolve()) for root in roots]
    real_roots = tuple([join(root, "") for root in real])
    return lambda path: path.startswith(real_roots)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino
