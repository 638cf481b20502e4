"""Finds the repository of a work tree, and makes sure that it is the tree's own. LIGHT.

The author of the files of a work tree also made its `.git`. It may be a file or a link that leads
to the repository of somebody else, and links and lists below it may lead to the objects of another
one. What git reads there would get into requests, so a place outside of the tree counts only if it
names this tree itself: then somebody who could write there has said that it belongs to the tree.
Source of the layout: gitrepository-layout(5), git-worktree(1), index-format(5).
"""

import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.filesystem.git import common_folder, git_folder, named_path
from codex_py.filesystem.reading import read_start, read_whole
from codex_py.protocol.frozen import frozen

_MAX_SETTINGS_BYTES: Final = 1024 * 1024
_MAX_INDEX_BYTES: Final = 4 * 1024 * 1024
_MAX_ENTRIES: Final = 1000
_MAX_STORES: Final = 100
_NS: Final = 1_000_000_000
_MAX_NUMBER: Final = 0xFFFFFFFF
# The format of an index: https://git-scm.com/docs/index-format
_HEAD_BYTES: Final = 12
_STATUS_BYTES: Final = 40
_IS_EXTENDED: Final = 0x4000
_SKIPS_WORK_TREE: Final = 0x4000
_REGULAR: Final = 0o10
_UNREAD: Final = frozenset(
    {"hooks", "lfs", "annex", "branches", "description", "rr-cache"}
)
"""Entries of the folder of a repository that we never read; people link hooks, for instance."""
_RULES: Final = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
"""The files of a work tree that git opens to read rules from them."""
_MAX_FOLDERS: Final = 20_000
_SECTION: Final = re.compile(r'\s*\[\s*([\w.-]+)\s*("(?:[^"\\]|\\.)*")?\s*\]')
_ESCAPED: Final = re.compile(r"\\(.)")


class ForeignRepository(ValueError):
    """A repository, or a part of it, is not the work tree's own. The message is for the user."""


@frozen
class OwnRepository:
    """The folders of a repository. They are absolute, and without links."""

    top: Path
    """The top of the work tree, as the caller named it."""
    folder: Path
    """The folder that git calls `GIT_DIR`."""
    common: Path
    """The folder that all work trees share; the same as `folder` unless the tree is a linked
    one."""

    def holds(self, path: str | Path) -> bool:
        """True if a path leads into the work tree or its repository, links followed."""
        real = Path(os.path.realpath(path))
        top = Path(os.path.realpath(self.top))
        places = (top, self.folder, self.common)
        return any(real.is_relative_to(place) for place in places)

    def has_tree(self, tree: Path) -> bool:
        """True if a folder is a work tree of this repository, by its own `.git` too.

        Any repository can name any folder as its work tree. `tree`: absolute.
        """
        with suppress(OSError, ValueError):
            return own_repository(tree).common == self.common
        return False


def own_repository(top: Path) -> OwnRepository:
    """The repository of a work tree. `top`: absolute; it has a `.git`.

    A repository in the tree is the tree's own. A repository outside of it is the tree's own if

    - it is an entry for a linked work tree that names this one, as `git worktree add` makes it,
    - its configuration names this tree as `core.worktree`, as that of a submodule does, or
    - its index knows the files of this tree by their inodes: `git init --separate-git-dir` leaves no other sign.

    Raises:
        ForeignRepository: it belongs to something else.
        OSError, ValueError: it cannot be read, or does not exist.
    """
    dot_git = top / ".git"
    folder = Path(os.path.realpath(git_folder(dot_git)))
    common = Path(os.path.realpath(common_folder(folder)))
    is_inside = folder.is_relative_to(os.path.realpath(top))
    is_linked = _is_linked_to(folder, dot_git)
    if not (
        is_inside or is_linked or _names_tree(folder, top) or _knows_files(folder, top)
    ):
        raise ForeignRepository(
            f"{dot_git} leads to the repository {folder}, which does not belong to this folder; it is not read."
            f" If it is yours, run `git --git-dir={folder} config core.worktree {top}`"
        )
    is_entry = is_linked and common == folder.parent.parent
    if common != folder and not is_entry:
        raise ForeignRepository(
            f"{folder / 'commondir'} leads to {common}, which is another repository; it is not read"
        )
    return OwnRepository(top, folder, common)


def check_contents(repository: OwnRepository) -> None:
    """Make sure that nothing in a repository leads git out of it, or makes git wait.

    Raises:
        ForeignRepository: a link, a list of further objects or a named pipe does.
        OSError: it cannot be read.
    """
    check_rules(repository.top)
    own = (repository.folder, repository.common)
    seen = {*own, *(folder / "info" for folder in own)}
    for folder in [*seen]:
        _check_folder(folder, repository, seen)
    stores = [repository.common / "objects"]
    for store in stores:
        for folder in [store, *_folders_in(store)]:
            _check_folder(folder, repository, seen)
        stores += [
            place for place in _more_stores(store, repository) if place not in stores
        ]
        if len(stores) > _MAX_STORES:
            raise ForeignRepository(
                f"{store} leads to too many folders; they are not read"
            )


def check_rules(folder: Path) -> None:
    """Make sure that git waits for no file with rules in a folder.

    Raises:
        ForeignRepository: a named pipe, a socket or a device has the name of such a file.
    """
    for name in _RULES:
        check_plain(folder / name)


def check_plain(path: Path) -> None:
    """Raise a `ForeignRepository` if git would wait for what is at a path."""
    if _is_special(path):
        raise ForeignRepository(
            f"{path} is neither a file nor a folder; it is not read"
        )


def special_rules(tree: Path) -> Path | None:
    """A file with rules, anywhere in a work tree, for which git would wait; None if none is found."""
    for folder, inner, names in islice(os.walk(tree), _MAX_FOLDERS):
        if ".git" in inner:
            inner.remove(".git")
        for name in _RULES.intersection(names):
            path = Path(folder, name)
            if _is_special(path):
                return path
    return None


def _is_special(path: Path) -> bool:
    """True for a named pipe, a socket or a device. Git follows no link to a file with rules."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _check_folder(
    folder: Path,
    repository: OwnRepository,
    seen: set[Path],
) -> None:
    """Check the entries of a folder, and those of the folders that links in it lead to. Raises as `check_contents`.

    Args:
        seen: folders that are checked already, or will be.
    """
    waiting = [folder]
    for each in waiting:
        for path in map(Path, _odd_entries(each)):
            target = Path(os.path.realpath(path))
            if not repository.holds(path):
                raise ForeignRepository(
                    f"{path} is a link to {target}, outside of the repository; it is not read"
                )
            if target.is_dir():
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
            elif target.exists() and not target.is_file():
                raise ForeignRepository(
                    f"{path} is neither a file nor a folder; it is not read"
                )


def _more_stores(store: Path, repository: OwnRepository) -> Iterator[Path]:
    """The folders of further objects that a folder of objects names. Raises as `check_contents`."""
    for line, place in _alternates(store):
        if not repository.holds(place):
            raise ForeignRepository(
                f"{store / 'info/alternates'} leads to the objects in {line}, outside of the repository;"
                " they are not read. To have copies of those that it needs, run `git repack -a -d`, and remove"
                " that file"
            )
        yield place


def _is_linked_to(folder: Path, dot_git: Path) -> bool:
    if folder.parent.name != "worktrees":
        return False
    with suppress(OSError, ValueError):
        return os.path.realpath(named_path(folder / "gitdir")) == _place_of(dot_git)
    return False


def _place_of(dot_git: Path) -> str:
    """The path of a `.git` with links in its folders resolved; it may be a link itself."""
    return f"{os.path.realpath(dot_git.parent)}/{dot_git.name}"


def _names_tree(folder: Path, top: Path) -> bool:
    for name in ("config", "config.worktree"):
        with suppress(OSError, ValueError):
            text = os.fsdecode(read_whole(folder / name, _MAX_SETTINGS_BYTES))
            if any(
                os.path.realpath(folder / value) == os.path.realpath(top)
                for value in _values(text, "core", "worktree")
            ):
                return True
    return False


def _values(
    text: str,
    wanted_section: str,
    wanted_key: str,
) -> Iterator[str]:
    """The values of a key in a file of git's configuration. Included files do not count."""
    is_wanted = False
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            is_wanted = section[1].lower() == wanted_section and section[2] is None
        key, _, value = line.partition("=")
        if is_wanted and key.strip().lower() == wanted_key:
            value = value.strip()
            if value.startswith('"') and value.endswith('"'):
                value = value[1:-1]
            yield _ESCAPED.sub(r"\1", value)


def _knows_files(folder: Path, top: Path) -> bool:
    """True if most of the files in an index are files of the tree.

    A single file would not do: `git status` in a tree that somebody else made updates the index for
    each file with the same contents, and every tree has some of those, such as a license.
    """
    with suppress(OSError, ValueError, struct.error):
        data, _ = read_start(folder / "index", _MAX_INDEX_BYTES)
        settings = read_whole(folder / "config", _MAX_SETTINGS_BYTES).lower()
        entries = list(_entries(data, 32 if b"sha256" in settings else 20))
        known = sum(_is_as_in_index(entry, top) for entry in entries)
        return known * 2 > len(entries)
    return False


@frozen
class _Entry:
    name: bytes
    changed_s: int
    modified_s: int
    device: int
    inode: int


def _is_as_in_index(entry: _Entry, top: Path) -> bool:
    path = os.path.join(os.fsencode(top), entry.name)  # noqa: PTH118 - bytes
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return False
    if found.st_ino & _MAX_NUMBER != entry.inode:
        return False
    # It may have been edited since. The numbers of some devices change when the machine starts.
    is_on_device = found.st_dev & _MAX_NUMBER == entry.device
    is_changed = found.st_ctime_ns // _NS != entry.changed_s
    is_modified = found.st_mtime_ns // _NS != entry.modified_s
    return is_on_device or not (is_changed or is_modified)


def _entries(data: bytes, hash_bytes: int) -> Iterator[_Entry]:
    """The first files in an index, without links, submodules and entries that are not checked out.

    Raises a `ValueError` or a `struct.error` if it is damaged.
    """
    signature, version, count = struct.unpack_from(">4sLL", data)
    if signature != b"DIRC" or version not in {2, 3, 4}:
        return
    start = _HEAD_BYTES
    name = b""
    for _ in range(min(count, _MAX_ENTRIES)):
        changed_s, _, modified_s, _, device, inode, mode = struct.unpack_from(
            ">7L", data, start
        )
        flags_at = start + _STATUS_BYTES + hash_bytes
        (flags,) = struct.unpack_from(">H", data, flags_at)
        name_at = flags_at + 2
        further = 0
        if flags & _IS_EXTENDED:
            (further,) = struct.unpack_from(">H", data, name_at)
            name_at += 2
        kept = b""
        if version == 4:
            dropped, name_at = _number(data, name_at)
            kept = name[: len(name) - dropped]
        end = data.index(b"\0", name_at)
        name = kept + data[name_at:end]
        if mode >> 12 == _REGULAR and not further & _SKIPS_WORK_TREE:
            yield _Entry(name, changed_s, modified_s, device, inode)
        # An entry of an older version ends with one to eight NULs, so that its length is a multiple of eight.
        if version == 4:
            start = end + 1
        else:
            start = start + (end - start + 8) // 8 * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends. Raises a `struct.error`."""
    (byte,) = struct.unpack_from("B", data, at)
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        (byte,) = struct.unpack_from("B", data, at)
        value = ((value + 1) << 7) + (byte & 0x7F)
    return value, at + 1


def _odd_entries(folder: Path) -> Iterator[str]:
    """The paths in a folder that are neither plain files nor folders."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            is_plain = entry.is_file(follow_symlinks=False) or entry.is_dir(
                follow_symlinks=False
            )
            if not is_plain and entry.name not in _UNREAD:
                yield entry.path


def _folders_in(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return [
            Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)
        ]
    return []


def _alternates(store: Path) -> Iterator[tuple[str, Path]]:
    """The lines of a list of further folders with objects; each with the folder, links resolved."""
    try:
        data = read_whole(store / "info" / "alternates", _MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return
    for line in os.fsdecode(data).split("\n"):
        if line.startswith('"'):
            # A path with escapes, which no place in the repository needs; `/` is refused.
            yield line, Path("/")
        elif line and not line.startswith("#"):
            yield line, Path(os.path.realpath(store / line))
