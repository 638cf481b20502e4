"""Applies `FileRules` to the file system: finds what is denied, under all of its names. LIGHT.

There is one `Denials` for the rules of a session. All code that reads for the model asks it, and the
sandbox hides from commands what it finds. A file is denied by its path, and by its inode under every
other name. Folders are listed again once they have changed.
"""

import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import ToolError
from codex_py.filesystem.patterns import expression
from codex_py.protocol.file_rules import FileRules
from codex_py.protocol.frozen import frozen

_SETTLED_S: Final = 2.0
"""The listing of a folder that changed more recently is not kept: it may change again with the same
`st_ctime`."""
_MAX_FOLDERS: Final = 200_000
_Inode = tuple[int, int]
"""The device of a file, and its number there."""
_Marks = tuple[int, int]
"""The `st_mtime_ns` and the size of a file, by which it is recognized beside its inode."""


@frozen
class DeniedPaths:
    """The paths to hide from a command that starts now.

    They are absolute and without links, outer ones first.
    """

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


class _Known(NamedTuple):
    """A file that was denied when `Denials` looked last."""

    path: str
    marks: _Marks


class _Listing:
    """The entries of a folder."""

    __slots__ = ("files", "folders", "is_complete", "mark", "matches")

    def __init__(self, mark: tuple[int, int, int]) -> None:
        self.mark = mark
        self.files: dict[str, int] = {}
        """The inodes of all entries that are not folders, by path."""
        self.folders: dict[str, int] = {}
        self.is_complete = True
        self.matches: dict[str, list[str]] = {}
        """The matching paths, by the top folder and the patterns."""


class Denials:
    """Knows which files are denied. Several threads may use it at once."""

    def __init__(self, rules: FileRules) -> None:
        self.rules = rules
        self._entries: dict[str, str] = {}
        """The access to each path of the rules, by all forms of the path. "deny" wins."""
        for path, access in rules.entries:
            names = (str(path), _entry(path), os.path.realpath(path))
            for name in names:
                if self._entries.get(name) != "deny":
                    self._entries[name] = access
        self._globs: dict[str, list[str]] = {}
        """The denied patterns, by all forms of their folder."""
        for folder, pattern in rules.globs:
            for name in {str(folder), os.path.realpath(folder)}:
                self._globs.setdefault(name, []).append(pattern)
        self._listings: dict[str, _Listing] = {}
        self._known: dict[_Inode, _Known] = {}
        """The hidden files. They are known by inode too, because a command may move a folder above
        them."""
        self._has_looked = False
        self._lock = threading.Lock()

    def refuses(self, path: str | Path, found: os.stat_result | None = None) -> bool:
        """True if a file must not be read.

        Args:
            path: the absolute path.
            found: the status of the file, if it is open already.
        """
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
        is_changed = known is not None and known.marks != _marks(found)
        if not self._has_looked or is_changed:
            # To read a file, not all of its names need to be known.
            with suppress(ToolError):
                self.now(())
            known = self._known.get(_inode(found))
        return known is not None and known.marks == _marks(found)

    def now(self, roots: Iterable[Path]) -> DeniedPaths:
        """Look for what is denied at this moment.

        Args:
            roots: folders in which denied files may have other names.

        Raises:
            ToolError: a denied file has a name outside of the roots, or there are too many folders
                to look at.
        """
        if not self.rules.denies:
            return NOTHING
        with self._lock:
            try:
                return self._now([str(root) for root in roots])
            finally:
                # Until this is set, other threads look themselves, and so wait for the lock.
                self._has_looked = True

    def _now(self, roots: list[str]) -> DeniedPaths:
        found: dict[str, os.stat_result] = {}
        links = self._links_above()
        absent: list[str] = []
        pinned: list[str] = []
        for denied in self.rules.denied:
            path = _entry(denied)
            pinned.append(path)
            folder = os.path.dirname(path)
            is_found = self._add(path, "", found, links)
            if not is_found and os.path.isdir(folder):
                absent.append(path)
        for top, patterns in self._tops().items():
            # A folder that could be renamed all the time would not be found.
            pinned.append(f"{top}/*")
            for path in self._matching(top, patterns):
                self._add(path, top, found, links)
                pinned.append(path)
        opened = self._opened()
        self._add_other_names(found, opened, roots)
        pinned += links.values()
        return DeniedPaths(
            hidden=_sorted_paths(_outermost(found, opened)),
            opened=_sorted_paths(opened),
            links=_sorted_paths(links),
            absent=_sorted_paths(absent),
            pinned=_sorted_paths(_one_in_each_folder(pinned)),
        )

    def _links_above(self) -> dict[str, str]:
        """The links on the way to denied paths, which must stay too. Each counts as one to `/`."""
        above: set[Path] = set()
        for denied in self.rules.denied:
            above.update(denied.parents)
        return {_entry(folder): "/" for folder in above if folder.is_symlink()}

    def _add(
        self,
        path: str,
        top: str,
        found: dict[str, os.stat_result],
        links: dict[str, str],
    ) -> bool:
        """Add a path to `found`; if it is a link, add it to `links` and its target to `found`.

        Returns False if the path does not exist.

        Args:
            top: the folder of the pattern that the path matches; empty without a pattern.
            links: the targets of links, by path.
        """
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            return False
        if not stat.S_ISLNK(status.st_mode):
            found[path] = status
            return True
        target = os.path.realpath(path)
        try:
            status = os.lstat(target)
        except OSError:
            links[path] = target
            return True
        # A link whose name matches must not hide a folder of the system.
        is_elsewhere = bool(top) and not target.startswith(f"{top}/")
        if is_elsewhere and not stat.S_ISREG(status.st_mode):
            return True
        links[path] = target
        found[target] = status
        return True

    def _add_other_names(
        self,
        found: dict[str, os.stat_result],
        opened: Sequence[str],
        roots: Sequence[str],
    ) -> None:
        """Add the other names of denied files to `found`: hard links, and names in moved folders.

        Raises a `ToolError` if a hard link is not below `roots`, nor near a denied file.
        """
        lost = self._lost(found)
        linked = self._linked(found, opened)
        names: dict[_Inode, set[str]] = {}
        for path, status in linked.items():
            names.setdefault(_inode(status), set()).add(path)
        if lost or linked:
            # Last comes the folder for temporary files, which may be large.
            near = _outermost(self._near(found), opened=())
            tops = [*near, *reversed(roots)]
            self._look_for_names(tops, lost, linked, names, found)
        self._known = {
            _inode(status): _Known(path, _marks(status))
            for path, status in {**linked, **found}.items()
        }
        unseen = _unseen(linked, names)
        if unseen:
            raise ToolError(
                f"{unseen[0]} is denied, and has another name (a hard link) outside of the"
                " workspace; remove that one",
                code="SandboxUnavailable",
            )

    def _look_for_names(
        self,
        tops: Sequence[str],
        lost: set[_Inode],
        linked: dict[str, os.stat_result],
        names: dict[_Inode, set[str]],
        found: dict[str, os.stat_result],
    ) -> None:
        """Look for names of lost and linked files, and add them to `found` and `names`.

        Without lost files, the search ends once all names of the linked ones are seen.

        Args:
            tops: the folders to look below, in this order.
            names: the known names of linked files.
        """
        for path, status in self._names_of({*lost, *names}, tops):
            inode = _inode(status)
            # Another file may have got the inode of one that is lost.
            is_same_file = inode in names or self._known[inode].marks == _marks(status)
            if is_same_file:
                names.setdefault(inode, set()).add(path)
                found[path] = status
            if not lost and not _unseen(linked, names):
                break

    def _linked(
        self, found: dict[str, os.stat_result], opened: Sequence[str]
    ) -> dict[str, os.stat_result]:
        """The denied files that have further names (hard links), by path."""
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
                near.append(os.path.dirname(path))
        return near

    def _lost(self, found: dict[str, os.stat_result]) -> set[_Inode]:
        """The files that were denied until now, and that have left their path.

        Others that are still there and unchanged are added to `found`.
        """
        here = set(map(_inode, found.values()))
        lost: set[_Inode] = set()
        for inode in self._known.keys() - here:
            known = self._known[inode]
            status = _status(known.path)
            if status is None or _inode(status) != inode:
                lost.add(inode)
            elif known.marks == _marks(status):
                found[known.path] = status
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
        """Yield the paths below `tops` of these inodes, and their status."""
        numbers = {number for _, number in inodes}
        for top in tops:
            for _, listing in self._folders(top, None):
                entries = {**listing.files, **listing.folders}
                for path, number in entries.items():
                    if number not in numbers:
                        continue
                    # Another device may have a file of the same number.
                    status = _status(path)
                    if status is not None and _inode(status) in inodes:
                        yield path, status

    def _matching(self, top: str, patterns: Sequence[str]) -> Iterator[str]:
        """The matching paths below a folder, without those inside a matching folder."""
        depths = [pattern.count("/") + 1 for pattern in patterns]
        limit: int | None = max(depths)
        if any("**" in pattern for pattern in patterns):
            depth = self.rules.scan_depth
            if depth is None:
                limit = None
            else:
                limit = max(*depths, depth + 1)
        matching = expression("\n".join(patterns))
        inside: list[str] = []
        key = f"{top}\n{matching.pattern}"
        skipped = len(top.rstrip("/")) + 1
        for folder, listing in self._folders(top, limit, inside):
            if key not in listing.matches:
                paths = (*listing.files, *listing.folders)
                listing.matches[key] = [
                    each for each in paths if matching.fullmatch(each[skipped:])
                ]
            if not listing.is_complete:
                # An unreadable folder is hidden too: a command of the same user can make it
                # readable.
                inside.append(folder)
                yield folder
            found = listing.matches[key]
            if found:
                inside += found
                yield from found

    def _folders(
        self, top: str, limit: int | None, passed: Sequence[str] = ()
    ) -> Iterator[tuple[str, _Listing]]:
        """Yield a folder and those below it, `limit` levels deep, with their listings.

        Args:
            limit: None: without a limit.
            passed: the folders to leave out. The caller may add to them meanwhile.

        Raises a `ToolError` if there are too many folders.
        """
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
                    raise ToolError(
                        f"{top} has too many folders to look for what is denied;"
                        " set `glob_scan_max_depth`",
                        code="SandboxUnavailable",
                    )
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
        listing = _Listing(mark)
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
            top = os.path.realpath(folder)
            tops.setdefault(top, []).append(pattern)
        return tops

    def _opened(self) -> list[str]:
        """The existing paths that are open, although a folder above them is denied."""
        found: list[str] = []
        for path, access in self.rules.entries:
            real = os.path.realpath(path)
            if access == "deny" or not os.path.lexists(real):
                continue
            folders = map(str, Path(real).parents)
            above = (self._entries.get(folder) for folder in folders)
            nearest = next((each for each in above if each is not None), None)
            if nearest == "deny" and not self._is_named(real):
                found.append(real)
        return found

    def _is_named(self, path: str) -> bool:
        """True if the rules deny a path, which is absolute and normal."""
        for top, patterns in self._globs.items():
            prefix = top.rstrip("/") + "/"
            if not path.startswith(prefix):
                continue
            matching = expression("\n".join(patterns), whole=False)
            if matching.fullmatch(path[len(prefix) :]):
                return True
        entries = self._entries
        while path not in entries and path != "/":
            path = os.path.dirname(path)
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
    folder = os.path.realpath(path.parent)
    return os.path.join(folder, path.name)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _inode(status: os.stat_result) -> _Inode:
    return status.st_dev, status.st_ino


def _marks(status: os.stat_result) -> _Marks:
    return status.st_mtime_ns, status.st_size


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _sorted_paths(paths: Iterable[str]) -> tuple[Path, ...]:
    return tuple(map(Path, sorted(paths, key=_depth)))


def _one_in_each_folder(paths: Iterable[str]) -> list[str]:
    """The last path of each parent folder."""
    by_folder = {os.path.dirname(path): path for path in paths}
    return list(by_folder.values())


def _outermost(paths: Iterable[str], opened: Iterable[str]) -> list[str]:
    """The paths that are not inside another one, unless something open lies between."""
    is_hidden: dict[str, bool] = dict.fromkeys(opened, False)
    for path in sorted({*paths}, key=_depth):
        # The nearest folder above that is hidden or opened decides.
        above: str = path
        while above != "/":
            above = os.path.dirname(above)
            if above in is_hidden:
                break
        if not is_hidden.get(above, False):
            is_hidden[path] = True
    return [path for path, hidden in is_hidden.items() if hidden]
