"""Finds folders that commands may change by their policy, and cannot. LIGHT."""

import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.app.options import SessionSetup


def unwritable_folders(setup: SessionSetup) -> Sequence[Path]:
    """The folders that commands are allowed to change, and that the user cannot write to."""
    policy = setup.config.sandbox_policy(setup.options.add_dirs)
    if policy.mode != "workspace-write":
        return ()
    roots = [root for root in policy.writable_roots if root.is_dir()]
    return [root for root in roots if not os.access(root, os.W_OK)]
