"""Keeps a resumed session in the git worktree that it began in. LIGHT."""

from pathlib import Path

from codex_py.config.paths import worktrees_folder
from codex_py.errors import ExitCode, SessionError
from codex_py.rollout.records import read_meta


def session_worktree(home: Path, path: Path) -> Path | None:
    """Return the folder in which a session began, if it is in one of our git worktrees.

    It need not exist any more.

    Raises:
        SessionError: the session file cannot be read.
    """
    cwd = Path(read_meta(path).cwd)
    if _worktree_root(home, cwd) is None:
        return None
    return cwd


def require_own_worktree(
    home: Path,
    path: Path,
    cwd: Path,
) -> None:
    """Refuse to continue the session of a git worktree in a folder outside of that worktree.

    The user believes that such a session cannot touch the files of the main checkout.

    Raises:
        SessionError: `cwd` is outside of the worktree, or the session file cannot be read.
    """
    folder = session_worktree(home, path)
    if folder is None or _worktree_root(home, cwd) == _worktree_root(home, folder):
        return
    thread_id = read_meta(path).id
    # The options for another folder, as the subject of "goes on elsewhere" and the like.
    elsewhere = "-C DIR (-C . for this folder) or --worktree, for a new worktree,"
    if folder.is_dir():
        raise SessionError(
            f"session {thread_id} works in a git worktree, {folder}: `codex-py resume {thread_id}`"
            f" goes on there; {elsewhere} goes on elsewhere",
            code="worktree",
            exit_code=ExitCode.USAGE,
        )
    raise SessionError(
        f"session {thread_id} worked in a git worktree, {folder}, which is gone; say where it"
        f" goes on: {elsewhere} before `resume {thread_id}`",
        code="worktree",
        exit_code=ExitCode.USAGE,
    )


def _worktree_root(home: Path, folder: Path) -> Path | None:
    """Return the root of the git worktree around a folder; None without one.

    The root has the form `WORKTREES/NAME/REPOSITORY`.
    """
    worktrees = worktrees_folder(home)
    if not folder.is_relative_to(worktrees):
        return None
    return Path(*folder.relative_to(worktrees).parts[:2])
