"""Keeps Codex's own index of sessions right: it looks for a session where its SQLite database says.

Without this, Codex 0.169 reports a session that we have moved as missing, or as still archived.
"""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

_TIMEOUT_S = 2


def index_moved(home: Path, thread_id: str, path: Path, *, is_archived: bool) -> None:
    at = int(time.time()) if is_archived else None
    _execute(
        home,
        "UPDATE threads SET rollout_path = ?, archived = ?, archived_at = ? WHERE id = ?",
        (str(path), is_archived, at, thread_id),
    )


def index_deleted(home: Path, thread_id: str) -> None:
    _execute(home, "DELETE FROM threads WHERE id = ?", (thread_id,))


def _execute(home: Path, statement: str, values: Sequence[Any]) -> None:
    """Change every database of this kind; its number is that of Codex's schema. The files are the truth, so one that
    is not as expected, or is in use for long, is left as it is."""
    for path in home.glob("state_*.sqlite"):
        with suppress(sqlite3.Error):
            # The URI: without it, a database that has just been removed would be made anew.
            found = sqlite3.connect(f"{path.as_uri()}?mode=rw", timeout=_TIMEOUT_S, uri=True)
            with closing(found) as database, database:
                database.execute(statement, values)
