"""Lists the git worktrees that sessions have left in `$CODEX_HOME/worktrees`, and removes them."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from codex_py.app.worktrees.worktree import Worktree, find_worktree, require_git
from codex_py.config.paths import worktrees_folder
from codex_py.errors import CodexError
from codex_py.filesystem.private import locked
from codex_py.protocol.frozen import frozen
from codex_py.rollout.index import metas_with
from codex_py.rollout.writer import ThreadLock


@frozen
class KeptWorktree:
    name: str
    """The name of its folder in `worktrees`."""
    path: Path
    sessions: tuple[str, ...]
    """The ids of those that ran in it, the newest first."""
    tree: Worktree | None = None
    """None if it is broken: its repository does not know it, for instance because a kill ended the making of it."""
    commit: str = ""
    """The one that is checked out; empty if it is broken."""
    unsaved: str = ""
    """What is in it and nowhere else, see `Worktree.unsaved`."""

    @property
    def state(self) -> Literal["clean", "changed", "broken"]:
        return "broken" if self.tree is None else "changed" if self.unsaved else "clean"


def kept_worktrees(home: Path, environment: Mapping[str, str]) -> list[KeptWorktree]:
    """The worktrees of sessions, sorted by name. Raises a `CodexError` if git is not installed."""
    sessions: dict[Path, list[str]] = {}
    for meta in metas_with(home, b"worktrees/"):
        for folder in (cwd := Path(meta.cwd), *cwd.parents):
            sessions.setdefault(folder, []).append(meta.id)
    parent = worktrees_folder(home)
    require_git(home, environment, parent)
    found: list[KeptWorktree] = []
    for name, path in _folders(parent):
        ids = tuple(dict.fromkeys(sessions.get(path, ())))
        kept = KeptWorktree(name, path, ids)
        # The error of git for a broken worktree does not help the user.
        with suppress(CodexError):
            if (tree := find_worktree(path, home, environment)) is not None:
                commit = tree.git.output(path, "rev-parse", "HEAD")
                kept = KeptWorktree(name, path, ids, tree, commit, tree.unsaved())
        found.append(kept)
    return found


def remove_worktree(home: Path, kept: KeptWorktree, *, force: bool) -> list[str]:
    """Remove a worktree. Returns the `ignored_files` that went with it.

    Args:
        force: remove it even if it has changes or is broken.

    Raises:
        CodexError: a session is at work in it, there are changes, or it cannot be removed.
    """
    if not force and kept.state != "clean":
        why = f"has {kept.unsaved}" if kept.unsaved else "is broken: nobody can tell what is in it"
        raise CodexError(f"the worktree {kept.path} {why}; --force removes it", code="worktree")
    folder = worktrees_folder(home) / kept.name
    try:
        for thread_id in kept.sessions:
            ThreadLock(home, thread_id).release()
        with locked(folder, 0):
            if kept.tree is not None:
                return kept.tree.remove(force=force)
            shutil.rmtree(folder)
            return []
    except TimeoutError as error:
        raise CodexError(f"a session is at work in the worktree {kept.path}") from error
    except OSError as error:
        raise CodexError(f"{kept.path} cannot be removed: {error.strerror}") from error


def _folders(parent: Path) -> Iterator[tuple[str, Path]]:
    """The names and the paths; there is no tree in the folder of one that a kill ended early."""
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if folder.is_dir() and not folder.is_symlink():
            yield folder.name, next((each for each in folder.iterdir() if each.is_dir()), folder)
