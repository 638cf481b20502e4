"""Work out what a unified diff does to the files of a directory.

All files of a diff are thought of as changed at once, as `git apply` does: a renamed or copied file is
read as it is on disk, whatever the diff says of its old name besides. Diffs of several commits in a row
are taken one after the other all the same, as far as files are changed in place.
"""

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from codex_py.errors import PatchError
from codex_py.patch.commit import describe
from codex_py.patch.explain import joined
from codex_py.patch.names import stripped
from codex_py.patch.overlay import Overlay
from codex_py.patch.plan import PatchPlan
from codex_py.patch.report import HunkReport, Reject
from codex_py.patch.unified import DiffHunk, FileDiff, written_hunks
from codex_py.patch.unified_apply import Applied, apply_hunks
from codex_py.patch.unified_reader import read_diff

_REMOVING = {"delete", "uncopy"}
_SYMBOLIC_LINK = 0o120000
_SUBMODULE = 0o160000

Writable: TypeAlias = Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """What merging takes. Both may block, and are called before anything is written."""

    read_blob: Callable[[str], bytes | None]
    """The contents of a git blob by its name, which may be shortened; None if there is none."""
    merge: Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
    """Ours, base and theirs to the merged contents, and whether conflicts are marked in them."""


@dataclass(frozen=True, slots=True)
class _Target:
    """A file of the diff with its paths."""

    diff: FileDiff
    old: str
    """Absolute, as is `new`; the same for a file that keeps its name."""
    new: str
    old_shown: str
    """As the diff says, but for the directories left out."""
    new_shown: str


def plan_unified(
    text: str | bytes,
    cwd: Path,
    writable: Writable | None,
    *,
    strip: int | None = None,
    directory: str | None = None,
    reverse: bool = False,
    strict: bool = False,
    partial: bool = False,
    three_way: ThreeWay | None = None,
) -> PatchPlan:
    """Read a unified diff and check all of it against the files. Nothing is written.

    Args:
        text: the diff; text in it that is not UTF-8 has been decoded with `surrogateescape`.
        cwd: absolute; names in the diff are relative to it.
        writable: says of a real, absolute path whether it may be written; None allows everything.
        strip: how many leading directories to leave out of names. None guesses for the whole
            diff: 1 where names begin with `a/` and `b/`, else 0, unless more files exist the other way.
        directory: put in front of all names; relative to `cwd`.
        reverse: undo the diff.
        strict: refuse hunks whose place has to be guessed, see `apply_hunks`.
        partial: leave out what does not fit; the plan has it as rejects.
        three_way: where a file is not as the diff has it, and the diff names the git blob that it
            was made from, merge.

    Raises:
        PatchError: nothing of it can be applied, or not all of it and `partial` is off.
    """
    files = read_diff(_encoded(text))
    if not files:
        raise PatchError("No files were modified.", kind="empty")
    _refuse_unsupported(files)
    if reverse:
        files = tuple([file.reversed() for file in reversed(files)])
    root = Path(os.path.normpath(cwd / directory)) if directory else cwd
    count = strip if strip is not None else _guessed_strip(files, root)
    targets = [_target(file, root, count) for file in files]
    planner = _Planner(cwd, targets, strict=strict, partial=partial, three_way=three_way)
    for target in targets:
        planner.plan(target)
    if planner.failures and (not partial or not planner.overlay.touched):
        raise PatchError(
            joined([error.reason for error in planner.failures]), kind=planner.failures[0].kind
        )
    notes = [note for report in planner.reports if (note := report.note())]
    plan = PatchPlan(
        planner.overlay.touched,
        planner.named,
        [*notes, *planner.notes],
        planner.reports,
        rejects=planner.rejects,
        conflicts=planner.conflicts,
    )
    return plan.checked(writable)


def _encoded(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise PatchError("the patch is not valid Unicode text", kind="parse") from error


def _refuse_unsupported(files: Sequence[FileDiff]) -> None:
    for file in files:
        modes = {file.old_mode, file.new_mode}
        if file.is_binary:
            raise PatchError(
                f"{file.new_name}: changes of binary files can not be applied",
                kind="parse",
                line=file.line,
            )
        if _SUBMODULE in modes:
            raise PatchError(
                f"{file.new_name}: submodules can not be changed", kind="parse", line=file.line
            )
        if _SYMBOLIC_LINK in modes:
            raise PatchError(
                f"{file.new_name}: symbolic links can not be changed", kind="parse", line=file.line
            )


def _names(file: FileDiff, count: int) -> tuple[str | None, str | None]:
    # Those of renames and copies have no prefix to leave out.
    count = count if file.has_prefix else max(count - 1, 0)
    return stripped(file.old_name, count), stripped(file.new_name, count)


def _guessed_strip(files: Sequence[FileDiff], root: Path) -> int:
    prefixed = sum(_has_git_prefix(file) for file in files) * 2 >= len(files)
    guesses = (1, 0) if prefixed else (0, 1)
    changed = sum(file.operation != "add" for file in files)
    found: dict[int, int] = {}
    for count in guesses:
        found[count] = sum(_exists(file, root, count) for file in files)
        if found[count] == changed:
            return count
    return max(guesses, key=lambda count: found[count])


def _has_git_prefix(file: FileDiff) -> bool:
    prefixes = {file.old_name[:2], file.new_name[:2]}
    return not file.has_prefix or all(
        len(prefix) == 2 and prefix[1] == "/" and prefix[0] in "abciow12" for prefix in prefixes
    )


def _exists(file: FileDiff, root: Path, count: int) -> bool:
    if file.operation == "add":
        return False
    return any(
        name and _is_inside(name) and os.path.lexists(f"{root}/{name}")
        for name in _names(file, count)
    )


def _is_inside(name: str) -> bool:
    return name[0] != "/" and "\0" not in name and (".." not in name or ".." not in name.split("/"))


def _target(file: FileDiff, root: Path, count: int) -> _Target:
    old, new = _names(file, count)
    if old is None or new is None:
        raise PatchError(
            f"{file.new_name!r} has fewer than {count} leading directories to leave out",
            kind="parse",
            line=file.line,
        )
    for name in (old, new):
        # Diffs come from strangers: like `git apply`, and unlike envelopes.
        if not _is_inside(name):
            raise PatchError(
                f"{name!r} leads out of the directory that is patched",
                kind="refused",
                line=file.line,
            )
    if old != new and file.operation in {"update", "add", "delete"}:
        old = new = _one_name(file, root, old, new)
    old_path = new_path = os.path.normpath(f"{root}/{old}")
    if old != new:
        new_path = os.path.normpath(f"{root}/{new}")
    return _Target(file, old_path, new_path, old, new)


def _one_name(file: FileDiff, root: Path, old: str, new: str) -> str:
    """Which name is meant where they differ, as in `--- f.orig`: by the rule of `patch`, the shortest."""
    if file.operation == "add":
        return new
    if file.operation == "delete":
        return old
    existing = [name for name in (old, new) if (root / name).is_file()] or [new]
    return min(
        existing, key=lambda name: (name.count("/"), len(PurePosixPath(name).name), len(name))
    )


class _Planner:
    def __init__(
        self,
        cwd: Path,
        targets: Sequence[_Target],
        *,
        strict: bool,
        partial: bool,
        three_way: ThreeWay | None,
    ) -> None:
        self.overlay = Overlay(cwd)
        self.named: list[tuple[Literal["A", "M", "D"], str]] = []
        self.notes: list[str] = []
        self.reports: list[HunkReport] = []
        self.rejects: list[Reject] = []
        self.conflicts: list[Path] = []
        self.failures: list[PatchError] = []
        self._strict = strict
        self._partial = partial
        self._three_way = three_way
        self._failed: set[str] = set()
        """Files whose later changes can not be judged."""
        renamed = [target for target in targets if target.diff.operation == "rename"]
        self._vacated = {target.old for target in renamed}
        self._vacated |= {t.old for t in targets if t.diff.operation in _REMOVING}
        self._sources = {target.old for target in renamed}
        self._destinations = {t.new for t in targets if t.diff.operation not in _REMOVING}

    def plan(self, target: _Target) -> None:
        if target.old in self._failed or target.new in self._failed:
            return
        try:
            self._plan(target)
        except PatchError as error:
            self._failed |= {target.old, target.new}
            self._reject(target, target.diff.hunks, [error])

    def _plan(self, target: _Target) -> None:
        match target.diff.operation:
            case "update":
                self._update(target)
            case "add":
                self._add(target)
            case "delete" | "uncopy":
                self._delete(target)
            case "rename" | "copy":
                self._move(target)

    def _update(self, target: _Target) -> None:
        old = self._read(target)
        data = self._patched(target, old)
        if data is None:
            return
        mode = self._mode(target.diff, target.old)
        self._write(target.old, data, mode)
        self.named.append(("M", target.old_shown))

    def _add(self, target: _Target) -> None:
        diff = target.diff
        if any(hunk.old for hunk in diff.hunks) or len(diff.hunks) > 1:
            raise PatchError(
                f"{target.new_shown}: a new file can not have lines to be changed",
                kind="parse",
                line=diff.line,
            )
        if diff.has_crlf:
            diff = diff.without_crlf()
        data = b"".join([line for hunk in diff.hunks for line in hunk.new])
        self._refuse_existing(target, data)
        self._write(target.new, data, 0o755 if _is_executable(diff) else None, added=True)
        self.reports += [HunkReport(Path(target.new), 1, hunk.line, 1, 0) for hunk in diff.hunks]
        self.named.append(("A", target.new_shown))

    def _delete(self, target: _Target) -> None:
        left = self._patched(target, self._read(target))
        if left is None:
            return
        if left and target.diff.operation == "delete":
            raise PatchError(
                f"{target.old}: it has other contents than those that the patch deletes "
                f"({len(left)} bytes more)",
                kind="match",
            )
        try:
            self.overlay.remove(target.old)
        except OSError as error:
            raise _file_error("delete file", target.old, error) from error
        self.named.append(("D", target.old_shown))

    def _move(self, target: _Target) -> None:
        diff, source, destination = target.diff, target.old, target.new
        old = self._original(target)
        data = self._patched(target, old)
        if data is None:
            return
        if destination != source:
            self._refuse_existing(target, data)
        mode = self._mode(diff, source)
        others_write_source = source in self._destinations and source != destination
        knotted = destination in self._sources or others_write_source
        try:
            if diff.operation == "copy" or knotted:
                written = self.overlay.write(destination, data, added=diff.operation == "copy")
                before = self.overlay.target(source).before
                if mode is None and before is not None:
                    mode = stat.S_IMODE(before.st_mode)
                written.mode = mode
                if diff.operation == "rename" and not others_write_source:
                    self.overlay.remove(source)
            else:
                self.overlay.move(source, destination, data)
                if mode is not None:
                    self.overlay.target(destination).mode = mode
        except OSError as error:
            raise _file_error("write file", destination, error) from error
        self.named.append(("A" if diff.operation == "copy" else "M", target.new_shown))

    def _patched(self, target: _Target, old: bytes) -> bytes | None:
        """The contents after the hunks; None where none fits, which has been noted as a failure."""
        diff = target.diff
        if diff.has_crlf and b"\r\n" not in old:
            diff = diff.without_crlf()
        applied = apply_hunks(old, diff.hunks, Path(target.old), strict=self._strict)
        if self._three_way and _is_inexact(applied):
            merged = self._merged(diff, old, target)
            if merged is not None:
                return merged
        self.reports += applied.reports
        if applied.failures:
            hunks = [hunk for hunk, _reason in applied.failures]
            self._reject(
                target, hunks, [PatchError(reason, kind="match") for _, reason in applied.failures]
            )
            if not self._partial or len(hunks) == len(diff.hunks) or diff.operation in _REMOVING:
                self._failed |= {target.old, target.new}
                return None
        return applied.data

    def _merged(self, diff: FileDiff, ours: bytes, target: _Target) -> bytes | None:
        """The file merged with what the diff makes of the blob that it was made from."""
        if self._three_way is None or diff.old_blob is None or not diff.old_blob.strip("0"):
            return None
        base = self._three_way.read_blob(diff.old_blob)
        if base is None:
            return None
        patched = apply_hunks(base, diff.hunks, Path(target.old), strict=True)
        if patched.failures:
            return None
        merged, has_conflicts = self._three_way.merge(ours, base, patched.data)
        if has_conflicts:
            self.conflicts.append(Path(target.new))
            self.notes.append(f"{target.new}: merged with conflicts, which are marked in the file.")
        else:
            self.notes.append(
                f"{target.new}: merged with the version that the patch was made from."
            )
        return merged

    def _reject(
        self, target: _Target, hunks: Sequence[DiffHunk], errors: Sequence[PatchError]
    ) -> None:
        self.failures += errors
        header = f"--- {target.diff.old_name}\n+++ {target.diff.new_name}\n"
        text = header.encode(errors="surrogateescape") + written_hunks(hunks)
        self.rejects.append(
            Reject(Path(target.old), text, tuple([error.reason for error in errors]))
        )

    def _read(self, target: _Target) -> bytes:
        try:
            return self.overlay.read(target.old)
        except OSError as error:
            raise _file_error("read file to update", target.old, error) from error

    def _original(self, target: _Target) -> bytes:
        """What is to be renamed or copied: the file as it was before the diff."""
        file = self.overlay.target(target.old)
        if file.touched and file.before is not None and file.old is not None:
            return file.old
        return self._read(target)

    def _refuse_existing(self, target: _Target, data: bytes) -> None:
        path = target.new
        file = self.overlay.target(path)
        if not file.present or (path in self._vacated and not (file.touched and file.added)):
            return
        try:
            is_same = self.overlay.read(path) == data
        except OSError as error:
            raise _file_error("write file", path, error) from error
        reason = "with the same contents: it seems to be already applied" if is_same else "already"
        raise PatchError(
            f"{path}: the patch makes this file, which is there {reason}", kind="match"
        )

    def _mode(self, diff: FileDiff, path: str) -> int | None:
        """Permission bits to set, or None: git only says whether a file is executable."""
        file = self.overlay.target(path)
        if diff.old_mode == diff.new_mode or diff.new_mode is None or file.before is None:
            return file.mode
        mode = stat.S_IMODE(file.before.st_mode) if file.mode is None else file.mode
        return mode | (mode & 0o444) >> 2 if _is_executable(diff) else mode & ~0o111

    def _write(self, path: str, data: bytes, mode: int | None, *, added: bool = False) -> None:
        try:
            written = self.overlay.write(path, data, added=added)
        except OSError as error:
            raise _file_error("write file", path, error) from error
        if mode is not None:
            written.mode = mode


def _is_executable(diff: FileDiff) -> bool:
    return bool(diff.new_mode and diff.new_mode & 0o111)


def _is_inexact(applied: Applied) -> bool:
    return bool(applied.failures) or any(
        report.fuzz or report.level or report.also_at for report in applied.reports
    )


def _file_error(what: str, path: str, error: OSError) -> PatchError:
    return PatchError(f"Failed to {what} {path}: {describe(error)}", kind="file")
