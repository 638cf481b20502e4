"""Change bundles: what a run changed, as data that `codex-py apply` checks and applies.

`ComparedRepository` finds the changes. `written_bundle` makes the text of the bundle, signed with
`bundle_key` if there is one.
"""

from codex_py.app.compared_repository import (
    ComparedRepository,
    EarlierTree,
    RepositoryChanges,
)
from codex_py.patch.bundle import bundle_key, written_bundle

__all__ = [
    "ComparedRepository",
    "EarlierTree",
    "RepositoryChanges",
    "bundle_key",
    "written_bundle",
]
