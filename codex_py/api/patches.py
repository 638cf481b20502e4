"""Patches, and the diffs that this program writes.

`changed_lines` counts the added and removed lines of such a diff.
"""

from codex_py.patch.diff.size import changed_lines

__all__ = ["changed_lines"]
