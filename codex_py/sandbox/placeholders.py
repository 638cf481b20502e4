"""Makes placeholders: empty folders at protected names that do not exist, while commands run.

A mount can only cover a name that exists, so the sandbox needs them. A placeholder is recognised by
its modification time. Every agent that needs it holds a shared lock on it, and the last one removes
it. All placeholders are listed in a file in the home: if an agent is killed, the next agent removes
them, in whatever folder it works.
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
"""The wait for a lock. Another agent holds the exclusive lock only briefly. A command may hold it
for ever; then the name counts as taken."""
_LIST_TIMEOUT_S = 0.1
_MARK_S = 1_000_000_007
"""A modification time, in seconds, that no other folder has. Creating an entry in the folder
changes it."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Placeholders:
    """Creates and removes placeholders.

    Args:
        listed: the file that lists the placeholders of all agents, created when needed. If None,
            they are not listed.
        folder_times: is told of the changes to the folders that contain placeholders.
    """

    def __init__(
        self, listed: Path | None = None, folder_times: FolderTimes | None = None
    ) -> None:
        self._listed = listed
        self._folder_times = folder_times or FolderTimes()
        self._held: dict[Path, int] = {}
        """The descriptor of each placeholder, which has a shared lock."""

    def hold(self, paths: Iterable[Path]) -> list[Path]:
        """Create the folders that do not exist, or were removed since the last call.

        A name that is taken by anything else is left alone.

        Returns:
            The paths at which there are placeholders now.

        Raises:
            ToolError: a folder could not be created here, but a command might be able to create it.
        """
        wanted = list(paths)
        missing = [path for path in wanted if not self._is_held(path)]
        self._list(missing)
        for path in missing:
            if path in self._held:
                os.close(self._held.pop(path))
            try:
                self._hold(path)
            except OSError as error:
                is_taken = os.path.lexists(path)
                # It is no error either if no command could create the folder.
                if not is_taken and _may_get_entries(path.parent, error):
                    text = (
                        f"{path.parent} cannot be written to ({error.strerror}),"
                        " so no command can run with `-s workspace-write`,"
                        f" which protects {path.name} in it:"
                        " use `-s read-only`, or make the folder writable"
                    )
                    raise ToolError(text, code="SandboxUnavailable") from error
        return [path for path in wanted if path in self._held]

    def _is_held(self, path: Path) -> bool:
        return path in self._held and _is_at(self._held[path], path)

    def release(self) -> None:
        """Release all placeholders.

        Those that are still empty and that no other agent holds are removed.
        """
        while self._held:
            self._remove(*self._held.popitem())

    def remove_leftovers(self) -> None:
        """Remove the placeholders of agents that were killed."""
        if self._listed is None or not self._listed.is_file():
            return
        with suppress(OSError), locked(self._listed, _LIST_TIMEOUT_S, is_file=True):
            names = self._listed.read_bytes().split(b"\0")[:-1]
            paths = {Path(os.fsdecode(name)) for name in names}
            for path in paths:
                with suppress(OSError):
                    self._remove(path, os.open(path, _FOLDER_FLAGS))
            # Keep the placeholders of agents that are alive.
            kept = [path for path in paths if is_empty_folder(path)]
            self._listed.write_bytes(_entries(kept))

    def _list(self, paths: Sequence[Path]) -> None:
        """Add placeholders to the list.

        If that fails and we are killed, only an agent that works in the same folder removes them.
        """
        if self._listed is None or not paths:
            return
        with suppress(OSError):
            make_private(self._listed.parent)
            with (
                locked(self._listed, _LIST_TIMEOUT_S, is_file=True),
                self._listed.open("ab") as end,
            ):
                end.write(_entries(paths))

    def _hold(self, path: Path) -> None:
        """Create a placeholder or find that of another agent, and lock it.

        Does nothing if there is a folder with entries.

        Raises:
            OSError: the folder cannot be made or locked, or there is no folder.
        """
        while path not in self._held:
            made = True
            try:
                with self._folder_times.without(path.parent):
                    path.mkdir(mode=0o755)
            except FileExistsError:
                made = False
            descriptor = os.open(path, _FOLDER_FLAGS)
            try:
                if not made and os.listdir(descriptor):
                    return
                # An empty folder without the mark counts too: another agent may be about to set the
                # mark.
                lock(descriptor, _LOCK_TIMEOUT_S, shared=True)
                if not _is_at(descriptor, path):
                    # The folder was removed before we had the lock.
                    continue
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
                is_marked = int(os.fstat(descriptor).st_mtime) == _MARK_S
                if is_marked and _is_at(descriptor, path):
                    with self._folder_times.without(path.parent):
                        path.rmdir()
        finally:
            os.close(descriptor)


def _entries(paths: Iterable[Path]) -> bytes:
    """The paths as they are written to the list: a NUL follows each."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _may_get_entries(folder: Path, error: OSError) -> bool:
    """True if a command could create an entry in a folder, if need be after a `chmod`.

    Args:
        error: the reason why we could not.
    """
    try:
        is_own = folder.stat().st_uid == os.geteuid()
    except OSError:
        return False
    if os.access(f"{folder}/", os.W_OK):
        return True
    return is_own and error.errno == errno.EACCES


def _is_at(descriptor: int, path: Path) -> bool:
    """True if the open folder is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
