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
    """The functions that merging needs. Both may block, and are called before anything is written."""

    read_blob: Callable[[str], bytes | None]
    """Reads a git blob by its name, which may be shortened; None if it does not exist."""
    merge: Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
    """Merges ours, base and theirs. Returns the contents, and True if conflicts are marked in
    them."""

    def merged(
        self, diff: FileDiff, ours: bytes, path: str
    ) -> tuple[bytes, bool] | None:
        """Merge the file with the diff of its blob; returns the contents, and True for conflicts.

        Returns None if the diff names no blob, or the blob is missing or does not fit the diff.
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
        ours_has_crlf = ours.count(b"\r\n") == ours.count(b"\n") > 0
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
    """The contents of a file that the diff creates; a `PatchError` if it cannot be made of nothing."""
    diff = target.diff
    if any(hunk.old for hunk in diff.hunks) or len(diff.hunks) > 1:
        raise diff.refusal(
            f"{target.new_shown}: a new file cannot have lines to be changed"
        )
    if diff.has_crlf:
        diff = diff.without_crlf()
    data = b"".join([line for hunk in diff.hunks for line in hunk.new])
    if diff.is_binary:
        data = patched_binary(diff, b"", target.new_shown)
    if _is_executable(diff):
        mode = permissions_by_umask(0o777)
    else:
        mode = None
    return _leading(Content(data, diff.new_kind or "file", mode), target)


class Patcher(NamedTuple):
    """Applies diffs to contents; `strict`, `partial` and `three_way` are as for `plan_unified`."""

    findings: Findings
    """Gets all notes, reports, rejects and conflicts."""
    strict: bool
    partial: bool
    three_way: ThreeWay | None

    def patched(
        self,
        target: Target,
        file: EntryChange,
        old: Content,
    ) -> Content:
        """The contents after the diff. Raises `Rejected` if too little fits, a `PatchError` if the
        file is of another kind."""
        _refuse_kind(target, old.kind)
        if old.kind == "submodule":
            return self._submodule(target, file)
        diff = target.diff
        mode = _mode(target.diff, file, old)
        if diff.is_binary:
            return _leading(
                Content(self._binary(target, old.data), old.kind, mode), target
            )
        if diff.has_crlf and b"\r\n" not in old.data:
            diff = diff.without_crlf()
        was_empty = diff.old_blob and any(
            b.startswith(diff.old_blob) for b in _EMPTY_BLOBS
        )
        if self.strict and old.data and diff.hunks and was_empty:
            # Without context, its one hunk would fit any file.
            raise PatchError(
                f"{target.old}: the patch is for an empty file, which it is not",
                kind="match",
            )
        applied = apply_hunks(old.data, diff.hunks, target.old, strict=self.strict)
        guessed = any(
            each.fuzz or each.level or each.also_at for each in applied.reports
        )
        if self.three_way and old.kind == "file" and (applied.failures or guessed):
            merged = self.three_way.merged(diff, old.data, target.old)
            if merged is not None:
                data, has_conflicts = merged
                told = "merged with the version that the patch was made from."
                if has_conflicts:
                    self.findings.conflicts.append(Path(target.new))
                    told = "merged with conflicts, which are marked in the file."
                self.findings.notes.append(f"{target.new}: {told}")
                return Content(data, mode=mode)
        self.findings.hunks += applied.reports
        if applied.failures:
            hunks = [hunk for hunk, _reason in applied.failures]
            errors = [
                PatchError(reason, kind="match") for _hunk, reason in applied.failures
            ]
            reject(self.findings, target, hunks, errors)
            if (
                not self.partial
                or len(hunks) == len(diff.hunks)
                or diff.operation in REMOVING
            ):
                raise Rejected
        return _leading(Content(applied.data, old.kind, mode), target)

    def _binary(self, target: Target, old: bytes) -> bytes:
        try:
            return patched_binary(target.diff, old, target.old)
        except PatchError as error:
            name = target.diff.new_blob or ""
            if (
                not self.three_way
                or error.kind != "match"
                or blob_name(old, len(name)) != name
            ):
                raise
            # Binary contents are merged only if both sides made the same change.
            self.findings.notes.append(
                f"{target.new}: it has the new contents already."
            )
            return old

    def _submodule(self, target: Target, file: EntryChange) -> Content:
        """The submodule after the diff. Its commit is in the index, which is not touched; on disk
        it is a directory."""
        diff = target.diff
        is_full = file.had_type(stat.S_IFDIR) and bool(os.listdir(file.location))  # noqa: PTH208
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
            file.old = b"".join([b"".join(hunk.old) for hunk in diff.hunks])
            return Content(b"", "submodule")
        text = b"".join([b"".join(hunk.new) for hunk in diff.hunks])
        return Content(text, "submodule")


def reject(
    findings: Findings,
    target: Target,
    hunks: Sequence[DiffHunk],
    errors: Sequence[PatchError],
) -> None:
    """Note that hunks do not fit, and why."""
    findings.failures += errors
    header = f"--- {target.diff.old_name}\n+++ {target.diff.new_name}\n"
    text = header.encode(errors="surrogateescape") + written_hunks(hunks)
    reasons = tuple([error.reason for error in errors])
    findings.rejects.append(Reject(Path(target.old), text, reasons))


def _refuse_kind(target: Target, kind: Kind) -> None:
    diff = target.diff
    if diff.old_kind is not None and diff.old_kind != kind:
        if kind == "submodule":
            called = "a directory"
        else:
            called = _CALLED[kind]
        raise PatchError(
            f"{target.old}: the patch takes it for {_CALLED[diff.old_kind]}, and it is {called}",
            kind="match",
        )
    if (
        diff.operation not in REMOVING
        and diff.new_kind is not None
        and diff.new_kind != kind
    ):
        raise diff.refusal(
            f"{target.new_shown}: {_CALLED[kind]} cannot become {_CALLED[diff.new_kind]} by a change "
            "of mode; it has to be deleted and made again"
        )


def _leading(new: Content, target: Target) -> Content:
    """Return the contents. Raises a `PatchError` for a link that leads nowhere, unless it is
    removed."""
    is_nowhere = new.kind == "link" and (not new.data or b"\0" in new.data)
    if is_nowhere and target.diff.operation not in REMOVING:
        raise target.diff.refusal(
            f"{target.new_shown}: a symbolic link cannot lead to {os.fsdecode(new.data)!r}"
        )
    return new


def _mode(
    diff: FileDiff,
    file: EntryChange,
    old: Content,
) -> int | None:
    """Permission bits to set, or None: git only says whether a file is executable."""
    if old.kind != "file" or diff.old_mode == diff.new_mode or diff.new_mode is None:
        return old.mode
    mode = old.mode
    if mode is None:
        before = file.before
        if before is None:
            mode = permissions_by_umask(0o666)
        else:
            mode = before.permissions
    if _is_executable(diff):
        return mode | (mode & 0o444) >> 2
    return mode & ~0o111


def _is_executable(diff: FileDiff) -> bool:
    return diff.new_kind == "file" and bool((diff.new_mode or 0) & 0o111)
