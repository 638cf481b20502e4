"""Finds the session that a command line names."""

from collections.abc import Sequence
from pathlib import Path

from codex_py.errors import SessionError, UsageError
from codex_py.rollout.index import find_session, recent_sessions
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS
from codex_py.streams.terminal import printable


def named_session(
    home: Path,
    name: str | None,
    *,
    last: bool,
    kind: str = "active or archived",
    folders: Sequence[str] = (SESSIONS, ARCHIVED_SESSIONS),
) -> Path:
    """Find the file of a session by its id or name in these folders of the home.

    Args:
        last: find the newest session of the working directory instead.

    Raises:
        UsageError: both a name and `last` are given, or neither.
        SessionError: there is no such session.
    """
    if (name is None) != last:
        raise UsageError("say which session: its id, its name, or --last")
    if name is None:
        recent = recent_sessions(home, cwd=Path.cwd(), folder=folders[0])
        newest = next(recent, None)
        if newest is None:
            raise SessionError("no session was held in this folder")
        path, _, _ = newest
        return path
    path = find_session(home, name, folders)
    if path is not None:
        return path
    command = "codex-py sessions list --all"
    if SESSIONS not in folders:
        command += " --archived"
    raise SessionError(
        f"No {kind} session found matching '{printable(name)}'. `{command}` shows them."
    )
