"""Creates private files and folders, and locks them. LIGHT."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_POLL_S = 0.01
_NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors of file systems without locks. Working without a lock is better than not working."""
_RECORDS_MARK: Final = ".records"


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents, accessible only to the user whatever the umask is.

    Raises:
        OSError: one of them cannot be made.
    """
    # `Path.mkdir(mode, parents=True)` gives the mode to the last folder alone.
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def make_record_folder(home: Path, name: str) -> Path:
    """Make the folder `codex-py/NAME` of `$CODEX_HOME` for copies of the user's files, such as patches.

    The sandbox hides it if the policy denies any path: a copy may have the contents of such a path. A
    file marks it, so that this holds also when the feature that made it is gone.

    Raises:
        OSError: it cannot be made.
    """
    folder = home / "codex-py" / name
    make_private(folder)
    (folder / _RECORDS_MARK).touch()
    return folder


def record_folders(home: Path) -> Iterator[Path]:
    """Yield the folders that `make_record_folder` has made in `$CODEX_HOME`."""
    for mark in home.glob(f"codex-py/*/{_RECORDS_MARK}"):
        yield mark.parent


def open_emptied(path: Path) -> int:
    """Empty or create a private file and open it for writing; returns the descriptor.

    Raises:
        OSError: it cannot be opened, is a link, is not a file, or belongs to another user.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        opened = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        reason = "it is a symbolic link; name the file itself"
        raise OSError(errno.ELOOP, reason) from error
    try:
        found = os.fstat(opened)
        if stat.S_ISREG(found.st_mode):
            if found.st_uid != os.geteuid():
                raise OSError(errno.EPERM, "it belongs to another user")
            os.fchmod(opened, 0o600)
            os.ftruncate(opened, 0)
        elif not stat.S_ISCHR(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        os.set_blocking(opened, True)
    except OSError:
        os.close(opened)
        raise
    return opened


@contextmanager
def written_whole(path: Path, *, replaces: bool = True) -> Generator[BinaryIO]:
    """Open a private file for writing, which gets its name once it is complete.

    After an exception in the context, the name is not touched.

    Raises:
        FileExistsError: the name is taken, and `replaces` is False.
        OSError: it cannot be written.
    """
    part = path.with_name(f".part-{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    opened = os.open(part, flags, 0o600)
    try:
        with os.fdopen(opened, "wb") as file:
            # The umask may have taken these rights from the user too.
            os.fchmod(opened, 0o600)
            yield file
        if replaces:
            part.replace(path)
        else:
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def locked(
    path: Path,
    timeout_s: float,
    *,
    is_file: bool = False,
    shared: bool = False,
    given_up: Callable[[], bool] = lambda: False,
) -> Generator[None]:
    """Hold the lock of a folder or a file. Raises as `lock` does.

    Args:
        is_file: the path is that of a private file, which is made if it is missing.
        given_up: see `lock`.
    """
    if is_file:
        flags = os.O_RDWR | os.O_CREAT
    else:
        flags = os.O_RDONLY | os.O_DIRECTORY
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        lock(descriptor, timeout_s, shared=shared, given_up=given_up)
        yield
    finally:
        os.close(descriptor)


def lock(
    descriptor: int,
    timeout_s: float,
    *,
    shared: bool = False,
    given_up: Callable[[], bool] = lambda: False,
) -> None:
    """Hold the lock of a file or a folder until its descriptor is closed.

    Any program that may read the file can hold the lock, commands of the model too, so every wait
    is bounded.

    Args:
        timeout_s: how long to wait; with 0 it is tried once.
        given_up: asked between two tries; True ends the wait as the timeout does.

    Raises:
        TimeoutError: another process held the lock all the time.
        OSError: it cannot be locked.
    """
    deadline = time.monotonic() + timeout_s
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # flock has no timeout.
            if time.monotonic() >= deadline or given_up():
                reason = "another process has locked it and does not let go of it"
                raise TimeoutError(errno.ETIMEDOUT, reason) from error
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            return
        else:
            return
