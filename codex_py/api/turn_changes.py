"""The changes of files in a turn, whoever made them, for a feature that judges them. LIGHT.

`turn_changes` returns the `TurnChanges` of a session. `require` makes it record what commands change,
also where `features.undo` is off; call it when the session begins. Within a turn, `changing` records
what a program of the feature changes, `all` returns the `TreeChanges` so far, and `state` a value that
is equal for equal work trees. `comparing_files` surrounds a turn whose files are compared, and `copy_soon`
at its start saves time at its end. `end_work` ends what could still change files.
"""

from codex_py.app.features.judged_turn import comparing_files, end_work, turn_changes
from codex_py.app.features.turn_changes import TurnChanges
from codex_py.protocol.patched_file import PatchedFile, TreeChanges

__all__ = [
    "PatchedFile",
    "TreeChanges",
    "TurnChanges",
    "comparing_files",
    "end_work",
    "turn_changes",
]
