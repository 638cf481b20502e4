"""Finds the folders that a policy makes writable, and the paths in them that stay read-only."""

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from codex_py.filesystem.denials import NOTHING, DeniedPaths
from codex_py.filesystem.git import common_folder, git_folder
from codex_py.filesystem.private import record_folders
from codex_py.filesystem.reading import is_empty_folder
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.frozen import frozen
from codex_py.protocol.protected import (
    HOME_LOGIN_PREFIXES,
    HOME_LOGINS,
    HOME_RECORDS,
    HOME_SECRETS,
    HOME_SETTINGS,
    PROTECTED_NAMES,
)

PACKAGE = Path(__file__).resolve().parents[1]
_SYSTEM = Path("/usr")
_ROOT = Path("/")
_DEVICES = Path("/dev")


@frozen
class Roots:
    """The writable folders, absolute and without links, as they were before the first command ran.

    They are not resolved again, because the model can replace a path in them by a link to
    elsewhere.
    """

    workspace: tuple[Path, ...] = ()
    temporary: tuple[Path, ...] = ()
    """Folders shared with other programs, which would see placeholders there."""
    home: Path | None = None
    """`$CODEX_HOME`, which need not exist yet; only its last name may be a link."""

    @property
    def all(self) -> tuple[Path, ...]:
        return _outermost_first((*self.workspace, *self.temporary))

    @property
    def protected_names(self) -> list[Path]:
        """Paths that stay read-only, whether they exist or not; they may be links.

        They are in the workspace, and in those folders above it that lie in a writable one, such as
        a folder for temporary files: the root of the project may be there.
        """
        roots = self.all
        above: dict[Path, None] = {}
        for root in self.workspace:
            above |= dict.fromkeys((root, *root.parents))
        protected: list[Path] = []
        for folder in above:
            if is_inside(folder, roots):
                protected += [folder / name for name in PROTECTED_NAMES]
        if self.home is not None and is_inside(self.home, roots):
            protected.append(self.home)
        return protected


@frozen
class Layout:
    """The file system as one command sees it. Everything that is not listed here is read-only."""

    writable: tuple[Path, ...]
    """The writable folders, outermost first. Includes the folders between a root and a protected
    path or another root in it: a mount point cannot be renamed, so the protected path stays where
    it is."""
    protected: tuple[Path, ...]
    """Paths in `writable` that stay read-only. They exist, and are not links."""
    temporary: tuple[Path, ...]
    """The folders of `writable` that are for temporary files."""
    offline: bool
    proxy: str = ""
    """The name at which launchers find the agent's proxy, if that is the only way out; see
    `NetworkProxy.address`."""
    allows_local: bool = False
    """True if the proxy allows local hosts. A command with a proxy has this in its variables."""
    direct: tuple[str, ...] = ()
    """Hosts that a command with a proxy reaches directly, in its own network."""
    links: tuple[Path, ...] = ()
    """Symbolic links that must not change: protected names, and links that lead to a path in
    `protected`."""
    hidden: tuple[Path, ...] = ()
    """Paths that cannot be read, if the backend can hide them. They exist, and are not links."""
    opened: tuple[Path, ...] = ()
    """Readable paths below hidden ones."""
    absent: tuple[Path, ...] = ()
    """Denied paths that do not exist and must not be created."""
    roots: Roots = field(default_factory=Roots, compare=False)
    """The folders from which `writable` was made."""


def resolve_roots(
    policy: SandboxPolicy, tmpdir: str, home: Path | None = None
) -> Roots:
    """Resolve the writable folders of a policy.

    Args:
        tmpdir: the command's `$TMPDIR`; empty if it has none.
        home: `$CODEX_HOME`, which is never writable, and neither are its settings. Its other
            folders may be.
    """
    if policy.mode != "workspace-write":
        return Roots()
    temporary: list[Path] = []
    if not policy.exclude_slash_tmp:
        temporary.append(Path("/tmp"))
    if tmpdir.startswith("/") and not policy.exclude_tmpdir_env_var:
        temporary.append(Path(tmpdir))
    workspace = _real(policy.writable_roots, home)
    others = [path for path in _real(temporary, home) if path not in workspace]
    if home is not None:
        home = Path(os.path.realpath(home.parent), home.name)
    return Roots(workspace, tuple(others), home)


def absent_names(roots: Roots) -> list[Path]:
    """Paths that must not be created: missing protected names, and missing targets of links there.

    Includes empty folders, which may be placeholders of another agent. Leaves out names that are
    directly in a folder for temporary files.
    """
    names = [
        path for path in roots.protected_names if path.parent not in roots.temporary
    ]
    folders = {path.parent for path in names}
    # An empty folder among these is not a placeholder.
    known = (*roots.all, *folders)
    missing = dict.fromkeys(
        _first_missing(os.path.realpath(path), known) for path in names
    )
    return [
        path
        for path in missing
        if path is not None and not folders.isdisjoint(path.parents)
    ]


def own_paths() -> tuple[Path, ...]:
    """The files of this program.

    A command that could change them would run outside the sandbox next time.
    """
    # In an installation, the packages that we import lie beside our own.
    python = (Path(sys.executable), Path(sys.prefix), Path(sys.base_prefix))
    return (PACKAGE, *python)


def free_own_paths() -> tuple[Path, ...]:
    """The program's existing files that a command with write access everywhere must not change.

    Root may change the Python of the system.
    """
    real = dict.fromkeys(Path(os.path.realpath(path)) for path in own_paths())
    existing = (path for path in real if path.exists())
    return tuple(
        path for path in existing if path == PACKAGE or not is_inside(path, [_SYSTEM])
    )


def secrets(home: Path | None, *, denies: bool = False) -> tuple[Path, ...]:
    """The existing files and folders of `$CODEX_HOME` that are hidden from commands.

    `denies`: the policy denies other files, so the records are hidden too.
    """
    if home is None:
        return ()
    paths = [home / name for name in HOME_SECRETS]
    for folder, prefixes in _login_folders(home).items():
        paths += [path for path in _entries(folder) if path.name.startswith(prefixes)]
    if denies:
        paths += [home / name for name in HOME_RECORDS]
        paths += record_folders(home)
    real = dict.fromkeys(Path(os.path.realpath(path)) for path in paths)
    return tuple(path for path in real if path.exists())


def _login_folders(home: Path) -> dict[Path, tuple[str, ...]]:
    """The folders with the files of logins: `$CODEX_HOME`, and those that its links lead to.

    Each has the beginnings of names that belong to logins there, such as those of parts of the next
    login.
    """
    home = Path(os.path.realpath(home))
    folders: dict[Path, tuple[str, ...]] = {home: HOME_LOGIN_PREFIXES}
    for name in HOME_LOGINS:
        login = Path(os.path.realpath(home / name))
        if login.parent != home:
            known = folders.get(login.parent, ())
            folders[login.parent] = (*known, f".{login.name}.")
    return folders


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder in their order; none if it cannot be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def with_covered_home(view: Layout, home: Path) -> Layout:
    """Show only the entries that `$CODEX_HOME` has now, if it holds a login, and nothing of the login.

    The same holds for a folder with a login that the home has a link to, unless commands may write
    to that folder.

    A mount that hides a file falls off when a process outside replaces the file, as a renewal of a
    login does. A new file beside it, such as a part of the next login, was never hidden.

    Args:
        view: a view in which the home is read-only.
    """
    folders = _login_folders(home)
    if all(path.parent not in folders for path in view.hidden):
        return view
    covered = [folder for folder in folders if _can_be_covered(folder, view)]
    unseen = {*covered, *view.hidden}
    shown: list[Path] = []
    for folder in covered:
        for path in _entries(folder):
            is_of_login = path.name.startswith(folders[folder])
            if not is_of_login and path not in unseen:
                shown.append(path)
    hidden = (path for path in view.hidden if path.parent not in covered)
    return replace(
        view,
        hidden=(*covered, *hidden),
        opened=(*shown, *view.opened),
    )


def _can_be_covered(folder: Path, view: Layout) -> bool:
    """False if commands may write to a folder, which shows new entries then, or see another one in
    its place."""
    if folder == _ROOT or is_inside(folder, [_DEVICES]):
        return False
    return not is_inside(folder, view.writable) or is_inside(folder, view.protected)


def layout(
    roots: Roots,
    own: Iterable[Path],
    *,
    offline: bool,
    hidden: tuple[Path, ...] = (),
    denied: DeniedPaths = NOTHING,
) -> Layout:
    """The view of a command that starts now.

    `own`: further paths that stay read-only, such as this program's.
    """
    # A root that became a link, or was removed, no longer counts.
    still = (root for root in roots.all if os.path.realpath(root) == str(root))
    writable = [root for root in still if root.is_dir()]
    named = [path for path in roots.protected_names if is_inside(path.parent, writable)]
    own = tuple(own)
    protected = _protected(named, own, writable)
    links = [path for path in named if path.is_symlink()]
    links += (path for path in denied.links if is_inside(path, writable))
    links += _links_to_own(own, writable, protected)
    links = list(dict.fromkeys(links))
    inner = (*writable, *protected, *links, *denied.pinned)
    between = _folders_between(inner, writable, protected)
    return Layout(
        writable=_outermost_first((*writable, *between)),
        protected=tuple(protected),
        temporary=roots.temporary,
        offline=offline,
        links=tuple(links),
        hidden=(*hidden, *denied.hidden),
        opened=denied.opened,
        absent=denied.absent,
        roots=roots,
    )


def _protected(
    named: Iterable[Path], own: Iterable[Path], writable: Sequence[Path]
) -> list[Path]:
    """Return the existing paths to protect in writable folders, without links, outermost first.

    Besides the given paths, these are the repositories that a `.git` file among `named` leads to.
    """
    real = [Path(os.path.realpath(path)) for path in (*named, *own)]
    for path in named:
        if path.name == ".git" and path.is_file():
            # The folder of a worktree or a submodule. If one of the two is missing, the other one
            # is still protected.
            with suppress(OSError, ValueError):
                folder = git_folder(path)
                real.append(Path(os.path.realpath(folder)))
                real.append(Path(os.path.realpath(common_folder(folder))))
    existing = (path for path in _outermost_first(real) if path.exists())
    return [
        path for path in existing if path not in writable and is_inside(path, writable)
    ]


def _links_to_own(
    own: Iterable[Path], writable: Sequence[Path], protected: Sequence[Path]
) -> list[Path]:
    """Return the links in writable folders that lead to paths of our own, outermost first.

    By replacing one of them, a command could put its own folder where a program looks for ours.
    """
    links: set[Path] = set()
    for path in own:
        links.update(_links_on_the_way(path))
    changeable = (link for link in links if is_inside(link.parent, writable))
    return sorted(
        (link for link in changeable if not is_inside(link, protected)), key=_depth
    )


def _folders_between(
    paths: Iterable[Path], writable: Sequence[Path], protected: Sequence[Path]
) -> list[Path]:
    """Return the folders on the way from a writable one to a path in it, except protected ones."""
    above: dict[Path, None] = {}
    for path in paths:
        above |= dict.fromkeys(path.parents)
    return [
        folder
        for folder in above
        if is_inside(folder.parent, writable) and not is_inside(folder, protected)
    ]


def _real(paths: Iterable[Path], home: Path | None) -> tuple[Path, ...]:
    """Return the existing folders, without links, except the home and its settings."""
    real = [Path(os.path.realpath(path)) for path in paths]
    if home is not None:
        home = Path(os.path.realpath(home))
        settings = [home / name for name in HOME_SETTINGS]
        real = [path for path in real if path != home and not is_inside(path, settings)]
    return tuple(dict.fromkeys(path for path in real if path.is_dir()))


def _links_on_the_way(path: Path) -> list[Path]:
    """The symbolic links on the way to a path, each as a path whose parents are not links."""
    found: list[Path] = []
    ways = [path]
    while ways:
        way = ways.pop()
        for part in (*way.parents, way):
            place = Path(os.path.realpath(part.parent), part.name)
            if place.is_symlink() and place not in found:
                found.append(place)
                ways.append(place.parent / place.readlink())
    return found


def _first_missing(path: str, known: Sequence[Path]) -> Path | None:
    """Return the outermost part of a path that is missing, or that is an empty folder.

    None if there is no such part. A folder that is one of `known` may be empty.
    """
    missing = None
    found = Path(path)
    while not os.path.lexists(found):
        missing = found
        found = found.parent
    if found not in known and is_empty_folder(found):
        return found
    return missing


def is_inside(path: Path, folders: Iterable[Path]) -> bool:
    """True if a path is in one of these folders, or is one of them. All paths are absolute."""
    # `is_relative_to` takes ten times as long, and every command calls this often.
    inside = f"{path}/"
    # The root already ends in a slash.
    prefixes = (f"{folder}/".replace("//", "/") for folder in folders)
    return any(map(inside.startswith, prefixes))


def _depth(path: Path) -> int:
    return len(path.parts)


def _outermost_first(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(sorted(paths, key=_depth)))
