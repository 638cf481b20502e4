"""`auth.json` of `$CODEX_HOME` while a login is renewed. Its form and its lock are those of Codex."""

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ConfigError
from codex_py.filesystem.private import locked
from codex_py.model.auth import stored_fields

LOCK_TIMEOUT_S: Final = 45.0
"""The wait for another process, which may be waiting 30 s for the issuer."""
_LEFT_AFTER_S: Final = 600.0
"""The age of files of which nobody writes any more."""
_SPARE_BYTES: Final = 32_768
"""The room for tokens that are longer than those that they replace."""


class ReservedFile:
    """Room on the disk for the next contents of a file, beside it."""

    def __init__(self, file: FileIO, part: Path, target: Path) -> None:
        """
        Args:
            file: the empty file `part`, open for writing.
            target: the file that `write` replaces.
        """
        self._file = file
        self._part = part
        self._target = target

    def reserve(self, size: int) -> None:
        """Take the room. Raises an `OSError` if the disk has too little."""
        # Blanks take the room on every file system. Their place is used again.
        _write_all(self._file, b" " * size)

    def write(self, fields: Mapping[str, Any]) -> None:
        """Write the contents, and replace the file by them.

        Raises:
            OSError: that failed in spite of the reserve. The file is unchanged.
        """
        data = json.dumps(fields, indent=2).encode()
        self._file.seek(0)
        _write_all(self._file, data)
        try:
            self._part.replace(self._target)
        except OSError:
            # A file that is mounted into a container by itself cannot be replaced, and neither can
            # that of another user in a folder with the sticky bit.
            with self._target.open("r+b", buffering=0) as kept:
                _write_all(kept, data)


class LoginFile:
    """The file with a login, and its lock.

    Attributes:
        path: the path for messages; it may be a link to the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def version(self) -> object:
        """A value that differs once the file was written or replaced; None if there is no file."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    @contextmanager
    def locked(
        self,
        given_up: Callable[[], bool] = lambda: False,
        timeout_s: float = LOCK_TIMEOUT_S,
    ) -> Generator[None]:
        """Hold the lock across all processes.

        If a process was killed after it had written new contents, they replace the file first:
        the login in the file may count no more.

        `given_up` is asked while another process holds it; True ends the wait.

        Raises:
            TimeoutError: another process holds it for too long, or the wait was given up.
            OSError: the home cannot be written.
        """
        lock = self.path.with_name(f"{self.path.name}.lock")
        with locked(lock, timeout_s, is_file=True, given_up=given_up):
            self._finish_replacement()
            yield

    def _finish_replacement(self) -> None:
        """Replace the file by the newest complete part that is newer than the file."""
        target = self.path.resolve()
        if not target.exists():
            return
        written_at = _written_at(target)
        newer = [part for part in _parts(target) if _written_at(part) > written_at]
        complete = [part for part in newer if _is_complete(part)]
        if complete:
            newest = max(complete, key=_written_at)
            newest.replace(target)

    def remove(self) -> None:
        """Remove the file, its parts, and the file that it is a link to. Called with the lock.

        Raises:
            OSError: it cannot be removed.
        """
        target = self.path.resolve()
        for part in _parts(target):
            part.unlink(missing_ok=True)
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # A file that is mounted into a container by itself.
            with target.open("r+b", buffering=0) as kept:
                _write_all(kept, b"{}")
        if self.path.is_symlink():
            self.path.unlink()

    @contextmanager
    def reserved(self) -> Generator[ReservedFile]:
        """Reserve room for new contents, until the end of the context. Called with the lock.

        What a process that was killed has left of this is removed.

        Raises:
            OSError: there is no room, or the file or its folder cannot be written.
        """
        target = self.path.resolve()
        _require_writable(target)
        _remove_leftovers(target)
        part = target.with_name(f"{_part_prefix(target)}{os.urandom(8).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        opened = os.open(part, flags, 0o600)
        try:
            # Without a buffer, closing the file writes nothing that could fail.
            with os.fdopen(opened, "wb", buffering=0) as file:
                # The umask may have taken these rights from the user too.
                os.fchmod(opened, 0o600)
                reserved = ReservedFile(file, part, target)
                reserved.reserve(_size(target) + _SPARE_BYTES)
                yield reserved
        finally:
            part.unlink(missing_ok=True)


def _require_writable(target: Path) -> None:
    """Raise an `OSError` if a file can neither be written nor be replaced.

    A file may be mounted read-only by itself, or be immutable, in a folder that can be written.
    """
    try:
        with target.open("r+b", buffering=0):
            pass
    except FileNotFoundError:
        return
    except PermissionError as error:
        # A file whose mode alone forbids it can be replaced by its owner.
        if error.errno != errno.EACCES or target.stat().st_uid != os.geteuid():
            raise


def _part_prefix(target: Path) -> str:
    """The beginning of the names of parts."""
    return f".{target.name}.part-"


def _parts(target: Path) -> list[Path]:
    """The files with new contents that were not given their name, complete or not."""
    return list(target.parent.glob(f"{_part_prefix(target)}*"))


def _written_at(path: Path) -> int:
    """The time at which a file was written, in ns; 0 if there is no such file."""
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _is_complete(part: Path) -> bool:
    """True if a part is a file of this user that was written to its end.

    A part that was not holds blanks, or a beginning of an object.
    """
    try:
        found = part.lstat()
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        return is_own and bool(stored_fields(part))
    except (OSError, ConfigError):
        return False


def _remove_leftovers(target: Path) -> None:
    """Remove old parts.

    A newer one may belong to another home whose file is a link to ours, with a lock of its own.
    """
    newest = time.time() - _LEFT_AFTER_S
    for path in _parts(target):
        with suppress(OSError):
            if path.lstat().st_mtime < newest:
                path.unlink()


def _size(path: Path) -> int:
    """The size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _write_all(file: FileIO, data: bytes) -> None:
    """Write from the current place to the end of the file, until it is on the disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate()
    os.fsync(file.fileno())
