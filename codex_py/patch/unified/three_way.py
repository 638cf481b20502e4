"""Merge a file that went its own way with what a diff makes of the version that it was made from."""

from collections.abc import Callable
from dataclasses import dataclass

from codex_py.patch.unified.apply import apply_hunks
from codex_py.patch.unified.hunks import FileDiff


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """The functions that merging needs. Both may block, and are called before anything is written."""

    read_blob: Callable[[str], bytes | None]
    """The contents of a git blob by its name, which may be shortened; None if there is none."""
    merge: Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
    """Ours, base and theirs to the merged contents, and whether conflicts are marked in them."""

    def merged(self, diff: FileDiff, ours: bytes, path: str) -> tuple[bytes, bool] | None:
        """The file merged with what the diff makes of its blob, and whether that has conflicts.

        None where the diff names no blob, or the blob is not there, or does not fit it.
        """
        if diff.old_blob is None or not diff.old_blob.strip("0"):
            return None
        base = self.read_blob(diff.old_blob)
        if base is None:
            return None
        patched = apply_hunks(base, diff.hunks, path, strict=True)
        return None if patched.failures else self.merge(ours, base, patched.data)
