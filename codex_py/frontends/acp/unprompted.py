"""Remembers the sessions that a client opened and never prompted.

Such a session has no file, but the client knows its id, and may load it in a later process.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.filesystem.private import make_private
from codex_py.protocol.ids import is_thread_id

_MAX_KEPT: Final = 200
"""The number of ids that are kept; the oldest ones are forgotten."""


class UnpromptedSessions:
    """The ids of closed sessions without a prompt: empty files in a folder below `$CODEX_HOME`.

    All methods block. An id that cannot be written is forgotten without an error.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / "codex-py" / "unprompted"

    def add(self, session_id: str) -> None:
        if not is_thread_id(session_id):
            return
        with suppress(OSError):
            make_private(self._folder)
            self._path(session_id).touch(mode=0o600)
            # The ids of one machine sort in the order in which they were made.
            for path in sorted(self._folder.iterdir())[:-_MAX_KEPT]:
                path.unlink(missing_ok=True)

    def remove(self, session_id: str) -> None:
        if is_thread_id(session_id):
            with suppress(OSError):
                self._path(session_id).unlink()

    def __contains__(self, session_id: str) -> bool:
        return is_thread_id(session_id) and self._path(session_id).is_file()

    def _path(self, session_id: str) -> Path:
        return self._folder / session_id.lower()
