"""Worktrees that are removed when the process that made them ends, or after it was killed."""

import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from codex_py.app.worktrees.worktree import find_worktree
from codex_py.config.paths import worktrees_folder
from codex_py.errors import CodexError
from codex_py.process.identity import is_over, process_name


def temporary_name(prefix: str) -> str:
    """Make the name for a worktree, by which `sweep_temporary` finds it once this process is over."""
    return f"{prefix}{process_name()}-{secrets.token_hex(4)}"


def sweep_temporary(prefix: str, home: Path, environment: Mapping[str, str]) -> None:
    """Remove the worktrees with this prefix whose processes have ended on this machine."""
    for folder in worktrees_folder(home).glob(f"{prefix}*"):
        if not is_over(folder.name.removeprefix(prefix)):
            continue
        with suppress(CodexError, OSError):
            # The tree is the only folder in it, and has the name of the repository.
            trees = [each for each in folder.iterdir() if each.is_dir()]
            path = trees[0] if trees else folder
            tree = find_worktree(path, home, environment)
            if tree is not None:
                tree.remove(force=True)
        shutil.rmtree(folder, ignore_errors=True)
