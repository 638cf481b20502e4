"""Applies `FileRules` to the file system: what is denied, under which names. LIGHT.

All code that reads for the model asks the one `Denials` of the rules, and the sandbox hides from
commands what those `Denials` find. A file is denied by its path, and by its inode under every other
name. Folders are listed again once they have changed.
"""

import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.filesystem.patterns import expression
from codex_py.protocol.file_rules import FileRules

_SETTLED_S: Final = 2.0
"""The listing of a folder that changed more recently is not kept: it may change again with the same
`st_ctime`."""
_MAX_FOLDERS: Final = 200_000
_Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DeniedPaths:
    """The paths to hide from a command that starts now: absolute and without links, outer ones
    first."""

    hidden: tuple[Path, ...] = ()
    """Existing paths."""
    opened: tuple[Path, ...] = ()
    """Existing paths below hidden ones that are open again."""
    links: tuple[Path, ...] = ()
    """Denied names that are links; where they lead is hidden."""
    absent: tuple[Path, ...] = ()
    """Denied paths that do not exist, in folders that do."""
    pinned: tuple[Path, ...] = ()
    """Paths whose parent folders must not be renamed."""


NOTHING: Final = DeniedPaths()


@dataclass(slots=True)
class _Listing:
    mark: tuple[int, int, int]
    files: dict[str, int]
    """The inodes of all entries that are not folders, by path."""
    folders: dict[str, int]
    is_complete: bool = True
    matches: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The matching paths, by the top folder and the patterns."""


class Denials:
    """Knows which files are denied. Several threads may use it at once."""

    def __init__(self, rules: FileRules) -> None:
        self.rules = rules
        self._entries: dict[str, str] = {}
        for path, access in rules.entries:
            for name in (str(path), _entry(path), os.path.realpath(path)):
                if self._entries.get(name) != "deny":
                    self._entries[name] = access
        self._globs: dict[str, list[str]] = {}
        for folder, pattern in rules.globs:
            for name in {str(folder), os.path.realpath(folder)}:
                self._globs.setdefault(name, []).append(pattern)
        self._listings: dict[str, _Listing] = {}
        self._known: dict[_Inode, tuple[str, int, int]] = {}
        """Path, `st_mtime_ns` and size of each hidden file, by inode: a command may move a folder
        above it."""
        self._is_read = False
        self._lock = threading.Lock()

    def refuses(self, path: str | Path, found: os.stat_result | None = None) -> bool:
        """True if a file must not be read. `path`: absolute. `found`: its status, once it is open."""
        if not self.rules.denies:
            return False
        path = os.path.normpath(path)
        try:
            names = {path, os.path.realpath(path)}
        except OSError:
            # A command has just replaced a link by a file.
            return True
        if any(map(self._is_named, names)):
            return True
        if found is None:
            try:
                found = os.stat(path)  # noqa: PTH116
            except (OSError, ValueError):
                return False
        known = self._known.get(_inode(found))
        if not self._is_read or (known and known[1:] != _marks(found)):
            # To read a file, not all of its names need to be known.
            with suppress(ToolError):
                self.now(())
            known = self._known.get(_inode(found))
        return known is not None and known[1:] == _marks(found)

    def now(self, roots: Iterable[Path]) -> DeniedPaths:
        """Look for what is denied. `roots`: folders in which denied files may have other names.

        Raises:
            ToolError: a denied file has a name outside of them, or there are too many folders to look at.
        """
        if not self.rules.denies:
            return NOTHING
        with self._lock:
            try:
                return self._now([str(root) for root in roots])
            finally:
                # Not before: threads that ask meanwhile have to wait.
                self._is_read = True

    def _now(self, roots: list[str]) -> DeniedPaths:
        found: dict[str, os.stat_result] = {}
        links = dict[str, str]()
        absent = list[str]()
        pinned = list[str]()
        # Links on the way to denied paths must stay, too.
        above = {folder for denied in self.rules.denied for folder in denied.parents}
        links |= {_entry(folder): "/" for folder in above if folder.is_symlink()}
        for denied in self.rules.denied:
            path = _entry(denied)
            pinned.append(path)
            folder = os.path.dirname(path)  # noqa: PTH120
            is_found = self._add(path, "", found, links)
            if not is_found and os.path.isdir(folder):  # noqa: PTH112
                absent.append(path)
        for top, patterns in self._tops().items():
            pinned.append(f"{top}/*")
            # A folder that could be renamed all the time would not be found.
            for path in self._matching(top, patterns):
                self._add(path, top, found, links)
                pinned.append(path)
        opened = self._opened()
        self._add_other_names(found, opened, roots)
        hidden = _outermost(found, opened)
        by_folder = {
            os.path.dirname(path): path  # noqa: PTH120
            for path in (*pinned, *links.values())
        }
        pinned = list(by_folder.values())
        paths = (hidden, opened, links, absent, pinned)
        return DeniedPaths(
            *(tuple(map(Path, sorted(each, key=_depth))) for each in paths)
        )

    def _add(
        self,
        path: str,
        top: str,
        found: dict[str, os.stat_result],
        links: dict[str, str],
    ) -> bool:
        """Deny a path and its link target. False if the path does not exist. `top`: the folder of
        the pattern, if any."""
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            return False
        if stat.S_ISLNK(status.st_mode):
            links[path] = target = os.path.realpath(path)
            path = target
            try:
                status = os.lstat(path)
            except OSError:
                return True
            # A link whose name matches must not hide a folder of the system.
            if (
                top
                and not stat.S_ISREG(status.st_mode)
                and not path.startswith(f"{top}/")
            ):
                links.popitem()
                return True
        found[path] = status
        return True

    def _add_other_names(
        self,
        found: dict[str, os.stat_result],
        opened: Sequence[str],
        roots: Sequence[str],
    ) -> None:
        """Deny the same files under other names: hard links, and names in folders that were moved."""
        lost = self._lost(found)
        linked = self._linked(found, opened)
        names: dict[_Inode, set[str]] = {}
        for path, status in linked.items():
            names.setdefault(_inode(status), set()).add(path)
        if lost or linked:
            # Last comes the folder for temporary files, which may be large.
            tops = [*_outermost(self._near(found), ()), *reversed(roots)]
            self._look_for_names(tops, lost, linked, names, found)
        self._known = {
            _inode(status): (path, *_marks(status))
            for path, status in {**linked, **found}.items()
        }
        unseen = _unseen(linked, names)
        if unseen:
            text = f"{unseen[0]} is denied, and has another name (a hard link) outside of the workspace"
            raise ToolError(f"{text}; remove that one", code="SandboxUnavailable")

    def _look_for_names(
        self,
        tops: Sequence[str],
        lost: set[_Inode],
        linked: dict[str, os.stat_result],
        names: dict[_Inode, set[str]],
        found: dict[str, os.stat_result],
    ) -> None:
        """Look below these folders for names of lost and linked files, and add them to `found` and
        `names`.

        Without lost files, the search ends once all names of the linked ones are seen.
        """
        for path, status in self._names_of({*lost, *names}, tops):
            inode = _inode(status)
            # Another file may have got the inode of one that is lost.
            is_same_file = inode in names or self._known[inode][1:] == _marks(status)
            if is_same_file:
                names.setdefault(inode, set()).add(path)
                found[path] = status
            if not lost and not _unseen(linked, names):
                break

    def _linked(
        self, found: dict[str, os.stat_result], opened: Sequence[str]
    ) -> dict[str, os.stat_result]:
        """The denied files that have further names, by path."""
        linked: dict[str, os.stat_result] = {}
        for path, status in found.items():
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                linked[path] = status
            elif stat.S_ISDIR(status.st_mode):
                linked |= self._linked_in(path, opened)
        return linked

    def _near(self, found: dict[str, os.stat_result]) -> list[str]:
        """The folders in which other names are looked for first."""
        near = [*self._tops()]
        for path, status in found.items():
            if stat.S_ISDIR(status.st_mode):
                near.append(path)
            else:
                near.append(os.path.dirname(path))  # noqa: PTH120
        return near

    def _lost(self, found: dict[str, os.stat_result]) -> set[_Inode]:
        """The files that were denied until now and have left their path. Unchanged others are added
        to `found`."""
        here = set(map(_inode, found.values()))
        lost: set[_Inode] = set()
        for inode in self._known.keys() - here:
            path, *_ = known = self._known[inode]
            status = _status(path)
            if status is None or _inode(status) != inode:
                lost.add(inode)
            elif known[1:] == _marks(status):
                found[path] = status
        return lost

    def _linked_in(
        self, folder: str, opened: Sequence[str]
    ) -> dict[str, os.stat_result]:
        """The files in a denied folder that have several names."""
        linked: dict[str, os.stat_result] = {}
        for _, listing in self._folders(folder, None, opened):
            # A new hard link elsewhere does not change this folder, so its listing may be known
            # already.
            for path in listing.files:
                status = _status(path)
                if status and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    linked[path] = status
        return linked

    def _names_of(
        self, inodes: set[_Inode], tops: Iterable[str]
    ) -> Iterator[tuple[str, os.stat_result]]:
        numbers = {number for _, number in inodes}
        for top in tops:
            for _, listing in self._folders(top, None):
                for path, number in (*listing.files.items(), *listing.folders.items()):
                    if number in numbers:
                        status = _status(path)
                    else:
                        status = None
                    if status and _inode(status) in inodes:
                        yield path, status

    def _matching(self, top: str, patterns: Sequence[str]) -> Iterator[str]:
        """The matching paths below a folder, without those inside a matching folder."""
        limit: int | None = max(pattern.count("/") + 1 for pattern in patterns)
        if any("**" in pattern for pattern in patterns):
            depth = self.rules.scan_depth
            if depth is None:
                limit = None
            else:
                limit = max(limit, depth + 1)
        matching = expression("\n".join(patterns))
        inside: list[str] = []
        key = f"{top}\n{matching.pattern}"
        skipped = len(top.rstrip("/")) + 1
        for path, listing in self._folders(top, limit, inside):
            if key not in listing.matches:
                both = (*listing.files, *listing.folders)
                listing.matches[key] = [
                    n for n in both if matching.fullmatch(n[skipped:])
                ]
            if not listing.is_complete:
                # An unreadable folder is hidden too: a command of the same user can make it
                # readable.
                inside.append(path)
                yield path
            found = listing.matches[key]
            if found:
                inside += found
                yield from found

    def _folders(
        self, top: str, limit: int | None, passed: Sequence[str] = ()
    ) -> Iterator[tuple[str, _Listing]]:
        """A folder and those below it, `limit` levels deep. The caller may add to `passed`, the
        folders to leave out."""
        level = [top]
        count = 0
        deep = 0
        while level and deep != limit:
            below: list[str] = []
            for path in level:
                listing = self._listing(path)
                if listing is None:
                    continue
                count = count + 1
                if count > _MAX_FOLDERS:
                    text = f"{top} has too many folders to look for what is denied; set `glob_scan_max_depth`"
                    raise ToolError(text, code="SandboxUnavailable")
                yield path, listing
                below += listing.folders
            closed = set(passed)
            level = [path for path in below if path not in closed]
            deep = deep + 1

    def _listing(self, path: str) -> _Listing | None:
        status = _status(path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return None
        mark = (*_inode(status), status.st_ctime_ns)
        known = self._listings.get(path)
        if known is not None and known.mark == mark:
            return known
        listing = _Listing(mark, {}, {})
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        listing.folders[entry.path] = entry.inode()
                    else:
                        listing.files[entry.path] = entry.inode()
        except OSError:
            listing.is_complete = False
        if time.time() - status.st_ctime >= _SETTLED_S:
            self._listings[path] = listing
        return listing

    def _tops(self) -> dict[str, list[str]]:
        """The folders of the patterns, without links."""
        tops: dict[str, list[str]] = {}
        for folder, pattern in self.rules.globs:
            tops.setdefault(os.path.realpath(folder), []).append(pattern)
        return tops

    def _opened(self) -> list[str]:
        """The existing entries below denied ones that are open."""
        found: list[str] = []
        for path, access in self.rules.entries:
            real = os.path.realpath(path)
            if access == "deny" or not os.path.lexists(real):
                continue
            above = (self._entries.get(str(folder)) for folder in Path(real).parents)
            nearest = next((each for each in above if each is not None), None)
            if nearest == "deny" and not self._is_named(real):
                found.append(real)
        return found

    def _is_named(self, path: str) -> bool:
        """True if the rules deny a normal path."""
        for top, patterns in self._globs.items():
            prefix = top.rstrip("/") + "/"
            if path.startswith(prefix) and expression(
                "\n".join(patterns), whole=False
            ).fullmatch(path[len(prefix) :]):
                return True
        entries = self._entries
        while path not in entries and path != "/":
            path = os.path.dirname(path)  # noqa: PTH120
        return entries.get(path) == "deny"


@lru_cache(maxsize=16)
def denials_of(rules: FileRules) -> Denials:
    """The shared `Denials` of these rules."""
    return Denials(rules)


def _unseen(
    linked: dict[str, os.stat_result], names: dict[_Inode, set[str]]
) -> list[str]:
    """The paths of files that have more links than known names."""
    return [
        path
        for path, status in linked.items()
        if len(names[_inode(status)]) < status.st_nlink
    ]


def _entry(path: Path) -> str:
    """The path with links resolved, except for the last name."""
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _inode(status: os.stat_result) -> _Inode:
    return status.st_dev, status.st_ino


def _marks(status: os.stat_result) -> tuple[int, int]:
    return status.st_mtime_ns, status.st_size


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _outermost(paths: Iterable[str], opened: Iterable[str]) -> list[str]:
    """The paths that are not inside another one, unless something open lies between."""
    kept: dict[str, bool] = dict.fromkeys(opened, False)
    for path in sorted({*paths}, key=_depth):
        above: str = path
        while above != "/":
            above = os.path.dirname(above)  # noqa: PTH120
            if above in kept:
                break
        if not kept.get(above, False):
            kept[path] = True
    return [path for path, is_hidden in kept.items() if is_hidden]
