"""`-o FILE`: the last message in a file."""

import os
import stat
from pathlib import Path

from codex_py.errors import CodexError, ExitCode


class LastMessageFile:
    """The file. It is opened before the first request, so that a path that cannot be written costs nothing.

    It keeps its contents until `write`, so it still has them if the turn fails.

    Raises:
        CodexError: the file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _failure(path, error, ExitCode.USAGE) from error

    def write(self, text: str) -> None:
        """Replace the contents by the text, without a further newline. Call it once.

        Raises:
            CodexError: it cannot be written.
        """
        try:
            if stat.S_ISREG(os.fstat(self._fd).st_mode):
                os.ftruncate(self._fd, 0)
            with os.fdopen(self._fd, "wb") as file:
                file.write(text.encode(errors="replace"))
        except OSError as error:
            raise _failure(self.path, error, ExitCode.TURN_FAILED) from error


def _failure(path: Path, error: OSError, exit_code: ExitCode) -> CodexError:
    return CodexError(
        f"Failed to write the last message to {str(path)!r}: {error.strerror}",
        code="output_file",
        exit_code=exit_code,
    )
