"""Files for the results of a run, such as its last message."""

import os
import stat
from pathlib import Path

from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.reading import real_path


class OutputFile:
    """A file for a result, opened before the first request, so that a bad path costs nothing.

    Unless it is emptied, it keeps its old contents until `write`, also if the turn fails.

    Args:
        root: absolute. A path in this folder must not lead out of it.
        what: names the result in errors.

    Raises:
        CodexError: the file cannot be opened for writing, or its path leads out of `root`.
    """

    def __init__(
        self, path: Path, root: Path, what: str, *, empty: bool = False
    ) -> None:
        self.path = path
        self._what = what
        try:
            real_path(path.absolute(), root)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if empty:
                self._empty()
        except OSError as error:
            raise self._failure(error, ExitCode.USAGE) from error

    def write(self, text: str) -> None:
        """Replace the contents by the text, without a further newline. Call it once.

        Raises:
            CodexError: the file cannot be written.
        """
        try:
            self._empty()
            with os.fdopen(self._fd, "wb") as file:
                file.write(text.encode(errors="replace"))
        except OSError as error:
            raise self._failure(error, ExitCode.TURN_FAILED) from error

    def _empty(self) -> None:
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.ftruncate(self._fd, 0)

    def _failure(self, error: OSError, exit_code: ExitCode) -> CodexError:
        return CodexError(
            f"Failed to write {self._what} to {str(self.path)!r}: {error.strerror}",
            code="output_file",
            exit_code=exit_code,
        )
