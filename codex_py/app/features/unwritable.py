"""Finds folders that the sandbox lets commands change, but the operating system does not. LIGHT."""

import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.app.options import SessionSetup


def unwritable_folders(setup: SessionSetup) -> Sequence[Path]:
    """Return the writable roots of the session's policy that the user has no permission to change.

    Roots that do not exist are left out.
    """
    policy = setup.config.sandbox_policy(setup.options.add_dirs)
    if policy.mode != "workspace-write":
        return ()
    roots = [root for root in policy.writable_roots if root.is_dir()]
    return [root for root in roots if not os.access(root, os.W_OK)]
