"""Files for the results of a run, such as its last message."""

import os
import stat
from pathlib import Path

from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.reading import real_path


class OutputFile:
    """A file for a result, opened for writing as soon as the object is made.

    Make it before the first request, so that a bad path is refused before any tokens are paid for.

    Args:
        root: an absolute folder. If the path is inside it, no link may lead the path out of it.
        what: names the result in errors.
        empty: empty the file at once. Otherwise it keeps its old contents until `write`, so that a
            failed turn loses nothing.

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
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o666)
            if empty:
                self._empty()
        except OSError as error:
            raise self._failure(error, ExitCode.USAGE) from error

    def write(self, text: str) -> None:
        """Replace the contents by the text as it is, and close the file. Call it once.

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
        """Empty the file. A pipe or a device cannot be emptied, and is left alone."""
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.ftruncate(self._fd, 0)

    def _failure(self, error: OSError, exit_code: ExitCode) -> CodexError:
        return CodexError(
            f"Failed to write {self._what} to {str(self.path)!r}: {error.strerror}",
            code="output_file",
            exit_code=exit_code,
        )
