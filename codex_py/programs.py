"""Finds programs on a `$PATH`. No other module searches it; ruff's TID251 and S607 enforce that.

The programs that we start ourselves, such as git, an editor or an MCP server, run outside of the
sandbox. A project can contain a program of any name, and a command of the model can leave one
behind for a later session. So no program is taken from a project, from a folder for temporary
files, or from a folder that commands of this home were ever allowed to write to. Commands with full
access are not recorded: they could write anywhere. LIGHT.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from codex_py.filesystem.git import main_work_tree
from codex_py.filesystem.private import make_private, written_whole
from codex_py.filesystem.reading import read_whole
from codex_py.protocol.frozen import frozen

if TYPE_CHECKING:
    from codex_py.protocol.approval import SandboxPolicy

ONLY_INSIDE: Final = "it was found only inside the project or a writable folder"
_MARKS: Final = (".git", ".venv")
"""Entries that mark a folder around the working directory as part of the project."""
_MAX_ROOTS: Final = 1000
_MAX_BYTES: Final = 16 * 1024 * 1024
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_Test: TypeAlias = Callable[[str | Path], bool]


def find_program(
    name: str, search_path: str, may_use: _Test = lambda _: True
) -> str | None:
    """Find a program in the absolute folders of a `$PATH`. Returns its absolute path, or None.

    `may_use` must accept the folder and the path.
    """
    for folder in search_path.split(os.pathsep):
        if folder.startswith("/") and may_use(folder):
            found = shutil.which(name, path=folder)  # noqa: TID251 - the one place
            if found is not None and may_use(found):
                return found
    return None


@frozen
class Programs:
    """The programs outside of barred folders.

    A folder is barred if a project or the model could have put a program into it.
    """

    home: Path
    """`$CODEX_HOME`."""
    user_home: Path
    """The user's home, without links. Even if it lies in a barred folder, the user's own programs
    below it are found."""
    folders: frozenset[Path]
    """Barred folders, without links, besides the recorded ones."""

    def find(
        self, name: str, environment: Mapping[str, str], cwd: Path = Path("/")
    ) -> str:
        """Find the absolute path of a program. A name that is a path is returned unchanged.

        A path need not exist, unless it looks like a whole command line.

        Args:
            cwd: the folder in which the program will start. A relative path begins there.

        Raises:
            FileNotFoundError: `strerror` says why; `filename2` is the path of a barred program of
                this name, if there is one.
        """
        if "/" in name:
            if _is_command_line(name) and _is_missing(cwd / name):
                raise _not_found(name)
            return name
        search_path = environment.get("PATH", os.defpath)
        found = find_program(name, search_path, self.test())
        if found is not None:
            return found
        inside = find_program(name, search_path)
        if inside is None:
            raise _not_found(name)
        why = f"{ONLY_INSIDE}; to allow it, configure its path, {inside}"
        raise FileNotFoundError(errno.ENOENT, why, name, None, inside)

    def passed_over(self, name: str, environment: Mapping[str, str]) -> str | None:
        """The program that a shell would start by this name, if `find` takes another one."""
        if "/" in name:
            return None
        search_path = environment.get("PATH", os.defpath)
        first = find_program(name, search_path)
        if first == find_program(name, search_path, self.test()):
            return None
        return first

    def environment(
        self, environment: Mapping[str, str], *lists: str
    ) -> dict[str, str]:
        """Remove barred folders from `PATH`, where scripts find their interpreters.

        `lists`: the names of other variables to treat in the same way.
        """
        may_use = self.test()
        changed = dict(environment)
        for name in {"PATH", *lists} & environment.keys():
            folders = environment[name].split(os.pathsep)
            absolute = (folder for folder in folders if folder.startswith("/"))
            changed[name] = os.pathsep.join(filter(may_use, absolute))
        # An empty `PATH` would mean the working directory.
        if changed.get("PATH") == "":
            changed["PATH"] = os.defpath
        return changed

    def test(self) -> _Test:
        """Return a function that is False for paths in barred folders. It follows links.

        The record is read again.
        """
        barred = {*self.folders, *_recorded(self.home)}

        def may_use(path: str | Path) -> bool:
            real = Path(os.path.realpath(path))
            # The nearest of these folders decides.
            for folder in (real, *real.parents):
                if folder == self.user_home:
                    return True
                if folder in barred:
                    return False
            return True

        return may_use


def _is_command_line(name: str) -> bool:
    """True if the name has several words. Some paths have blanks as well."""
    return len(name.split()) > 1


def _is_missing(path: Path) -> bool:
    """True if no file or link exists at the path. False for a path that we may not look at."""
    try:
        os.lstat(path)
    except PermissionError:
        return False
    except (OSError, ValueError):
        # A command line can be longer than any path.
        return True
    return False


def _not_found(name: str) -> FileNotFoundError:
    why = os.strerror(errno.ENOENT)
    if _is_command_line(name):
        why += "; arguments are written apart from the program, in the list of its arguments"
    return FileNotFoundError(errno.ENOENT, why, name)


def programs_outside(
    home: Path,
    environment: Mapping[str, str],
    project: Path | None = None,
    *writable: Path,
) -> Programs:
    """Bar the project, temporary folders and other writable folders.

    Args:
        home: `$CODEX_HOME`, absolute.
        project: a folder of the project, absolute. Work trees around it are barred too, and the
            main work trees that they were made from.
        writable: other folders that commands may write to, absolute.
    """
    folders = {home / "worktrees", *writable, Path("/tmp"), Path("/var/tmp")}
    temporary = environment.get("TMPDIR", "")
    if temporary.startswith("/"):
        folders.add(Path(temporary))
    if project is not None:
        folders |= _trees(project)
    own = Path(os.path.realpath(environment.get("HOME") or "/"))
    real = {Path(os.path.realpath(folder)) for folder in folders}
    # If the project is `/`, everything is in it.
    real.discard(Path("/"))
    return Programs(home, own, frozenset(real))


def _trees(project: Path) -> set[Path]:
    """Return the project, the work trees around it, and the main work trees of these."""
    trees = {project}
    for folder in (project, *project.parents):
        if any(os.path.lexists(folder / mark) for mark in _MARKS):
            trees.add(folder)
            main = main_work_tree(folder)
            if main is not None:
                trees.add(main)
    return trees


def record_project(
    home: Path,
    environment: Mapping[str, str],
    project: Path,
) -> None:
    """Bar a project permanently.

    A git worktree that is made from the project does not always say where the project is.
    """
    _record(home, environment, _trees(project))


def record_writable_roots(
    home: Path, environment: Mapping[str, str], policy: "SandboxPolicy"
) -> None:
    """Bar the folders that commands with this environment may write to, also in later sessions.

    If the home cannot be written, later sessions do not know them.
    """
    if policy.mode != "workspace-write":
        return
    folders = list(policy.writable_roots)
    if not policy.exclude_tmpdir_env_var:
        folders.append(Path(environment.get("TMPDIR") or "/tmp"))
    _record(home, environment, folders)


def _record(
    home: Path, environment: Mapping[str, str], folders: Iterable[Path]
) -> None:
    """Add folders to the record, unless programs are not found there anyway."""
    # Sessions with a temporary folder in their environment bar it themselves.
    known = programs_outside(home, {**environment, "TMPDIR": ""})
    may_use = known.test()
    # The user's home and `/` would bar everything.
    too_large = {known.user_home, Path("/")}
    real = [Path(os.path.realpath(folder)) for folder in folders]
    new = [folder for folder in real if may_use(folder) and folder not in too_large]
    if not new:
        return
    old = _recorded(home)
    file = _record_file(home)
    with suppress(OSError):
        make_private(file.parent)
        # Appending needs no lock. A command could hold a lock.
        with os.fdopen(os.open(file, _APPEND, 0o600), "ab") as appended:
            if len(old) + len(new) <= _MAX_ROOTS:
                appended.write(_lines([*new]))
                return
        newest = [*old, *new][-_MAX_ROOTS:]
        with written_whole(file) as whole:
            whole.write(_lines(newest))


def _record_file(home: Path) -> Path:
    return home / "codex-py" / "writable-roots"


def _lines(folders: Iterable[Path]) -> bytes:
    """Return the lines of the record. In a path, a NUL stands for a newline.

    Each line begins with its newline, so that one that was cut off does not reach into the next.
    """
    paths = (os.fsencode(folder).replace(b"\n", b"\0") for folder in folders)
    return b"".join(b"\n" + path for path in paths)


def _recorded(home: Path) -> list[Path]:
    """Return the recorded folders, without links, the oldest first."""
    lines: list[bytes] = []
    with suppress(OSError):
        lines = read_whole(_record_file(home), _MAX_BYTES).split(b"\n")
    paths = [line.replace(b"\0", b"\n") for line in lines if line.startswith(b"/")]
    return [Path(os.fsdecode(path)) for path in paths]
