"""Copies a work tree before and after commands.

git compares the work tree with an index of our own, so a copy costs as much as finding what has changed since the last
one: about 25 ms of the processor for 10,000 files if none has. Names are listed only if a folder has changed, which
saves a third.

These are not copied: empty folders, owners and times; the `.git` of repositories inside of this one; large
files; ignored files that are large or in ignored folders. What the first copy of a turn leaves out, its later
copies leave out too, even if `.gitignore` changes meanwhile.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from codex_py.filesystem.git import git_folder
from codex_py.filesystem.reading import ordinary_file, read_whole
from codex_py.filesystem.repository import own_repository
from codex_py.patch.files.modes import permissions_by_umask
from codex_py.patch.undo.copies.folders import (
    MAX_LOOKED_AT,
    Held,
    files_below,
    folder_states,
    is_file_or_link,
    special_files,
)
from codex_py.patch.undo.copies.store import ALONE, CopyStore, SnapshotError

_MAX_FILE_BYTES: Final = 10 * 1024 * 1024
_MAX_IGNORED_BYTES: Final = 1024 * 1024
_MAX_IGNORED: Final = 500
_MAX_NEW: Final = 100_000
"""The number of files that one copy may look at."""
_MAX_NEW_BYTES: Final = 1024 * 1024 * 1024
"""The limit for all files that one copy adds."""
_KEEPS_NOTHING: Final = -1
"""The size limit of a file that must not be copied."""
_RECENT_S: Final = 2.0
"""A second change within this time may leave the times of a file or folder unchanged."""
_MAX_HEAD_BYTES: Final = 4096
_GONE: Final = [0]
"""The mark of a folder that does not exist."""
_OTHERS: Final = ("ls-files", "-z", "-o", "--directory")
_CHANGED: Final = ("diff-files", "-z", "--name-only", "--ignore-submodules=all")
_UNTRACKED: Final = (
    "status",
    "-z",
    "--porcelain",
    "--untracked-files=all",
    "--ignored=matching",
    "--no-renames",
    "--ignore-submodules=all",
)
"""Lists the files that are not in the index, and ignored folders without their contents."""
_NEW: Final = "?? "
_IGNORED: Final = "!! "
_LIST_S: Final = 5.0
"""The time that listing names may take."""
_LIST_FOLDER_S: Final = 1.0
"""The same outside of a repository, where a folder may hold anything."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a work tree. Paths are relative to its root."""

    tree: str
    """The object id of the tree."""
    modes: Mapping[str, int]
    """The permission bits, by path, of files whose bits differ from those by the umask."""
    unkept: Mapping[str, tuple[int, int]]
    """What was left out, by path: files with their size and `st_ctime_ns`, folders with their number
    of entries and the time of the latest change."""
    empty: Sequence[str] = ()
    """The folders without copied files when the turn began, so that the turn did not make them. Each
    ends in a slash."""
    held: Mapping[str, Held] = field(default_factory=dict[str, Held], compare=False)
    """The files and links that the first copy of a turn left out, even those in ignored folders."""
    holds_all: bool = field(default=True, compare=False)
    """False if `held` is incomplete, because too many files were left out."""
    began_ns: int = field(default=0, compare=False)
    """The time when copying began, by the clock of the file system; 0 if unknown."""
    written: Sequence[int] = field(default=(), compare=False)
    """The inodes of files that patches of the turn wrote before the first copy of it."""

    def had_unkept(self, name: str) -> bool:
        """True if this path was left out, or is in a folder that was."""
        if name in self.unkept:
            return True
        return any(f"{folder}/" in self.unkept for folder in _folders_of(name))


@dataclass(slots=True)
class _State:
    """The state of the store after the last copy, as its file `state` has it.

    Paths are relative to the root. Folders end in a slash.
    """

    tree: str = ""
    modes: dict[str, int] = field(default_factory=dict[str, int])
    """See `Snapshot.modes`."""
    others: str = ""
    """A digest of the untracked names and of empty folders; empty if they must be listed again."""
    names: list[str] = field(default_factory=list[str])
    """The untracked names. They are valid as long as the `folders` are unchanged."""
    folders: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The folders of copied files, each with a mark that changes with every new or removed entry:
    device, inode and `st_ctime_ns`. The mark is empty if the folder must be looked at again, and
    `_GONE` if it does not exist."""
    left_out: list[str] = field(default_factory=list[str])
    """Files that were not copied."""
    too_many: list[str] = field(default_factory=list[str])
    """Ignored files that were not copied because there are too many."""
    ignored: list[str] = field(default_factory=list[str])
    """Ignored folders."""
    has_held_back: bool = False
    """True if files or folders were left out only because the first copy of the turn left them out."""
    inner: list[str] = field(default_factory=list[str])
    """Folders of repositories inside of this one."""
    just_changed: dict[str, int] = field(default_factory=dict[str, int])
    """Files that changed shortly before the copy, with their `st_ctime_ns`."""
    denied: list[str] = field(default_factory=list[str])
    """Files that the session may not read."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The result of a look at the names in the work tree, before any file is copied."""

    folders: dict[str, list[int]]
    """The folders of copied files with their marks; see `_State.folders`."""
    is_as_before: bool
    """True if certainly no entry was made or removed in these folders."""
    changed: Sequence[str]
    """The copied files that have changed or are gone."""
    others: list[str]
    """The names of untracked files, and of folders without tracked ones."""
    digest: str
    """See `_State.others`."""


class Snapshots:
    """Makes the copies of one work tree. Creating this writes nothing; its methods block.

    Args:
        home: `$CODEX_HOME`, absolute. Nothing in it is copied.
        root, dot_git: see `CopyStore`.
        refuses: true for the absolute paths of files that must not be copied. If None, skip the files
            that were skipped last time.
    """

    def __init__(
        self,
        home: Path,
        root: Path,
        dot_git: Path | None,
        environment: Mapping[str, str],
        refuses: Callable[[str], bool] | None = None,
    ) -> None:
        self.root = root
        self._refuses = refuses
        self.store = CopyStore(home, root, dot_git, environment)
        self._state_path = self.store.path / "state"
        if dot_git is None:
            self._list_s = _LIST_FOLDER_S
        else:
            self._list_s = _LIST_S
        self._own = ""
        """The name of the home, with a slash at its end; empty if it is not in the work tree."""
        own = os.path.realpath(home)
        if Path(own).is_relative_to(root):
            self._own = f"{os.path.relpath(own, root)}/"

    def take(self, before: Snapshot | None = None) -> Snapshot:
        """Copy what has changed since the last copy.

        Args:
            before: the first copy of this turn; None makes the first copy.

        Raises:
            SnapshotError: the work tree cannot be copied, or is too large.
        """
        with self.store.locked():
            self.store.open()
            try:
                return self._take(before)
            except SnapshotError as error:
                if error.is_too_large:
                    raise
                # The store may be damaged, or the user's repository may have lost objects.
                self.store.empty()
                return self._take(before)

    def branch(self) -> str:
        """Return the branch that is checked out, or the commit; empty if there is no repository."""
        with suppress(OSError, ValueError):
            folder = own_repository(self.root).folder
            head = read_whole(folder / "HEAD", _MAX_HEAD_BYTES, root=folder)
            return os.fsdecode(head).strip().removeprefix("ref: refs/heads/")
        return ""

    def known(self, paths: Iterable[str]) -> set[str]:
        """Return those of the paths, relative to the root, that the last copy has.

        Raises:
            SnapshotError: git fails.
        """
        return set(self.store.names("ls-files", "-z", "--", *paths))

    def cover(self, name: str, copies: Iterable[Snapshot]) -> bool:
        """True if each of these copies would contain a file at this path if there was one.

        Args:
            name: relative to the root.
        """
        if self._is_hidden(name) or self.refuses(self.root / name):
            return False
        return not any(copy.had_unkept(name) for copy in copies)

    def refuses(self, path: Path) -> bool:
        """True if the session may not read this file."""
        return self._refuses is not None and self._refuses(str(path))

    def _is_hidden(self, name: str) -> bool:
        """True for files that are never copied: our own, and those of git."""
        return ".git" in name.lower().split("/") or self._is_own(name)

    def _take(self, before: Snapshot | None) -> Snapshot:
        """Make a copy in the open store; see `take`."""
        state = self._last()
        look = self._look(state)
        may_be_new = self._may_be_new(look, state)
        if before is None and state.has_held_back:
            # What was held back then is not held back in this turn.
            may_be_new = True
        limits = dict.fromkeys(look.changed, _MAX_FILE_BYTES)
        if may_be_new:
            limits |= self._untracked(state, before)
        else:
            # Files that were too large may be smaller now.
            limits |= dict.fromkeys(state.left_out, _MAX_IGNORED_BYTES)
            limits |= dict.fromkeys(state.too_many, _KEEPS_NOTHING)
        if before is not None:
            limits = _held_back(limits, before, set(look.changed))
        again = set(self._changed_again(state))
        limits |= dict.fromkeys(again, _MAX_FILE_BYTES)
        if len(limits) > _MAX_NEW:
            raise SnapshotError(f"{self.root} has too many files", is_too_large=True)
        now_s = time.time()
        if self._refuses is not None:
            names = {*limits, *state.denied}
            state.denied = [
                name for name in names if self._refuses(f"{self.root}/{name}")
            ]
        copied, left_out = self._divided(limits, state.modes, {*state.denied})
        state.left_out = list(left_out)
        if before is None:
            held = self._held(left_out, state.denied)
            unkept = self._unkept(left_out, state, held)
        else:
            held = {}
            unkept = self._unkept(left_out | self._places_of(before), state, None)
        state.just_changed = self._just_changed({*state.just_changed, *copied}, now_s)
        removed = set(look.changed).intersection(left_out)
        # Files that seem unchanged leave the index, or git would not read them again.
        removed |= again.difference(look.changed)
        has_changed = bool(copied or removed or not state.tree)
        state.names = look.others
        if has_changed:
            state.tree = self._written(copied, removed)
            state.folders = _watched_again(look.folders, state.folders, copied)
        else:
            state.folders = look.folders
        if has_changed or may_be_new or not look.is_as_before:
            # After copying, the listed files are no longer untracked.
            if has_changed and may_be_new:
                state.others = ""
            else:
                state.others = look.digest
            self._state_path.write_text(json.dumps(asdict(state)), encoding="ascii")
        if before is not None:
            return Snapshot(state.tree, state.modes, unkept, before.empty)
        others = look.others
        if may_be_new:
            others = self._names(*_OTHERS)
        empty = [name for name in others if name.endswith("/")]
        holds_all = _holds_all(unkept) and len(left_out) < MAX_LOOKED_AT
        return Snapshot(state.tree, state.modes, unkept, empty, held, holds_all)

    def _look(self, state: _State) -> _Look:
        folders = self._folder_marks(state)
        is_as_before = (
            folders == state.folders and bool(folders) and all(folders.values())
        )
        if is_as_before:
            changed = self._names(*_CHANGED)
            others = state.names
        else:
            # Both at a time, because each spends its time in the file system.
            with ThreadPoolExecutor(1) as pool:
                listing = pool.submit(self._names, *_OTHERS)
                changed = self._names(*_CHANGED)
                others = listing.result()
        known = {*state.ignored, *state.inner}
        # git lists a folder without known files by its name alone, even after it has got files.
        empty = [name for name in others if name.endswith("/") and name not in known]
        states = folder_states(self.root, self._not_own(empty))
        digest = hashlib.sha256(os.fsencode(f"{others} {states}")).hexdigest()
        return _Look(folders, is_as_before, changed, others, digest)

    def _may_be_new(self, look: _Look, state: _State) -> bool:
        """True if untracked files must be listed again."""
        if look.digest != state.others:
            return True
        # git does not list what is in a folder that has taken the place of a known file.
        return any(
            name.endswith(".gitignore") or _is_folder(self.root, name)
            for name in look.changed
        )

    def _just_changed(self, names: Iterable[str], now_s: float) -> dict[str, int]:
        """The files that changed a moment ago, with their `st_ctime_ns`."""
        found: dict[str, int] = {}
        for name in names:
            status = _status(self.root, name)
            if status and now_s - status.st_ctime < _RECENT_S:
                found[name] = status.st_ctime_ns
        return found

    def _folder_marks(self, state: _State) -> dict[str, list[int]]:
        """Look at the `folders` of the state again; see `_State.folders` for the values."""
        marks = dict[str, list[int]]()
        now_s = time.time()
        for name in state.folders:
            marks[name] = []
            with suppress(PermissionError):
                found = _status(self.root, name)
                if found is None:
                    marks[name] = _GONE
                elif now_s - found.st_ctime >= _RECENT_S:
                    marks[name] = [found.st_dev, found.st_ino, found.st_ctime_ns]
        return marks

    def _divided(
        self,
        limits: Mapping[str, int],
        modes: dict[str, int],
        denied: Collection[str],
    ) -> tuple[list[str], dict[str, os.stat_result]]:
        """Divide files into those to copy, whose `modes` are updated, and those to leave out.

        Args:
            limits: the size limit of each file, in bytes.
        """
        copied = list[str]()
        left_out = dict[str, os.stat_result]()
        usual = usual_modes()
        room = _MAX_NEW_BYTES
        for name, limit in limits.items():
            if self._is_hidden(name) or name in denied:
                continue
            found = _status(self.root, name)
            if found is None:
                # The copy gets to know that it is gone.
                copied.append(name)
                modes.pop(name, None)
                continue
            if not _is_kept(self.root, name, found, min(limit, room)):
                left_out[name] = found
                continue
            copied.append(name)
            modes.pop(name, None)
            room -= found.st_size
            bits = stat.S_IMODE(found.st_mode)
            if stat.S_ISREG(found.st_mode) and bits != usual[bits & 0o100]:
                modes[name] = bits
        return copied, left_out

    def _not_own(self, folders: Iterable[str]) -> list[str]:
        """Drop the folders in the home, and those that the home is in."""
        return [
            name
            for name in folders
            if not self._is_own(name) and not self._own.startswith(name)
        ]

    def _is_own(self, name: str) -> bool:
        """True for the home, and everything in it."""
        return bool(self._own) and f"{name}/".startswith(self._own)

    def _places_of(self, before: Snapshot) -> dict[str, os.stat_result]:
        """The files that are now at paths that were left out when the turn began."""
        found: dict[str, os.stat_result] = {}
        for name in before.unkept:
            if name.endswith("/"):
                continue
            status = _status(self.root, name)
            if status is not None:
                found[name] = status
        return found

    def _held(
        self,
        left_out: Mapping[str, os.stat_result],
        denied: Iterable[str],
    ) -> dict[str, Held]:
        """The files and links that are not copied, without those in ignored folders."""
        found = dict(left_out)
        for name in denied:
            status = _status(self.root, name)
            if status is not None:
                found[name] = status
        return {
            name: Held.of(each) for name, each in found.items() if is_file_or_link(each)
        }

    def _unkept(
        self,
        left_out: Mapping[str, os.stat_result],
        state: _State,
        held: dict[str, Held] | None,
    ) -> dict[str, tuple[int, int]]:
        """The files and folders that are not copied; see `Snapshot.unkept`.

        Args:
            held: the files and links in the folders are added to it.
        """
        unkept: dict[str, tuple[int, int]] = {}
        for name, found in left_out.items():
            if stat.S_ISREG(found.st_mode):
                unkept[name] = (found.st_size, found.st_ctime_ns)
            elif not stat.S_ISDIR(found.st_mode):
                unkept[name] = (0, 0)
        # The `.git` of an inner repository is not copied.
        inner = [
            f"{name}.git" for name in state.inner if _status(self.root, f"{name}.git")
        ]
        special = special_files(self.root, [*state.ignored, self._own])
        unkept |= folder_states(self.root, self._not_own(state.ignored), held)
        return unkept | dict.fromkeys((*inner, *special), (0, 0))

    def _written(
        self,
        copied: Iterable[str],
        removed: Iterable[str],
    ) -> str:
        """Update the index, and return the id of its tree."""
        # If this is cut off, the next copy must not trust the state.
        self._state_path.unlink(missing_ok=True)
        self._update_index(removed, "--force-remove")
        self._update_index(copied, "--add", "--remove", "--replace")
        words = ("write-tree", "--missing-ok")
        return self.store.run(*words, variables=ALONE).decode().strip()

    def _update_index(self, names: Iterable[str], *words: str) -> None:
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        if stdin:
            self.store.run("update-index", "-z", *words, "--stdin", stdin=stdin)

    def _untracked(self, state: _State, before: Snapshot | None) -> dict[str, int]:
        """List the files that are not in the index, with their size limits. Updates the folders of
        the state."""
        new, ignored = self._listed()
        state.inner += [name for name in new if name.endswith("/")]
        state.ignored = [name for name in ignored if name.endswith("/")]
        files = [name for name in ignored if not name.endswith("/")][:MAX_LOOKED_AT]
        limits = dict.fromkeys(files[:_MAX_IGNORED], _MAX_IGNORED_BYTES)
        state.too_many = files[_MAX_IGNORED:]
        limits |= dict.fromkeys(state.too_many, _KEEPS_NOTHING)
        limits |= {name: _MAX_FILE_BYTES for name in new if not name.endswith("/")}
        state.has_held_back = False
        if before is not None:
            made = self._in_new_folders(state, before)
            limits |= dict.fromkeys(made, _MAX_IGNORED_BYTES)
            folders = [name for name in before.unkept if name.endswith("/")]
            ignored_now = {*state.ignored}
            earlier = [name for name in folders if name not in ignored_now]
            state.ignored += earlier
            state.has_held_back = bool(earlier) or any(map(before.had_unkept, limits))
        return limits

    def _changed_again(self, state: _State) -> Iterator[str]:
        """The files that changed again just after a copy.

        git compares times in seconds. So it misses a `chmod` just after a copy, and new contents of
        the same length that have an old time, as `cp -p` gives them.
        """
        usual = usual_modes()
        for name, ctime_ns in state.just_changed.items():
            found = _status(self.root, name)
            if found is None:
                continue
            bits = stat.S_IMODE(found.st_mode)
            copied_bits = state.modes.get(name, usual[bits & 0o100])
            has_new_bits = stat.S_ISREG(found.st_mode) and bits != copied_bits
            if found.st_ctime_ns != ctime_ns or has_new_bits:
                yield name

    def _in_new_folders(self, state: _State, before: Snapshot) -> list[str]:
        """The files in folders that only rules made by the turn ignore.

        The turn made these files, so they are not secrets of the user. A folder with too many files
        still counts as ignored; the others are removed from the state.
        """
        new = [name for name in state.ignored if not before.had_unkept(name)]
        if not new or not before.tree:
            return []
        ignored = self.store.ignored_by(before.tree, new)
        found: list[str] = []
        for name in new:
            if name in ignored:
                files = []
            else:
                files = files_below(self.root, name, _MAX_IGNORED)
            if files and len(found) + len(files) <= _MAX_IGNORED:
                found += files
                state.ignored.remove(name)
        return found

    def _listed(self) -> tuple[list[str], list[str]]:
        """List the names that are not in the index: those that are not ignored, and the ignored ones.

        git lists a repository inside of this one only by its folder, `inner/`. Its files are added
        here.
        """
        new = list[str]()
        ignored = list[str]()
        # Grows while it is gone through.
        folders = [""]
        for folder in folders:
            lines = self.store.names(*_UNTRACKED, timeout_s=self._list_s, inner=folder)
            for line in lines:
                name = f"{folder}{line[len(_NEW) :]}"
                if line.startswith(_IGNORED):
                    ignored.append(name)
                elif line.startswith(_NEW):
                    new.append(name)
                    if name.endswith("/") and len(new) < _MAX_NEW:
                        folders.append(name)
        return new, ignored

    def _last(self) -> _State:
        """Read the state after the last copy. Empties the store if there is none."""
        try:
            with ordinary_file(self._state_path) as file:
                return _State(**json.load(file))
        except (OSError, ValueError, TypeError):
            self.store.empty()
            return _State()

    def _names(self, *words: str) -> list[str]:
        return self.store.names(*words, timeout_s=self._list_s)


def snapshots_of(
    home: Path,
    cwd: Path,
    environment: Mapping[str, str],
    refuses: Callable[[str], bool] | None = None,
) -> Snapshots:
    """Find the repository that a folder is in, and make its `Snapshots`; else those of the folder."""
    folder = Path(os.path.realpath(cwd))
    for root in (folder, *folder.parents):
        # An empty `.git` folder, such as a sandbox leaves behind, is not a repository.
        with suppress(OSError, ValueError):
            if (git_folder(root / ".git") / "HEAD").exists():
                return Snapshots(home, root, root / ".git", environment, refuses)
    return Snapshots(home, folder, None, environment, refuses)


def _status(root: Path, name: str) -> os.stat_result | None:
    try:
        return os.lstat(f"{root}/{name}")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_folder(root: Path, name: str) -> bool:
    found = _status(root, name)
    return found is not None and stat.S_ISDIR(found.st_mode)


def _watched_again(
    marks: Mapping[str, list[int]],
    earlier_marks: Mapping[str, list[int]],
    copied: Iterable[str],
) -> dict[str, list[int]]:
    """The folders of a new index, all with empty marks: they must be looked at again.

    Folders that existed neither at the last copy nor now are dropped.
    """
    watched: list[str] = []
    for name, mark in marks.items():
        if mark != _GONE or earlier_marks[name] != _GONE:
            watched.append(name)
    for name in copied:
        watched += _folders_of(name)
    return {name: list[int]() for name in watched}


def _holds_all(unkept: Mapping[str, tuple[int, int]]) -> bool:
    """True if `folder_states` had no more entries to look at than it may."""
    looked_at = 0
    for name, (entries, _) in unkept.items():
        if name.endswith("/"):
            looked_at += entries
    return looked_at < MAX_LOOKED_AT


def _folders_of(name: str) -> Iterator[str]:
    """The folders above a file, the innermost first; the name of the root is empty."""
    while name:
        name = name.rpartition("/")[0]
        yield name


def _held_back(
    limits: Mapping[str, int],
    before: Snapshot,
    known: Collection[str],
) -> dict[str, int]:
    """Change the limits so that what was left out when the turn began stays left out.

    Args:
        known: files that have been copied before, by any session.
    """
    found: dict[str, int] = {}
    for name, limit in limits.items():
        if name in before.unkept and name not in known:
            found[name] = _KEEPS_NOTHING
        elif name in known or not before.had_unkept(name):
            found[name] = limit
    return found


def _is_kept(
    root: Path,
    name: str,
    found: os.stat_result,
    limit: int,
) -> bool:
    """True if a file is copied: a link, or a regular file that is readable and not over the limit."""
    if not stat.S_ISREG(found.st_mode):
        return stat.S_ISLNK(found.st_mode)
    return found.st_size <= limit and os.access(root / name, os.R_OK)


def usual_modes() -> Mapping[int, int]:
    """Return the permission bits of new files by umask: under 0o100 for executable ones, under 0 for
    others."""
    return {0: permissions_by_umask(0o666), 0o100: permissions_by_umask(0o777)}
