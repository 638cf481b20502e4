"""Apply a unified diff to the contents of one file, link or submodule."""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.blobs import blob_name
from codex_py.patch.files.change import EntryChange
from codex_py.patch.files.modes import Kind, permissions_by_umask
from codex_py.patch.files.tree import Content
from codex_py.patch.plan import Rejected
from codex_py.patch.report import Findings, Reject
from codex_py.patch.unified.apply import apply_hunks
from codex_py.patch.unified.binary import patched_binary
from codex_py.patch.unified.hunks import DiffHunk, FileDiff, written_hunks
from codex_py.patch.unified.target import REMOVING, Target


class ThreeWay(NamedTuple):
    """The functions that merging needs. Both may block; both are called before anything is written."""

    read_blob: Callable[[str], bytes | None]
    """Reads a git blob by its name, which may be shortened; None if there is no such blob."""
    merge: Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
    """Merges ours, base and theirs. Returns the contents, and True if they have marked conflicts."""

    def merged(
        self,
        diff: FileDiff,
        ours: bytes,
        path: str,
    ) -> tuple[bytes, bool] | None:
        """Merge the file with the result of the diff on the blob that it was made for.

        Returns:
            The same as `merge`. None if the diff names no blob, or if that is missing or does not fit
            the diff.
        """
        if diff.old_blob is None or not diff.old_blob.strip("0"):
            return None
        base = self.read_blob(diff.old_blob)
        if base is None:
            return None
        patched = apply_hunks(base, diff.hunks, path, strict=True)
        if patched.failures:
            return None
        theirs = patched.data
        newlines = ours.count(b"\n")
        ours_has_crlf = newlines > 0 and ours.count(b"\r\n") == newlines
        if ours_has_crlf and b"\r" not in base + theirs:
            # git converts line ends when it checks a file out, by its attributes or `core.autocrlf`.
            base = base.replace(b"\n", b"\r\n")
            theirs = theirs.replace(b"\n", b"\r\n")
        return self.merge(ours, base, theirs)


_CALLED: dict[Kind, str] = {
    "file": "a file",
    "link": "a symbolic link",
    "submodule": "a submodule",
}
_EMPTY_BLOBS = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
"""The names that git gives an empty file, by SHA-1 and by SHA-256."""


def added(target: Target) -> Content:
    """Make the contents of a new file. Raises a `PatchError` if the diff is not for a new file."""
    diff = target.diff
    if any(hunk.old for hunk in diff.hunks) or len(diff.hunks) > 1:
        raise diff.refusal(
            f"{target.new_shown}: a new file cannot have lines to be changed"
        )
    if diff.has_crlf:
        diff = diff.without_crlf()
    lines = [line for hunk in diff.hunks for line in hunk.new]
    data = b"".join(lines)
    if diff.is_binary:
        data = patched_binary(diff, b"", target.new_shown)
    mode = None
    if _is_executable(diff):
        mode = permissions_by_umask(0o777)
    return _leading(Content(data, diff.new_kind or "file", mode), target)


class Patcher(NamedTuple):
    """Applies diffs to contents. `strict`, `partial` and `three_way` are those of `plan_unified`."""

    findings: Findings
    """All notes, reports, rejects and conflicts are added to it."""
    strict: bool
    partial: bool
    three_way: ThreeWay | None

    def patched(
        self,
        target: Target,
        file: EntryChange,
        old: Content,
    ) -> Content:
        """Apply the diff of a file to its contents, and to its mode.

        Raises:
            Rejected: too little of the diff fits; the findings say so.
            PatchError: the file is of another kind, or not the one that the diff was made for.
        """
        _refuse_kind(target, old.kind)
        if old.kind == "submodule":
            return self._submodule(target, file)
        diff = target.diff
        mode = _mode(target.diff, file, old)
        if diff.is_binary:
            data = self._binary(target, old.data)
            return _leading(Content(data, old.kind, mode), target)
        if diff.has_crlf and b"\r\n" not in old.data:
            diff = diff.without_crlf()
        if self.strict and old.data and diff.hunks and _is_for_empty_file(diff):
            # Without context, its one hunk would fit any file.
            raise PatchError(
                f"{target.old}: the patch is for an empty file, which it is not",
                kind="match",
            )
        applied = apply_hunks(
            old.data,
            diff.hunks,
            target.old,
            strict=self.strict,
        )
        is_guessed = any(
            each.fuzz or each.level or each.also_at for each in applied.reports
        )
        if old.kind == "file" and (applied.failures or is_guessed):
            merged = self._merged(target, diff, old.data)
            if merged is not None:
                return Content(merged, mode=mode)
        self.findings.hunks += applied.reports
        if applied.failures:
            self._reject_hunks(target, diff, applied.failures)
        return _leading(Content(applied.data, old.kind, mode), target)

    def _merged(self, target: Target, diff: FileDiff, ours: bytes) -> bytes | None:
        """Merge, and add a note and conflicts to the findings; None if that is not possible."""
        if self.three_way is None:
            return None
        merged = self.three_way.merged(diff, ours, target.old)
        if merged is None:
            return None
        data, has_conflicts = merged
        told = "merged with the version that the patch was made from."
        if has_conflicts:
            self.findings.conflicts.append(Path(target.new))
            told = "merged with conflicts, which are marked in the file."
        self.findings.notes.append(f"{target.new}: {told}")
        return data

    def _reject_hunks(
        self,
        target: Target,
        diff: FileDiff,
        failures: Sequence[tuple[DiffHunk, str]],
    ) -> None:
        """Note the hunks that do not fit. Raises `Rejected` unless the others are to be applied."""
        hunks = [hunk for hunk, _ in failures]
        errors = [PatchError(reason, kind="match") for _, reason in failures]
        reject(self.findings, target, hunks, errors)
        has_others = len(hunks) < len(diff.hunks)
        if not self.partial or not has_others or diff.operation in REMOVING:
            raise Rejected

    def _binary(self, target: Target, old: bytes) -> bytes:
        try:
            return patched_binary(target.diff, old, target.old)
        except PatchError as error:
            if not self.three_way or error.kind != "match":
                raise
            # Binary contents are merged only if both sides made the same change.
            name = target.diff.new_blob or ""
            if blob_name(old, len(name)) != name:
                raise
            self.findings.notes.append(
                f"{target.new}: it has the new contents already."
            )
            return old

    def _submodule(self, target: Target, file: EntryChange) -> Content:
        """Apply a diff to a submodule: only its directory is made or removed.

        Its commit is in the index, which is not touched. The contents are the diff's text about the
        commit.
        """
        diff = target.diff
        is_full = file.had_type(stat.S_IFDIR) and bool(os.listdir(file.location))
        if diff.operation == "update":
            self.findings.notes.append(
                f"{target.new}: the submodule stays at its commit; `git submodule update` changes it."
            )
        elif diff.operation != "copy" and is_full:
            if diff.old_kind is None and not os.path.lexists(f"{file.location}/.git"):
                raise PatchError(
                    f"{target.old}: a directory; the patch has to rename the files in it",
                    kind="match",
                )
            self.findings.notes.append(
                f"{target.old}: the directory of the submodule stays, as there are files in it."
            )
        if diff.operation in REMOVING:
            old_lines = [line for hunk in diff.hunks for line in hunk.old]
            file.old = b"".join(old_lines)
            return Content(b"", "submodule")
        new_lines = [line for hunk in diff.hunks for line in hunk.new]
        return Content(b"".join(new_lines), "submodule")


def reject(
    findings: Findings,
    target: Target,
    hunks: Sequence[DiffHunk],
    errors: Sequence[PatchError],
) -> None:
    """Add hunks that do not fit to the findings, with the errors that say why."""
    findings.failures += errors
    header = f"--- {target.diff.old_name}\n+++ {target.diff.new_name}\n"
    text = header.encode(errors="surrogateescape") + written_hunks(hunks)
    reasons = tuple([error.reason for error in errors])
    findings.rejects.append(Reject(Path(target.old), text, reasons))


def _is_for_empty_file(diff: FileDiff) -> bool:
    """True if the diff was made for an empty file, by the name of its blob, perhaps shortened."""
    if not diff.old_blob:
        return False
    return any(blob.startswith(diff.old_blob) for blob in _EMPTY_BLOBS)


def _refuse_kind(target: Target, kind: Kind) -> None:
    """Raise a `PatchError` if the entry is not of the kind in the diff, or would become another."""
    diff = target.diff
    if diff.old_kind is not None and diff.old_kind != kind:
        called = _CALLED[kind]
        if kind == "submodule":
            called = "a directory"
        raise PatchError(
            f"{target.old}: the patch takes it for {_CALLED[diff.old_kind]}, and it is {called}",
            kind="match",
        )
    if diff.new_kind is None or diff.operation in REMOVING:
        return
    if diff.new_kind != kind:
        raise diff.refusal(
            f"{target.new_shown}: {_CALLED[kind]} cannot become {_CALLED[diff.new_kind]} by a change "
            "of mode; it has to be deleted and made again"
        )


def _leading(new: Content, target: Target) -> Content:
    """Return the contents. Raises a `PatchError` if they are those of a link without a possible
    target, unless it is removed."""
    has_no_target = new.kind == "link" and (not new.data or b"\0" in new.data)
    if has_no_target and target.diff.operation not in REMOVING:
        raise target.diff.refusal(
            f"{target.new_shown}: a symbolic link cannot lead to {os.fsdecode(new.data)!r}"
        )
    return new


def _mode(
    diff: FileDiff,
    file: EntryChange,
    old: Content,
) -> int | None:
    """Return the permission bits to set; None keeps the old ones, or goes by the umask.

    git only says whether a file is executable, so the other bits stay.
    """
    if old.kind != "file" or diff.old_mode == diff.new_mode or diff.new_mode is None:
        return old.mode
    if old.mode is not None:
        mode = old.mode
    elif file.before is not None:
        mode = file.before.permissions
    else:
        mode = permissions_by_umask(0o666)
    if _is_executable(diff):
        # Whoever may read it may execute it.
        return mode | (mode & 0o444) >> 2
    return mode & ~0o111


def _is_executable(diff: FileDiff) -> bool:
    return diff.new_kind == "file" and bool((diff.new_mode or 0) & 0o111)
