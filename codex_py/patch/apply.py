"""Work out what a patch does, and do it.

    plan = plan_patch(text, cwd, writable)   # everything is checked, nothing is written
    plan.commit()                            # everything is written, or nothing
    print(plan.summary())

Sections take effect in order: a later one sees what an earlier one made.
"""

import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from codex_py.errors import PatchError
from codex_py.patch.commit import Committed, commit, describe
from codex_py.patch.edit import Edit, edit_text
from codex_py.patch.envelope import AddFile, DeleteFile, Section, UpdateFile, parse_patch
from codex_py.patch.explain import joined
from codex_py.patch.journal import Journal
from codex_py.patch.overlay import Overlay, PlannedFile
from codex_py.patch.report import HunkReport, Reject

PROTECTED = frozenset({".git", ".codex", ".agents", ".aws"})
"""Names right under a writable root below which nothing may be written."""


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
    ) -> None:
        self.changes = _changes(files)
        """In the order of the patch."""
        self.notes = tuple(notes)
        """What the author of the patch may want to check, a sentence each."""
        self.hunks = tuple(hunks)
        """Where each hunk goes, in the order of the patch."""
        self.rejects = tuple(rejects)
        """What is left out, where that was asked for."""
        self.conflicts = tuple(conflicts)
        """Absolute paths of files that will have conflict markers in them."""
        self._named = named
        self._files = files

    def refused(self, writable: Callable[[Path], bool]) -> list[Path]:
        """The files that may not be touched. `writable` is asked about real, absolute paths."""
        return [file.path for file in self._files if not writable(file.location)]

    def checked(self, writable: Callable[[Path], bool] | None) -> Self:
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
        return commit(self._files, journal)

    def summary(self) -> str:
        """What was done, as Codex prints it: paths as written, added, modified, deleted ones in turn."""
        order = sorted(self._named, key=lambda named: "AMD".index(named[0]))
        lines = [
            "Success. Updated the following files:",
            *[f"{kind} {path}" for kind, path in order],
        ]
        return "\n".join(lines) + "\n"


def plan_patch(text: str, cwd: Path, writable: Callable[[Path], bool] | None) -> PatchPlan:
    """Read a patch and check all of it against the files. Nothing is written.

    Args:
        text: the patch, as `parse_patch` takes it.
        cwd: absolute; relative paths in the patch are joined to it.
        writable: says of a real, absolute path whether it may be written; None allows everything.

    Raises:
        PatchError: the message begins as that of Codex does, and goes on to help.
    """
    sections = parse_patch(text)
    if not sections:
        raise PatchError("No files were modified.", kind="empty")
    planner = _Planner(Overlay(cwd))
    failures: list[PatchError] = []
    for section in sections:
        try:
            planner.plan(section)
        except PatchError as error:
            failures.append(error)
    if failures:
        raise PatchError(joined([error.reason for error in failures]), kind=failures[0].kind)
    named = [_named(section) for section in sections]
    plan = PatchPlan(planner.overlay.touched, named, planner.notes, planner.reports)
    return plan.checked(writable)


def writable_under(roots: Iterable[Path]) -> Callable[[Path], bool]:
    """A rule for `plan_patch`: what is under one of these directories, but for the protected names."""
    real_roots = [root.resolve() for root in roots]
    protected = {_identity(root / name) for root in real_roots for name in PROTECTED} - {None}

    def is_protected(path: Path) -> bool:
        # Some file systems ignore case, or know an entry by a second, shorter name.
        return path.name.casefold() in PROTECTED or _identity(path) in protected

    def writable(path: Path) -> bool:
        below = [
            (root, path.relative_to(root).parts) for root in real_roots if path.is_relative_to(root)
        ]
        # A root inside another one is protected too.
        return bool(below) and not any(p and is_protected(root / p[0]) for root, p in below)

    return writable


def _identity(path: Path) -> tuple[int, int] | None:
    """What a file is known by whatever its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _named(section: Section) -> tuple[Literal["A", "M", "D"], str]:
    match section:
        case AddFile(path):
            return "A", path
        case DeleteFile(path):
            return "D", path
        case UpdateFile(path, move_to):
            return "M", move_to or path


class _Planner:
    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.notes: list[str] = []
        self.reports: list[HunkReport] = []
        self._failed: set[Path] = set()
        """Files whose later sections can not be judged."""

    def plan(self, section: Section) -> None:
        if "\0" in section.path or (
            isinstance(section, UpdateFile) and "\0" in (section.move_to or "")
        ):
            raise PatchError(f"path {section.path!r} has a NUL in it", kind="file")
        path = self.overlay.absolute(section.path)
        if path in self._failed:
            return
        try:
            match section:
                case AddFile():
                    self._add(path, section)
                case DeleteFile():
                    self._delete(path)
                case UpdateFile():
                    self._update(path, section)
        except PatchError:
            self._failed.add(path)
            raise

    def _add(self, path: Path, section: AddFile) -> None:
        try:
            self.overlay.write(path, section.content.encode(), added=True)
        except OSError as error:
            raise _file_error("write file", path, error) from error

    def _delete(self, path: Path) -> None:
        try:
            self.overlay.remove(path)
        except OSError as error:
            raise _file_error("delete file", path, error) from error

    def _update(self, path: Path, section: UpdateFile) -> None:
        try:
            old = self.overlay.read(path)
        except OSError as error:
            raise _file_error("read file to update", path, error) from error
        new, edit = _edited(old, path, section)
        self.notes += edit.notes
        self.reports += edit.reports
        destination = self.overlay.absolute(section.move_to) if section.move_to else path
        try:
            if section.move_to:
                self.overlay.move(path, destination, new)
            else:
                self.overlay.write(path, new)
        except OSError as error:
            raise _file_error("write file", destination, error) from error


def _edited(old: bytes, path: Path, section: UpdateFile) -> tuple[bytes, Edit]:
    try:
        edit = edit_text(old.decode(), section.hunks, str(path))
    except UnicodeDecodeError as error:
        return _edited_as_ascii(old, path, section, error)
    return edit.text.encode(), edit


def _edited_as_ascii(
    old: bytes, path: Path, section: UpdateFile, cause: UnicodeDecodeError
) -> tuple[bytes, Edit]:
    """In any encoding that extends ASCII, lines of ASCII can give way to lines of ASCII."""
    unreadable = f"Failed to read file to update {path}: {_decoding_cause(cause)}"
    touched = [line for hunk in section.hunks for line in (*hunk.old_lines, *hunk.new_lines)]
    if not all(line.isascii() for line in touched):
        raise PatchError(unreadable, kind="file") from cause
    try:
        edit = edit_text(old.decode(errors="surrogateescape"), section.hunks, str(path))
    except PatchError as error:
        raise PatchError(f"{unreadable}\n{error.reason}", kind="file") from error
    return edit.text.encode(errors="surrogateescape"), edit


def _decoding_cause(error: UnicodeDecodeError) -> str:
    if error.reason == "unexpected end of data":
        return f"incomplete utf-8 byte sequence from index {error.start}"
    return f"invalid utf-8 sequence of {error.end - error.start} bytes from index {error.start}"


def _file_error(what: str, path: Path, error: OSError) -> PatchError:
    return PatchError(f"Failed to {what} {path}: {describe(error)}", kind="file")


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
            changes.append(_change(origin, file, "update", file.path, file.old))
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
    replaced: bytes | None = None,
) -> FileChangePlan:
    old_mode = old.before.st_mode if old.before else None
    new_mode = None
    if new.present:
        new_mode = new.before.st_mode if new.before else None
        if new.mode is not None:
            new_mode = stat.S_IFREG | new.mode
    return FileChangePlan(
        old.path, kind, move_to, old.old, new.new, replaced, old_mode=old_mode, new_mode=new_mode
    )
