"""Copies a work tree before and after commands, and compares the copies.

git compares the work tree with an index of our own, so a copy takes as long as looking at what has changed since the
last one: about 20 ms for 10,000 files where nothing has.

Not kept: empty folders, owners and times; what git keeps of repositories inside of this one; large files; ignored files
that are large or in ignored folders.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.filesystem.git import git_folder
from codex_py.filesystem.reading import read_whole
from codex_py.patch.files.modes import permissions_by_umask
from codex_py.patch.undo.copies.folders import folder_states, special_files
from codex_py.patch.undo.copies.own_files import OwnFiles
from codex_py.patch.undo.copies.store import SnapshotError, Store
from codex_py.protocol.patched_file import PatchedFile

_MAX_FILE_BYTES: Final = 10 * 1024 * 1024
_MAX_IGNORED_BYTES: Final = 1024 * 1024
_MAX_IGNORED: Final = 500
_MAX_NEW: Final = 100_000
"""Files that one copy may look at."""
_MAX_NEW_BYTES: Final = 1024 * 1024 * 1024
_RECENT_S: Final = 2.0
_MAX_HEAD_BYTES: Final = 4096
_UNTRACKED: Final = ("ls-files", "-z", "-o", "--exclude-standard")
_LIST_S: Final = 5.0
_LIST_FOLDER_S: Final = 1.0
"""Outside of a repository, where a folder may hold anything."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a work tree. Paths are relative to its root."""

    tree: str
    """Object id."""
    modes: Mapping[str, int]
    """Permission bits that are not those by the umask."""
    unkept: Mapping[str, tuple[int, int]]
    """Files that were left out, with size and time of change, also of the permissions."""
    empty: Sequence[str] = ()
    """Folders that were empty before the turn, each with a slash at its end; they are not the turn's."""


class Changes(NamedTuple):
    """Paths are absolute."""

    files: list[PatchedFile]
    folders: list[str]
    """New ones, the outermost first."""
    unkept: list[str]
    """Files that changed too; their contents are not known."""


class Snapshots:
    """The copies of one work tree. Creating this writes nothing; its methods block.

    Args:
        home: `$CODEX_HOME`, absolute. Nothing in it is copied.
        root, dot_git: see `Store`.
    """

    def __init__(
        self, home: Path, root: Path, dot_git: Path | None, environment: Mapping[str, str]
    ) -> None:
        self.root = root
        self.store = Store(home, root, dot_git, environment)
        self._list_s = _LIST_FOLDER_S if dot_git is None else _LIST_S
        own = os.path.realpath(home)
        self._own = os.path.relpath(own, root) if Path(own).is_relative_to(root) else None

    def take(self, before: Snapshot | None = None) -> Snapshot:
        """Copy what has changed since the last copy. `before`: the first copy of this turn.

        Raises:
            SnapshotError: the work tree cannot be copied, or is too large.
        """
        with self.store.locked():
            self.store.open()
            try:
                new = self._take()
            except SnapshotError as error:
                if error.is_too_large:
                    raise
                # It may be damaged, or has lost objects of the user's repository.
                self.store.empty()
                new = self._take()
            if before is not None:
                return replace(new, empty=before.empty)
            names = map(os.fsdecode, self._names(*_UNTRACKED, "--directory"))
            return replace(new, empty=[name for name in names if name.endswith("/")])

    def changes(self, old: Snapshot, new: Snapshot) -> Changes:
        """The differences between two copies, without the files that this process writes. Raises a `SnapshotError`."""
        own = OwnFiles()
        unkept = {
            name
            for name, _ in set(old.unkept.items()) ^ set(new.unkept.items())
            if self.root / name not in own
        }
        words = ("diff-tree", "-r", "-t", "-z", "--no-renames", "--raw", old.tree, new.tree)
        fields = list[bytes]()
        if old.tree != new.tree:
            fields = self.store.run(*words, is_on_its_own=True).split(b"\0")
        found: list[tuple[str, list[tuple[int, str]]]] = []
        folders: list[str] = []
        for meta, name in zip(fields[::2], fields[1::2], strict=False):
            if self.root / os.fsdecode(name) in own:
                continue
            *modes, old_id, new_id = meta.decode().removeprefix(":").split()[:4]
            sides = [(int(m, 8), i) for m, i in zip(modes, (old_id, new_id), strict=True)]
            is_new = stat.S_ISDIR(sides[1][0]) and not stat.S_ISDIR(sides[0][0])
            if is_new and not f"{os.fsdecode(name)}/".startswith(tuple(old.empty)):
                folders.append(str(self.root / os.fsdecode(name)))
            # Git knows a folder only by its files.
            found.append(
                (os.fsdecode(name), [(0, i) if stat.S_ISDIR(m) else (m, i) for m, i in sides])
            )
        found += self._with_new_modes(old, new, {path for path, _ in found})
        blobs = self.store.blobs({name for _, sides in found for mode, name in sides if mode})
        usual = _usual_modes()
        files: list[PatchedFile] = []
        for path, sides in found:
            if any(mode and name not in blobs for mode, name in sides):
                unkept.add(path)
                continue
            # git keeps one of the permission bits.
            old_mode, new_mode = (
                stat.S_IFREG | copy.modes.get(path, usual[mode & 0o100])
                if stat.S_ISREG(mode)
                else mode or None
                for (mode, _), copy in zip(sides, (old, new), strict=True)
            )
            before, after = (blobs[name] if mode else None for mode, name in sides)
            if before is not None or after is not None:
                files.append(
                    PatchedFile.of(
                        self.root / path, before, after, old_mode=old_mode, new_mode=new_mode
                    )
                )
        return Changes(files, folders, [str(self.root / path) for path in sorted(unkept)])

    def _with_new_modes(
        self, old: Snapshot, new: Snapshot, seen: set[str]
    ) -> Iterable[tuple[str, list[tuple[int, str]]]]:
        """The files of which nothing but permission bits differ that git does not keep: the same version twice."""
        names = {name for name, _ in set(old.modes.items()) ^ set(new.modes.items())} - seen
        words = ("ls-tree", "-r", "-z", "--full-tree", new.tree)
        for line in self.store.names(*words, is_on_its_own=True) if names else ():
            meta, _, name = line.partition(b"\t")
            if (path := os.fsdecode(name)) in names and self.root / path not in OwnFiles():
                mode, _, blob = meta.decode().split()
                yield path, [(int(mode, 8), blob)] * 2

    def branch(self) -> str:
        """The branch that is checked out, or the commit; empty if there is no repository."""
        with suppress(OSError, ValueError):
            head = read_whole(git_folder(self.root / ".git") / "HEAD", _MAX_HEAD_BYTES)
            return os.fsdecode(head).strip().removeprefix("ref: refs/heads/")
        return ""

    def known(self, paths: Iterable[str]) -> set[str]:
        """Return those of the paths, relative to the root, that the last copy has. Raises a `SnapshotError`."""
        return set(map(os.fsdecode, self.store.names("ls-files", "-z", "--", *paths)))

    def _take(self) -> Snapshot:
        tree, modes, known, left_before, folders, inner, recent = self._state()
        # Side by side: each spends its time in the file system.
        with ThreadPoolExecutor(1) as pool:
            listing = pool.submit(
                self._names, "ls-files", "-z", "-o", "--directory", "--no-empty-directory"
            )
            changed = self._names("diff-files", "-z", "--name-only", "--ignore-submodules=all")
            others = _digest(listing.result())
        limits = dict.fromkeys(changed, _MAX_FILE_BYTES)
        may_be_new = others != known or any(name.endswith(b".gitignore") for name in changed)
        if not may_be_new:
            # Files that were too large may be smaller now.
            limits |= dict.fromkeys(left_before, _MAX_IGNORED_BYTES)
        else:
            found, folders, inner = self._untracked(inner)
            limits |= found
        limits |= dict.fromkeys(self._with_new_bits(recent, modes), _MAX_FILE_BYTES)
        if len(limits) > _MAX_NEW:
            raise SnapshotError(f"{self.root} has too many files", is_too_large=True)
        copied: list[bytes] = []
        left_out: list[bytes] = []
        unkept: dict[str, tuple[int, int]] = {}
        usual, now_s = _usual_modes(), time.time()
        own, room = None if self._own is None else os.fsencode(self._own) + b"/", _MAX_NEW_BYTES
        for name, limit in limits.items():
            if b".git" in name.lower().split(b"/") or (own and (name + b"/").startswith(own)):
                continue
            found = _status(self.root, name)
            if found is None or _is_kept(self.root, name, found, min(limit, room)):
                copied.append(name)
                room -= found.st_size if found else 0
                path = os.fsdecode(name)
                modes.pop(path, None)
                if found and stat.S_ISREG(found.st_mode):
                    bits = stat.S_IMODE(found.st_mode)
                    if bits != usual[bits & 0o100]:
                        modes[path] = bits
            else:
                left_out.append(name)
                if not stat.S_ISDIR(found.st_mode):
                    is_file = stat.S_ISREG(found.st_mode)
                    unkept[os.fsdecode(name)] = (
                        (found.st_size, found.st_ctime_ns) if is_file else (0, 0)
                    )
        others_own = [name for name in folders if not (own and own.startswith(name))]
        unkept |= folder_states(self.root, others_own) | {
            # What git keeps there is not copied.
            f"{os.fsdecode(name)}.git": (0, 0)
            for name in inner
            if _status(self.root, name + b".git")
        }
        unkept |= dict.fromkeys(special_files(self.root, [*folders, own or b""]), (0, 0))
        statuses = ((name, _status(self.root, name)) for name in {*recent, *copied})
        recent = [name for name, found in statuses if found and now_s - found.st_ctime < _RECENT_S]
        removed = set(changed).intersection(left_out)
        has_changed = bool(copied or removed or not tree)
        if has_changed:
            tree = self._written(copied, removed)
        if has_changed or may_be_new:
            # After copying, the listed files are no longer untracked.
            listed = "" if has_changed and may_be_new else others
            names = (
                [os.fsdecode(name) for name in some] for some in (left_out, folders, inner, recent)
            )
            state = [tree, modes, listed, *names]
            (self.store.path / "state").write_text(json.dumps(state), encoding="ascii")
        return Snapshot(tree, modes, unkept)

    def _written(self, copied: Iterable[bytes], removed: Iterable[bytes]) -> str:
        """Bring the index up to date; the id of its tree."""
        (self.store.path / "state").unlink(missing_ok=True)
        add = ("--add", "--remove", "--replace")
        for names, *words in ((removed, "--force-remove"), (copied, *add)):
            if names:
                stdin = b"".join(name + b"\0" for name in names)
                self.store.run("update-index", "-z", *words, "--stdin", stdin=stdin)
        words = ("write-tree", "--missing-ok")
        return self.store.run(*words, is_on_its_own=True).decode().strip()

    def _untracked(
        self, inner: Sequence[bytes]
    ) -> tuple[dict[bytes, int], list[bytes], list[bytes]]:
        """The files that are not in the index, with how large they may be; the ignored folders; and the repositories
        inside of this one, with those that are known."""
        words = ("-i", "--directory", "--no-empty-directory")
        ignored = self._names(*_UNTRACKED, *words)
        folders = [name for name in ignored if name[-1:] == b"/"]
        files = [name for name in ignored if name[-1:] != b"/"][:_MAX_IGNORED]
        limits = dict.fromkeys(files, _MAX_IGNORED_BYTES)
        untracked = self._with_inner(self._names(*_UNTRACKED))
        limits |= {name: _MAX_FILE_BYTES for name in untracked if name[-1:] != b"/"}
        return limits, folders, [*inner, *(name for name in untracked if name[-1:] == b"/")]

    def _with_new_bits(self, names: Iterable[bytes], modes: Mapping[str, int]) -> Iterable[bytes]:
        """Files with other permissions. git compares times in seconds, and does not see a `chmod` just after a copy."""
        usual = _usual_modes()
        for name in names:
            found = _status(self.root, name)
            bits = stat.S_IMODE(found.st_mode) if found and stat.S_ISREG(found.st_mode) else None
            if bits is not None and bits != modes.get(os.fsdecode(name), usual[bits & 0o100]):
                yield name

    def _with_inner(self, names: Sequence[bytes]) -> list[bytes]:
        """Add the files of repositories inside of this one, of which git lists only the folders: `inner/`."""
        found = list(names)
        for folder in found:
            if folder[-1:] == b"/" and len(found) < _MAX_NEW:
                files = self.store.names(*_UNTRACKED, timeout_s=self._list_s, inner=folder)
                found += [folder + name for name in files]
        return found

    def _state(self) -> tuple[str, dict[str, int], str, *tuple[list[bytes], ...]]:
        """The state of the last copy: tree, unusual modes, a digest of the untracked names; the files left out, ignored
        folders, folders of repositories inside of this one, and files that had just been changed."""
        try:
            tree, modes, others, *lists = json.loads((self.store.path / "state").read_bytes())
            lists = [[os.fsencode(name) for name in names] for names in lists]
            left_out, folders, inner, recent = lists
        except (OSError, ValueError):
            self.store.empty()
            return "", {}, "", [], [], [], []
        return tree, modes, others, left_out, folders, inner, recent

    def _names(self, *words: str) -> list[bytes]:
        return self.store.names(*words, timeout_s=self._list_s)


def snapshots_of(home: Path, cwd: Path, environment: Mapping[str, str]) -> Snapshots:
    """The copies of the repository of a folder, or of the folder itself."""
    folder = Path(os.path.realpath(cwd))
    for root in (folder, *folder.parents):
        # An empty folder of this name is no repository, such as one that a sandbox left behind.
        with suppress(OSError, ValueError):
            if (git_folder(root / ".git") / "HEAD").exists():
                return Snapshots(home, root, root / ".git", environment)
    return Snapshots(home, folder, None, environment)


def _status(root: Path, name: bytes) -> os.stat_result | None:
    try:
        return os.lstat(os.path.join(os.fsencode(root), name))  # noqa: PTH118
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_kept(root: Path, name: bytes, found: os.stat_result, limit: int) -> bool:
    if not stat.S_ISREG(found.st_mode):
        return stat.S_ISLNK(found.st_mode)
    return found.st_size <= limit and os.access(root / os.fsdecode(name), os.R_OK)


def _usual_modes() -> Mapping[int, int]:
    """The permission bits of new files: of those that are executable by 0o100, of others by 0."""
    return {0: permissions_by_umask(0o666), 0o100: permissions_by_umask(0o777)}


def _digest(names: Sequence[bytes]) -> str:
    return hashlib.sha256(b"\0".join(names)).hexdigest()
