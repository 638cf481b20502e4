"""Write planned changes to disk: all of them, or none.

A file is written beside its place and renamed into it, so that nobody ever sees half of it. What was
there before is remembered until the last change is made, and put back if one of them fails.
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.overlay import PlannedFile

_NOT_REPLACEABLE = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV}
"""The directory may not be written, the owner not be kept, or something is mounted on the file."""


def commit(files: Sequence[PlannedFile]) -> None:
    """Make the changes. Whatever ends this early, an interrupt included, nothing stays changed.

    Raises:
        PatchError: of kind `file`; the message says so if something could not be put back.
    """
    transaction = _Transaction()
    try:
        for file in files:
            _check_unchanged(file)
        removed = [file for file in files if not file.present and file.before is not None]
        written = [file for file in files if file.present]
        # Removals come last, so that a move cut short has its contents twice rather than not at all,
        # but for files whose names are needed for directories.
        directories = {file.location.parent for file in written}
        above = directories.union(*(directory.parents for directory in directories))
        for file in removed:
            if file.location in above:
                transaction.remove(file)
        for file in written:
            transaction.write(file)
        for file in removed:
            if file.location not in above:
                transaction.remove(file)
    except PatchError as error:
        if lost := transaction.roll_back():
            reason = f"{error.reason}\nCould not be put back: {', '.join(lost)}"
            raise PatchError(reason, kind="file") from error
        raise
    except BaseException:
        transaction.roll_back()
        raise
    transaction.finish()


def describe(error: OSError) -> str:
    """The cause as Codex words it: `No such file or directory (os error 2)`."""
    return f"{error.strerror} (os error {error.errno})" if error.errno else str(error)


def _check_unchanged(file: PlannedFile) -> None:
    try:
        now = file.location.lstat()
    except OSError:
        now = None
    if _version(now) != _version(file.before):
        raise PatchError(
            f"Failed to write file {file.path}: it has changed since the patch was checked",
            kind="file",
        )


def _version(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


class _Transaction:
    def __init__(self) -> None:
        self._undo: list[tuple[Path, Callable[[], object]]] = []
        self._set_aside: list[Path] = []

    def write(self, file: PlannedFile) -> None:
        before, data = file.before, file.new or b""
        try:
            if before is None:
                self._create(file, data, file.mode)
            elif file.old is not None and stat.S_ISREG(before.st_mode):
                self._overwrite(file, before, file.old, data)
            else:
                # Removed by the patch and made anew; what was there can not be written back.
                self.remove(file)
                self._create(file, data, file.mode)
        except OSError as error:
            raise PatchError(
                f"Failed to write file {file.path}: {describe(error)}", kind="file"
            ) from error

    def remove(self, file: PlannedFile) -> None:
        # Renaming keeps everything about the file, whatever it is, for the way back.
        aside = _name_beside(file.location)
        try:
            file.location.rename(aside)
        except OSError as error:
            raise PatchError(
                f"Failed to delete file {file.path}: {describe(error)}", kind="file"
            ) from error
        self._set_aside.append(aside)
        self._undo.append((file.path, lambda: aside.rename(file.location)))

    def roll_back(self) -> list[str]:
        """Undo everything, the last change first; the files for which that failed."""
        lost: list[str] = []
        for path, undo in reversed(self._undo):
            try:
                undo()
            except OSError:
                lost.append(str(path))
        return lost

    def finish(self) -> None:
        for aside in self._set_aside:
            # The file is gone under its name, which is what was asked for.
            with suppress(OSError):
                aside.unlink()

    def _create(self, file: PlannedFile, data: bytes, mode: int | None) -> None:
        missing: list[Path] = []
        directory = file.location.parent
        while not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        for directory in reversed(missing):
            directory.mkdir()
            self._undo.append((directory, directory.rmdir))
        _replace(file.location, data, mode)
        self._undo.append((file.path, file.location.unlink))

    def _overwrite(
        self, file: PlannedFile, before: os.stat_result, old: bytes, data: bytes
    ) -> None:
        location = file.location
        old_mode = stat.S_IMODE(before.st_mode)
        mode = old_mode if file.mode is None else file.mode
        if before.st_nlink == 1:
            try:
                _replace(location, data, mode, owner=before)
            except OSError as error:
                if error.errno not in _NOT_REPLACEABLE:
                    raise
            else:
                undo = partial(_replace, location, old, old_mode, owner=before)
                self._undo.append((file.path, undo))
                return
        # A write that fails half-way has to be undone as well.
        self._undo.append((file.path, partial(_rewrite, location, old, old_mode)))
        _rewrite(location, data, mode)


def _replace(
    location: Path, data: bytes, mode: int | None, owner: os.stat_result | None = None
) -> None:
    """Make a file in one step, in place of what is there."""
    temporary = _name_beside(location)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            made = os.fstat(descriptor)
            if owner is not None and (made.st_uid, made.st_gid) != (owner.st_uid, owner.st_gid):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            if mode is not None and stat.S_IMODE(made.st_mode) != mode:
                os.fchmod(descriptor, mode)
        temporary.replace(location)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _rewrite(location: Path, data: bytes, mode: int) -> None:
    """Overwrite a file in place, which keeps its links, owner and directory entry."""
    with location.open("r+b") as stream:
        stream.write(data)
        stream.truncate()
        if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) != mode:
            os.fchmod(stream.fileno(), mode)


def _name_beside(location: Path) -> Path:
    # Not made from the file's own name, which may be as long as a name can be.
    return location.with_name(f".codex-py-{os.urandom(6).hex()}.tmp")
