"""Bind-mount placeholders: empty folders at protected names that do not exist, while commands run.

A mount can only cover a name that exists. A placeholder is recognised by its modification time.
Every agent that needs it holds a shared lock on it, and the last one removes it. All placeholders
are listed in a file in the home: if an agent is killed, the next agent removes them, in whatever
folder it works.
"""

import errno
import fcntl
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.filesystem.folder_times import FolderTimes
from codex_py.filesystem.private import lock, locked, make_private
from codex_py.filesystem.reading import is_empty_folder

_LOCK_TIMEOUT_S = 1.0
"""The wait for another agent, which holds the exclusive lock only briefly. A command may hold it
for ever; then the name counts as taken."""
_LIST_TIMEOUT_S = 0.1
_MARK_S = 1_000_000_007
"""A modification time, in seconds, that no other folder has. Creating an entry in the folder
changes it."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Placeholders:
    """Creates and removes placeholders.

    Args:
        listed: the file that lists the placeholders of all agents, created when needed; None: do
            not list them.
        folder_times: is told of the changes to the folders that contain placeholders.
    """

    def __init__(
        self, listed: Path | None = None, folder_times: FolderTimes | None = None
    ) -> None:
        self._listed = listed
        self._folder_times = folder_times or FolderTimes()
        self._held: dict[Path, int] = {}

    def hold(self, paths: Iterable[Path]) -> list[Path]:
        """Create the folders that do not exist, or were removed since the last call.

        A name that is taken by anything else is left alone. Returns the held folders.

        Raises:
            ToolError: a folder could not be created here, but a command might be able to create it.
        """
        wanted = list(paths)
        held = self._held
        missing = [
            path for path in wanted if not (path in held and _is_at(held[path], path))
        ]
        self._list(missing)
        for path in missing:
            if path in held:
                os.close(held.pop(path))
            try:
                self._hold(path)
            except OSError as error:
                # It is no error if the name is taken, or if no command could create it either.
                if not os.path.lexists(path) and _may_get_entries(path.parent, error):
                    text = (
                        f"{path.parent} cannot be written to ({error.strerror}), so no command can run"
                        f" with `-s workspace-write`, which protects {path.name} in it: use"
                        " `-s read-only`, or make the folder writable"
                    )
                    raise ToolError(text, code="SandboxUnavailable") from error
        return [path for path in wanted if path in held]

    def release(self) -> None:
        """Release all placeholders, and remove those that are still empty and that no other agent holds."""
        while self._held:
            self._remove(*self._held.popitem())

    def remove_leftovers(self) -> None:
        """Remove the placeholders of agents that were killed."""
        if self._listed is None or not self._listed.is_file():
            return
        with suppress(OSError), locked(self._listed, _LIST_TIMEOUT_S, is_file=True):
            names = set(self._listed.read_bytes().split(b"\0")[:-1])
            for path in map(Path, map(os.fsdecode, names)):
                with suppress(OSError):
                    self._remove(path, os.open(path, _FOLDER))
            # Keep the placeholders of agents that are alive.
            kept = [
                name + b"\0"
                for name in names
                if is_empty_folder(Path(os.fsdecode(name)))
            ]
            self._listed.write_bytes(b"".join(kept))

    def _list(self, paths: Sequence[Path]) -> None:
        """List the placeholders.

        If that fails, only an agent in the same folder removes them after a kill.
        """
        if self._listed is None or not paths:
            return
        with suppress(OSError):
            make_private(self._listed.parent)
            with (
                locked(self._listed, _LIST_TIMEOUT_S, is_file=True),
                self._listed.open("ab") as end,
            ):
                end.write(b"".join(os.fsencode(path) + b"\0" for path in paths))

    def _hold(self, path: Path) -> None:
        while path not in self._held:
            made = True
            try:
                with self._folder_times.without(path.parent):
                    path.mkdir(mode=0o755)
            except FileExistsError:
                made = False
            descriptor = os.open(path, _FOLDER)
            try:
                if not made and os.listdir(descriptor):  # noqa: PTH208 -- of a descriptor
                    return
                # An empty folder without the mark counts too: another agent may be about to set the
                # mark.
                lock(descriptor, _LOCK_TIMEOUT_S, shared=True)
                # Otherwise, the folder was removed before we had the lock.
                if _is_at(descriptor, path):
                    if made:
                        os.utime(descriptor, (_MARK_S, _MARK_S))
                    # The copy has the same lock.
                    self._held[path] = os.dup(descriptor)
            finally:
                os.close(descriptor)

    def _remove(self, path: Path, descriptor: int) -> None:
        """Close the folder, and remove it if it is an empty placeholder that no agent holds."""
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if int(os.fstat(descriptor).st_mtime) == _MARK_S and _is_at(
                    descriptor, path
                ):
                    with self._folder_times.without(path.parent):
                        path.rmdir()
        finally:
            os.close(descriptor)


def _may_get_entries(folder: Path, error: OSError) -> bool:
    """True if a command could create an entry, if need be after a `chmod`.

    `error`: the reason why we could not.
    """
    try:
        is_own = folder.stat().st_uid == os.geteuid()
    except OSError:
        return False
    return os.access(f"{folder}/", os.W_OK) or (is_own and error.errno == errno.EACCES)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
