"""What becomes of each file of a unified diff.

All files of a diff are thought of as changed at once, as `git apply` does: a renamed or copied file is
read as it is on disk, whatever the diff says of its old name besides. Diffs of several commits in a row
are taken one after the other all the same, as far as files are changed in place.
"""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from codex_py.errors import PatchError
from codex_py.patch.commit import describe
from codex_py.patch.overlay import Overlay
from codex_py.patch.report import HunkReport, Reject
from codex_py.patch.three_way import ThreeWay
from codex_py.patch.unified import DiffHunk, FileDiff, written_hunks
from codex_py.patch.unified_apply import Applied, apply_hunks
from codex_py.patch.unified_target import Target

_REMOVING = {"delete", "uncopy"}


class DiffPlanner:
    def __init__(
        self,
        cwd: Path,
        targets: Sequence[Target],
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

    def plan(self, target: Target) -> None:
        if target.old in self._failed or target.new in self._failed:
            return
        try:
            self._plan(target)
        except PatchError as error:
            self._failed |= {target.old, target.new}
            self._reject(target, target.diff.hunks, [error])

    def _plan(self, target: Target) -> None:
        match target.diff.operation:
            case "update":
                self._update(target)
            case "add":
                self._add(target)
            case "delete" | "uncopy":
                self._delete(target)
            case "rename" | "copy":
                self._move(target)

    def _update(self, target: Target) -> None:
        old = self._read(target)
        data = self._patched(target, old)
        if data is None:
            return
        mode = self._mode(target.diff, target.old)
        self._write(target.old, data, mode)
        self.named.append(("M", target.old_shown))

    def _add(self, target: Target) -> None:
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

    def _delete(self, target: Target) -> None:
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

    def _move(self, target: Target) -> None:
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

    def _patched(self, target: Target, old: bytes) -> bytes | None:
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

    def _merged(self, diff: FileDiff, ours: bytes, target: Target) -> bytes | None:
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
        self, target: Target, hunks: Sequence[DiffHunk], errors: Sequence[PatchError]
    ) -> None:
        self.failures += errors
        header = f"--- {target.diff.old_name}\n+++ {target.diff.new_name}\n"
        text = header.encode(errors="surrogateescape") + written_hunks(hunks)
        self.rejects.append(
            Reject(Path(target.old), text, tuple([error.reason for error in errors]))
        )

    def _read(self, target: Target) -> bytes:
        try:
            return self.overlay.read(target.old)
        except OSError as error:
            raise _file_error("read file to update", target.old, error) from error

    def _original(self, target: Target) -> bytes:
        """What is to be renamed or copied: the file as it was before the diff."""
        file = self.overlay.target(target.old)
        if file.touched and file.before is not None and file.old is not None:
            return file.old
        return self._read(target)

    def _refuse_existing(self, target: Target, data: bytes) -> None:
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
