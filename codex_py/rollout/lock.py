"""One writer for each thread, whether it is this program or Codex.

The convention is Codex's, as 0.169 is seen to do it: an exclusive `flock` on
`$CODEX_HOME/thread-writer-locks/<thread id>.lock`, which is removed at the end while
`.coordination.lock` beside it is held. The kernel drops the lock of a process that dies.
"""

import os
from contextlib import suppress
from pathlib import Path

from codex_py.errors import SessionError
from codex_py.filesystem.own import lock, make_private

_FOLDER = "thread-writer-locks"


class ThreadLock:
    """A lock that is held until `release`."""

    def __init__(self, home: Path, thread_id: str) -> None:
        """Acquire the lock without waiting.

        Raises:
            SessionError: another process has it.
            OSError: the lock file cannot be made.
        """
        folder = home / _FOLDER
        make_private(folder)
        self._coordination = folder / ".coordination.lock"
        self._path = folder / f"{thread_id}.lock"
        while True:
            self._fd = _open(self._path)
            try:
                lock(self._fd, 0)
            except OSError as error:
                os.close(self._fd)
                if not isinstance(error, TimeoutError):
                    raise
                message = f"session {thread_id} is in use by another process"
                raise SessionError(message, code="session_in_use") from error
            if self._is_current():
                return
            # Its last holder removed the file after we opened it, so our lock excludes nobody.
            os.close(self._fd)

    def release(self) -> None:
        # If this fails, an empty, unlocked file is left behind.
        with suppress(OSError):
            fd = _open(self._coordination)
            try:
                lock(fd, 0)
                self._path.unlink()
            finally:
                os.close(fd)
        os.close(self._fd)

    def _is_current(self) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(self._fd).st_ino
        except FileNotFoundError:
            return False


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
