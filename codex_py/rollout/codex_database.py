"""The database in which Codex keeps what it knows of threads: every `state_N.sqlite` of the home.

N is the number of Codex's schema. The session files are authoritative, except for what Codex keeps
in the database alone. A database that is not as expected, or stays in use, is left unchanged.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

_WAIT_S: Final = 2
"""The time to wait for a database that is in use."""


def tell_codex(
    home: Path,
    statement: str,
    *values: str | int | None,
) -> bool:
    """Change every database. Returns True if one of them had a row to change."""
    has_changed = False
    for path in home.glob("state_*.sqlite"):
        with (
            suppress(sqlite3.Error),
            closing(_opened(path, "rw")) as database,
            database,
        ):
            done = database.execute(statement, values)
            has_changed = has_changed or done.rowcount > 0
    return has_changed


def ask_codex(
    home: Path,
    statement: str,
    *values: str | int | None,
) -> tuple[Any, ...] | None:
    """Return the first row that a database answers with; None if there is none."""
    for path in home.glob("state_*.sqlite"):
        with suppress(sqlite3.Error), closing(_opened(path, "ro")) as database:
            row = database.execute(statement, values).fetchone()
            if row is not None:
                return row
    return None


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    # Neither mode creates a database that has just been removed.
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", timeout=_WAIT_S, uri=True)
