"""Places in folders that are held open, so that nobody can lead them elsewhere by a link.

A command may swap a folder for a link at any moment, also between a check of a path and its use.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from codex_py.filesystem.reading import FOLDER_FLAGS, open_folder

_LIST_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class HeldPlace(NamedTuple):
    """A name in an open folder."""

    folder: int
    """The descriptor of the folder."""
    name: str


@contextmanager
def held_place(real: str) -> Generator[HeldPlace]:
    """Hold the folder of an absolute path without links. What has the name may be missing, or a link.

    Raises:
        OSError: the folder is missing, or a link is on the way to it by now.
    """
    folder, _, name = real.rpartition("/")
    holder = open_folder(folder or "/")
    try:
        yield HeldPlace(holder, name or ".")
    finally:
        os.close(holder)


@contextmanager
def listed_folder(real: str) -> Generator[int]:
    """Open a folder to list it, by an absolute path without links. Raises as `held_place`."""
    holder = open_folder(real)
    try:
        opened = os.open(".", _LIST_FLAGS, dir_fd=holder)
    finally:
        os.close(holder)
    try:
        yield opened
    finally:
        os.close(opened)


def make_folders(real: str) -> None:
    """Make a folder and its missing parents, by an absolute path without links.

    Raises:
        OSError: one of them cannot be made, or something else has the name.
    """
    *above, last = ["."] + [name for name in real.split("/") if name]
    holder = os.open("/", FOLDER_FLAGS)
    try:
        for name in above:
            holder = _entered(holder, name)
        try:
            holder = _entered(holder, last)
        except NotADirectoryError as error:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
    finally:
        os.close(holder)


def _entered(holder: int, name: str) -> int:
    """Open a folder in another one, which is closed then. Makes it if it is missing."""
    try:
        inner = os.open(name, FOLDER_FLAGS, dir_fd=holder)
    except FileNotFoundError:
        # Another program may make it at the same time.
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=holder)
        inner = os.open(name, FOLDER_FLAGS, dir_fd=holder)
    os.close(holder)
    return inner
