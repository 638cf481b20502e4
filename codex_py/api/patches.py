"""Patches, and the diffs that this program writes.

`changed_lines` counts the added and removed lines of such a diff. A `PatchError` says that one does not
fit the files, which are unchanged.
"""

from codex_py.errors import PatchError
from codex_py.patch.diff.size import changed_lines

__all__ = ["PatchError", "changed_lines"]
