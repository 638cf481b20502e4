"""Reads, writes, copies and removes files for the client, who may use all but the denied ones.

Errors of the system have the words of Codex 0.171: `No such file or directory (os error 2)`.
"""

import errno
import os
import stat
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.filesystem.denials import Denials, denials_of
from codex_py.filesystem.private import record_folders
from codex_py.filesystem.reading import (
    NotOrdinary,
    Refusal,
    open_ordinary,
    read_whole,
    refuse_extraordinary,
)
from codex_py.frontends.app_server.machine.held_places import (
    HeldPlace,
    held_place,
    listed_folder,
    make_folders,
)
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields

_MAX_READ_BYTES: Final = 32 << 20
"""The size of a file that is sent to the client in one message."""
_MAX_ENTRIES: Final = 100_000
_PIECE_BYTES: Final = 1 << 20
_WRITE_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_NOFOLLOW
    | os.O_NONBLOCK
    | os.O_NOCTTY
    | os.O_CLOEXEC
)


class Ended(Exception):
    """The client has left, so that a long operation stops in the middle."""


class FileAccess:
    """The files that the client may use. Each function blocks, and is called in a thread.

    Each raises an `OSError`, or an `RpcError` for what the client must not do.

    Args:
        denials: the rules, each of which may deny a path.
        home: `$CODEX_HOME`, where features keep copies of files that may be denied now.
    """

    def __init__(self, denials: Sequence[Denials], home: Path) -> None:
        self.ended = threading.Event()
        """Set this to stop an operation in the middle."""
        self._denials = denials
        self._records: list[str] = []
        if denials:
            self._records = [os.path.realpath(each) for each in record_folders(home)]

    def read(self, path: Path) -> bytes:
        self.check(path)
        # A link that leads nowhere is a missing file, as for other programs.
        path.stat()
        with _explained(path):
            return read_whole(path, _MAX_READ_BYTES, refuses=self._refusal)

    def write(self, path: Path, data: bytes) -> None:
        """Write a file in its place: its links and its mode stay as they are."""
        self.check(path)
        with self._opened_to_write(path) as file:
            file.truncate()
            file.write(data)

    def make_folder(self, path: Path, *, recursive: bool) -> None:
        if recursive:
            make_folders(self._real(path))
            return
        with held_place(self._real_entry(path)) as (folder, name):
            os.mkdir(name, dir_fd=folder)

    def metadata(self, path: Path) -> Fields:
        self.check(path)
        found = path.stat()
        # Linux has no call for the time of creation that Python 3.11 offers.
        created_s: float = getattr(found, "st_birthtime", 0.0)
        return {
            "isDirectory": stat.S_ISDIR(found.st_mode),
            "isFile": stat.S_ISREG(found.st_mode),
            "isSymlink": path.is_symlink(),
            "createdAtMs": int(created_s * 1000),
            "modifiedAtMs": found.st_mtime_ns // 1_000_000,
        }

    def entries(self, path: Path) -> list[Fields]:
        """The entries of a folder, without links that lead nowhere."""
        found: list[Fields] = []
        with (
            listed_folder(self._real(path)) as folder,
            os.scandir(folder) as entries,
        ):
            for entry in islice(entries, _MAX_ENTRIES + 1):
                with suppress(OSError):
                    mode = entry.stat().st_mode
                    fields = {
                        "fileName": os.fsencode(entry.name).decode(errors="replace"),
                        "isDirectory": stat.S_ISDIR(mode),
                        "isFile": stat.S_ISREG(mode),
                    }
                    found.append(fields)
        if len(found) > _MAX_ENTRIES:
            text = f"`{path}` has more than {_MAX_ENTRIES} entries"
            raise RpcError(INVALID_REQUEST, text)
        return found

    def remove(
        self,
        path: Path,
        *,
        recursive: bool,
        force: bool,
    ) -> None:
        """Remove a file, a link, or a folder.

        Args:
            recursive: False: a folder has to be empty.
            force: False: the path has to exist.
        """
        real = self._real_entry(path)
        try:
            with held_place(real) as place:
                self._remove(place, real, recursive=recursive)
        except FileNotFoundError:
            if not force or os.path.lexists(real):
                raise

    def copy(
        self,
        source: Path,
        destination: Path,
        *,
        recursive: bool,
    ) -> None:
        """Copy a file, a link as a link, or a folder into one that may exist already.

        Args:
            recursive: False: a folder is refused.
        """
        self.check(source)
        self.check(destination)
        mode = source.lstat().st_mode
        if not stat.S_ISDIR(mode):
            if not self._copy_entry(source, destination, mode):
                text = "fs/copy only supports regular files, directories, and symlinks"
                raise RpcError(INVALID_REQUEST, text)
            return
        if not recursive:
            text = "fs/copy requires recursive: true when sourcePath is a directory"
            raise RpcError(INVALID_REQUEST, text)
        if destination.resolve().is_relative_to(source.resolve()):
            text = "fs/copy cannot copy a directory to itself or one of its descendants"
            raise RpcError(INVALID_REQUEST, text)
        self._check_below(str(source))
        self._copy_folder(source, destination)

    def check(self, path: Path) -> None:
        """Raise an `RpcError` if the path is denied."""
        if self.refuses(str(path)):
            raise _denied(path)

    def refuses(self, path: str, found: os.stat_result | None = None) -> bool:
        """True if a path is denied. `found`: the status of the file, if it is open already."""
        if not self._denials:
            return False
        real = os.path.realpath(path)
        if any(f"{real}/".startswith(f"{record}/") for record in self._records):
            return True
        return any(denials.refuses(path, found) for denials in self._denials)

    @property
    def _refusal(self) -> Refusal | None:
        """None if nothing is denied, which makes opening a file quicker."""
        if self._denials:
            return self.refuses
        return None

    def _real(self, path: Path) -> str:
        """The path without links, of which the last parts may be missing.

        Raises an `RpcError` if it is denied.
        """
        self.check(path)
        real = os.path.realpath(path)
        if self.refuses(real):
            raise _denied(path)
        return real

    def _real_entry(self, path: Path) -> str:
        """The path without links on the way; the last part may be one. Raises as `_real`."""
        self.check(path)
        # The root is its own parent.
        real = os.path.join(os.path.realpath(path.parent), path.name)
        if self.refuses(real):
            raise _denied(path)
        return real

    def _check_below(self, folder: str) -> None:
        """Raise an `RpcError` if anything in a folder is denied."""
        if not self._denials:
            return
        for place, folders, files in os.walk(folder):
            self._go_on()
            for name in (*folders, *files):
                self.check(Path(place, name))

    def _go_on(self) -> None:
        """Raise `Ended` if the client has left."""
        if self.ended.is_set():
            raise Ended

    def _opened_to_write(self, path: Path) -> BinaryIO:
        """Open a regular file for writing, or create it; its contents are still there."""
        with _explained(path):
            with suppress(FileNotFoundError):
                # Opening a device can have effects.
                refuse_extraordinary(path.stat())
            real = self._real(path)
            with held_place(real) as (folder, name):
                opened = os.open(name, _WRITE_FLAGS, 0o666, dir_fd=folder)
            file = os.fdopen(opened, "wb")
            try:
                found = os.fstat(opened)
                refuse_extraordinary(found)
                if self.refuses(real, found):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            except BaseException:
                file.close()
                raise
        return file

    def _remove(self, place: HeldPlace, real: str, *, recursive: bool) -> None:
        """Remove what is at a place. `real`: its path."""
        folder, name = place
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            os.unlink(name, dir_fd=folder)
            return
        if recursive:
            self._check_below(real)
            self._empty(place)
        os.rmdir(name, dir_fd=folder)

    def _empty(self, place: HeldPlace) -> None:
        """Remove everything in a folder, without following links that somebody puts into it."""
        folder, name = place
        walk = os.fwalk(name, topdown=False, onerror=_raise, dir_fd=folder)
        for _, folders, files, opened in walk:
            for name in files:
                self._go_on()
                os.unlink(name, dir_fd=opened)
            for name in folders:
                is_link = stat.S_ISLNK(os.lstat(name, dir_fd=opened).st_mode)
                if is_link:
                    os.unlink(name, dir_fd=opened)
                else:
                    os.rmdir(name, dir_fd=opened)

    def _copy_folder(self, source: Path, destination: Path) -> None:
        """Copy a folder. Pipes, sockets and devices in it are left out, as in Codex."""
        make_folders(self._real(destination))
        with listed_folder(self._real(source)) as folder:
            names = sorted(os.listdir(folder))
        for name in names:
            self._go_on()
            inner = source / name
            copied = destination / name
            mode = inner.lstat().st_mode
            if stat.S_ISDIR(mode):
                self._copy_folder(inner, copied)
            else:
                self._copy_entry(inner, copied, mode)

    def _copy_entry(self, source: Path, destination: Path, mode: int) -> bool:
        """Copy a file or a link. Returns False for anything else."""
        if stat.S_ISLNK(mode):
            with held_place(self._real_entry(source)) as (folder, name):
                target = os.readlink(name, dir_fd=folder)
            with held_place(self._real_entry(destination)) as (folder, name):
                os.symlink(target, name, dir_fd=folder)
        elif stat.S_ISREG(mode):
            self._copy_file(source, destination)
        else:
            return False
        return True

    def _copy_file(self, source: Path, destination: Path) -> None:
        """Copy a file with its mode. Does nothing if both are the same file."""
        with _explained(source):
            opened = open_ordinary(source, refuses=self._refusal)
        with (
            os.fdopen(opened, "rb") as read,
            self._opened_to_write(destination) as written,
        ):
            found = os.fstat(opened)
            if os.path.samestat(found, os.fstat(written.fileno())):
                return
            written.truncate()
            for piece in iter(partial(read.read, _PIECE_BYTES), b""):
                self._go_on()
                written.write(piece)
            os.fchmod(written.fileno(), stat.S_IMODE(found.st_mode))


def client_access(server: Server, threads: OpenThreads) -> FileAccess:
    """The files that the client may use at this moment.

    What the permissions of the server's folder or of an open thread deny is refused.

    Raises:
        ConfigError: the configuration, which has the permissions, cannot be read.
    """
    own = server.configuration().sandbox_policy(server.options.add_dirs)
    rules = {own.files, *(thread.file_rules for thread in threads)}
    denials = [denials_of(each) for each in rules if each.denies]
    return FileAccess(denials, server.home)


@contextmanager
def _explained(path: Path) -> Generator[None]:
    """Say in Codex's words that something is no file, with the reason."""
    try:
        yield
    except NotOrdinary as error:
        text = f"path `{path}` is not a file: {error.strerror}"
        raise RpcError(INVALID_REQUEST, text) from error


def _denied(path: Path) -> RpcError:
    return RpcError(INVALID_REQUEST, f"`{path}` is denied by the permissions")


def _raise(error: OSError) -> None:
    raise error
