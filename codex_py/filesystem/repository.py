"""Finds the repository of a work tree, and makes sure that it is the tree's own. LIGHT.

Whoever made the files of a work tree also made its `.git`. It may be a file or a link that leads to
the repository of somebody else. Links and lists in a repository may lead to the objects of another
one. What git reads there would get into requests. So a repository outside of the tree counts only
if it names this tree itself: somebody who may write there has then said that it belongs to the
tree. Source of the layout: gitrepository-layout(5), git-worktree(1), index-format(5).
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
"""The most entries of an index that are compared with the files of a tree."""
_MAX_STORES: Final = 100
"""The most folders of objects."""
_NS_PER_S: Final = 1_000_000_000
_LOW_32_BITS: Final = 0xFFFFFFFF
"""An index keeps only these bits of the number of a file or a device."""
# The format of an index: https://git-scm.com/docs/index-format
_HEAD_BYTES: Final = 12
_STATUS_BYTES: Final = 40
_IS_EXTENDED: Final = 0x4000
_SKIPS_WORK_TREE: Final = 0x4000
_REGULAR: Final = 0o10
_UNREAD: Final = frozenset(
    {"hooks", "lfs", "annex", "branches", "description", "rr-cache"}
)
"""Entries of the folder of a repository that we never read. They may be links: people link their
hooks, for instance."""
_RULES: Final = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
"""The files of a work tree that git opens to read rules from them."""
_MAX_FOLDERS: Final = 20_000
"""The most folders of a work tree that are searched for such files."""
_SECTION: Final = re.compile(r'\s*\[\s*([\w.-]+)\s*("(?:[^"\\]|\\.)*")?\s*\]')
_ESCAPED: Final = re.compile(r"\\(.)")


class ForeignRepository(ValueError):
    """Raised if a repository, or a part of it, is not the work tree's own.

    The message is for the user.
    """


@frozen
class OwnRepository:
    """The folders of a repository. They are absolute, and without links."""

    top: Path
    """The top of the work tree, as the caller named it."""
    folder: Path
    """The folder that git calls `GIT_DIR`."""
    common: Path
    """The folder that all work trees share. It is `folder`, unless the tree is a linked one."""

    def holds(self, path: str | Path) -> bool:
        """True if a path, with its links resolved, is in the work tree or its repository."""
        real = Path(os.path.realpath(path))
        top = Path(os.path.realpath(self.top))
        places = (top, self.folder, self.common)
        return any(real.is_relative_to(place) for place in places)

    def has_tree(self, tree: Path) -> bool:
        """True if a folder is a work tree of this repository, according to the folder's own `.git`.

        What the repository says does not count: it can name any folder as its work tree.

        Args:
            tree: the absolute path of the folder.
        """
        with suppress(OSError, ValueError):
            return own_repository(tree).common == self.common
        return False


def own_repository(top: Path) -> OwnRepository:
    """The repository of a work tree.

    A repository in the tree is the tree's own. A repository outside of it is the tree's own if

    - it is an entry for a linked work tree that names this one, as `git worktree add` makes it,
    - its configuration names this tree as `core.worktree`, as that of a submodule does, or
    - its index knows the files of this tree by their inodes: `git init --separate-git-dir` leaves
      no other sign.

    Args:
        top: the absolute path of the work tree, which has a `.git`.

    Raises:
        ForeignRepository: the repository belongs to something else.
        OSError, ValueError: the repository cannot be read, or does not exist.
    """
    dot_git = top / ".git"
    folder = Path(os.path.realpath(git_folder(dot_git)))
    common = Path(os.path.realpath(common_folder(folder)))
    is_inside = folder.is_relative_to(os.path.realpath(top))
    is_linked = _is_linked_to(folder, dot_git)
    is_known = is_inside or is_linked
    if not (is_known or _names_tree(folder, top) or _knows_files(folder, top)):
        raise ForeignRepository(
            f"{dot_git} leads to the repository {folder},"
            " which does not belong to this folder; it is not read."
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
        OSError: the repository cannot be read.
    """
    check_rules(repository.top)
    folders = {
        repository.folder,
        repository.folder / "info",
        repository.common,
        repository.common / "info",
    }
    seen = set(folders)
    for folder in folders:
        _check_folder(folder, repository, seen)
    # The list grows in the loop: a folder of objects may name more of them.
    stores = [repository.common / "objects"]
    for store in stores:
        for folder in [store, *_folders_in(store)]:
            _check_folder(folder, repository, seen)
        for place in _more_stores(store, repository):
            if place not in stores:
                stores.append(place)
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
    """Find a file with rules in a work tree for which git would wait; None if there is none.

    Only the first `_MAX_FOLDERS` folders are searched.
    """
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
    return stat.S_IFMT(mode) not in {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}


def _check_folder(
    folder: Path,
    repository: OwnRepository,
    seen: set[Path],
) -> None:
    """Check the entries of a folder, and those of the folders that links in it lead to.

    Raises as `check_contents`.

    Args:
        seen: folders that are checked already, or will be.
    """
    # The list grows in the loop.
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
                f"{store / 'info/alternates'} leads to the objects in {line},"
                " outside of the repository; they are not read. To have copies of those that it"
                " needs, run `git repack -a -d`, and remove that file"
            )
        yield place


def _is_linked_to(folder: Path, dot_git: Path) -> bool:
    """True if the folder is the entry for the linked work tree that has this `.git`."""
    if folder.parent.name != "worktrees":
        return False
    with suppress(OSError, ValueError):
        return os.path.realpath(named_path(folder / "gitdir")) == _place_of(dot_git)
    return False


def _place_of(dot_git: Path) -> str:
    """The path of a `.git` with links in its folders resolved; it may be a link itself."""
    return f"{os.path.realpath(dot_git.parent)}/{dot_git.name}"


def _names_tree(folder: Path, top: Path) -> bool:
    """True if the configuration of a repository names this work tree."""
    for name in ("config", "config.worktree"):
        with suppress(OSError, ValueError):
            text = os.fsdecode(read_whole(folder / name, _MAX_SETTINGS_BYTES))
            for value in _values(text, "core", "worktree"):
                if os.path.realpath(folder / value) == os.path.realpath(top):
                    return True
    return False


def _values(
    text: str,
    wanted_section: str,
    wanted_key: str,
) -> Iterator[str]:
    """The values of a key in a file of git's configuration, without the files that it includes.

    Args:
        wanted_section: a section without a subsection. This and `wanted_key` are in lower case.
    """
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
        hash_bytes = 20
        if b"sha256" in settings:
            hash_bytes = 32
        entries = list(_entries(data, hash_bytes))
        known = [entry for entry in entries if _is_as_in_index(entry, top)]
        return len(known) * 2 > len(entries)
    return False


@frozen
class _Entry:
    """A file as an index knows it."""

    name: bytes
    """The path in the work tree."""
    changed_s: int
    modified_s: int
    device: int
    inode: int


def _is_as_in_index(entry: _Entry, top: Path) -> bool:
    """True if the file that an index knows by this entry is that of the tree."""
    path = os.path.join(os.fsencode(top), entry.name)
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return False
    if found.st_ino & _LOW_32_BITS != entry.inode:
        return False
    # The file may have been edited since; the device is then enough. The numbers of some devices
    # change when the machine starts; the times are then enough.
    is_on_device = found.st_dev & _LOW_32_BITS == entry.device
    is_changed = found.st_ctime_ns // _NS_PER_S != entry.changed_s
    is_modified = found.st_mtime_ns // _NS_PER_S != entry.modified_s
    return is_on_device or not (is_changed or is_modified)


def _entries(data: bytes, hash_bytes: int) -> Iterator[_Entry]:
    """The first files in an index, without links, submodules and entries that are not checked out.

    Args:
        hash_bytes: the length of the name of an object.

    Raises:
        ValueError, struct.error: the index is damaged.
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
        more_flags = 0
        if flags & _IS_EXTENDED:
            (more_flags,) = struct.unpack_from(">H", data, name_at)
            name_at += 2
        prefix = b""
        if version == 4:
            # The name shares its beginning with the name before it.
            dropped, name_at = _number(data, name_at)
            prefix = name[: len(name) - dropped]
        end = data.index(b"\0", name_at)
        name = prefix + data[name_at:end]
        is_regular = mode >> 12 == _REGULAR
        if is_regular and not more_flags & _SKIPS_WORK_TREE:
            yield _Entry(name, changed_s, modified_s, device, inode)
        if version == 4:
            start = end + 1
        else:
            # The entry ends with one to eight NULs: its length is a multiple of eight.
            units = (end - start) // 8 + 1
            start += units * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the index behind it. Raises a `struct.error`."""
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
            is_file = entry.is_file(follow_symlinks=False)
            is_plain = is_file or entry.is_dir(follow_symlinks=False)
            if not is_plain and entry.name not in _UNREAD:
                yield entry.path


def _folders_in(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return [
            Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)
        ]
    return []


def _alternates(store: Path) -> Iterator[tuple[str, Path]]:
    """The folders of further objects that a folder of objects names.

    Returns:
        For each one, the line that names it, and its absolute path with links resolved.
    """
    try:
        data = read_whole(store / "info" / "alternates", _MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return
    for line in os.fsdecode(data).split("\n"):
        if line.startswith('"'):
            # No path in the repository needs escapes. So name a folder that is refused.
            yield line, Path("/")
        elif line and not line.startswith("#"):
            yield line, Path(os.path.realpath(store / line))
