"""The plan of a patch, checked and ready to be written, and what the planners of both formats share."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Self, TypeVar

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


class UnsavedText(NamedTuple):
    """The contents of a file in an editor, which differ from those on disk."""

    disk: bytes
    editor: bytes


class Rejected(Exception):
    """Raised for a part that does not fit, once the findings say so."""


class Planner(ABC, Generic[_PartT]):
    """Plans the parts of a patch, one after the other. Each format has a subclass, which knows what
    a part does to the tree."""

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
        """Return the absolute paths that a part names. Raises a `PatchError` if one is not a
        possible path."""

    @abstractmethod
    def _plan(self, part: _PartT) -> None:
        """Plan one part. Raises a `PatchError` or `Rejected` if it does not fit."""

    @abstractmethod
    def _reject(self, part: _PartT, error: PatchError, /) -> None:
        """Note why a part does not fit."""


class PatchPlan:
    """A patch that has been checked against the files as they are.

    Args:
        files: the entries that the patch changes.
        named: the paths of its parts, as written, each with a letter: added, modified or deleted.
        findings: the source of `notes`, `hunks`, `rejects` and `conflicts`.
        emptied: see the attribute.
        only_read: the entries whose contents the patch copies.
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
        """The changes that make symbolic links or give them another target. Most patches have none."""
        made = patched_files([file for file in self._files if file.is_link])
        return [change for change in made if change.link is not None]

    @cached_property
    def locations(self) -> set[Path]:
        """The real, absolute paths of files that are changed, or whose contents are copied."""
        return {Path(file.location) for file in (*self._files, *self._only_read)}

    def changes_by_place(self, outside: Collection[Path]) -> list[PatchedFile]:
        """Return the `changes`, with real paths for the files whose `locations` are in `outside`,
        even if the patch names them by a link."""
        files = [file for file in self._files if Path(file.location) in outside]
        return where_written(self.changes, files)

    def refused(self, writable: Callable[[str], bool]) -> list[Path]:
        """Return the `locations` that are not `writable`, sorted. Those that are only copied count too."""
        # As strings: `Path`s of all locations would be slow.
        places = {file.location for file in (*self._files, *self._only_read)}
        return sorted(Path(place) for place in places if not writable(place))

    def checked(self, writable: Callable[[str], bool] | None) -> Self:
        """Return the plan itself, to be used in a chain of calls. None for `writable` allows everything.

        Raises:
            PatchError: of kind `refused`: it touches a location that is not `writable`.
        """
        if writable is not None and self.refused(writable):
            raise PatchError(
                "patch rejected: writing outside of the project; rejected by user approval settings",
                kind="refused",
            )
        return self

    def save(self, unsaved: Mapping[str, UnsavedText]) -> None:
        """Write unsaved texts to those of these files that the patch changes, as their user would.

        No journal has this. Undoing the patch later brings these texts back.

        Args:
            unsaved: the texts by the real paths of their files.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was read.
        """
        changes: list[EntryChange] = []
        for file in self._files:
            text = unsaved.get(file.location)
            if text is None:
                continue
            change = EntryChange(file.path, file.location, file.before)
            change.old = text.disk
            change.new = text.editor
            change.fate = "file"
            changes.append(change)
        if changes:
            commit(JournalEntry(changes))

    def commit(self, journal: Journal | None = None) -> Committed:
        """Write everything, or nothing. Call this once.

        Args:
            journal: keeps what is replaced, so that "nothing" holds even if we are killed, and so
                that the patch can be undone.

        Raises:
            PatchError: of kind `file`: writing failed, or a file has changed since it was read.
        """
        # On disk, a submodule is a directory of its own.
        made = [file.location for file in self._files if file.fate == "submodule"]
        files = list(self._files)
        entry = JournalEntry(files, obsolete=self.emptied, made=made)
        return commit(entry, journal)

    def summary(self) -> str:
        """List the changed paths as Codex prints them: as they are written in the patch, the added
        ones first, then the modified, then the deleted ones."""
        order = sorted(self._named, key=lambda named: "AMD".index(named[0]))
        lines = [f"{kind} {path}\n" for kind, path in order]
        return "".join(["Success. Updated the following files:\n", *lines])


def writable_under(roots: Iterable[Path]) -> Callable[[str], bool]:
    """Make a rule for one patch that allows paths under these directories, except the protected names.

    `.git` is protected at any depth: git runs what the hooks and the configuration of any repository
    say, even of a submodule or a vendored repository, and no diff contains such a file. The other
    names have a meaning only at the top of a project.
    """
    real_roots = [str(root.resolve()) for root in roots]
    protected = _identities(real_roots)
    spelt = cache(spelt_out)

    # Cached, because most files of a patch are in a few directories under the root.
    @cache
    def is_protected(root: str, name: str) -> bool:
        if spelt(name) in PROTECTED_NAMES:
            return True
        # Some file systems ignore case, or know an entry by several names.
        return _identity(join(root, name)) in protected

    def writable(path: str) -> bool:
        location = f"{path}/"
        above = [root for root in real_roots if location.startswith(join(root, ""))]
        if not above:
            return False
        outermost = min(above, key=len)
        names = location.removeprefix(outermost).split("/")
        if ".git" in map(spelt, names):
            return False
        # The names at the top of a root that is inside another one are protected too.
        for root in above:
            rest = location.removeprefix(join(root, ""))
            name, _, _ = rest.partition("/")
            if name and is_protected(root, name):
                return False
        return True

    return writable


def readable_under(roots: Iterable[Path]) -> Callable[[str], bool]:
    """Make a rule for one patch that allows paths under these directories."""
    real = [str(root.resolve()) for root in roots]
    real_roots = tuple([join(root, "") for root in real])
    return lambda path: path.startswith(real_roots)


def _identities(roots: Iterable[str]) -> set[tuple[int, int]]:
    """The identities of the protected entries that exist at the top of these directories."""
    found: set[tuple[int, int]] = set()
    for root in roots:
        for name in PROTECTED_NAMES:
            identity = _identity(join(root, name))
            if identity is not None:
                found.add(identity)
    return found


def _identity(path: str) -> tuple[int, int] | None:
    """The device and the inode of an entry, links followed; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino
