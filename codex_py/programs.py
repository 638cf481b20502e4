"""Finds programs on a `$PATH`. No other module searches it; ruff's TID251 and S607 enforce that.

The programs that we start ourselves, such as git, an editor or an MCP server, run outside of the sandbox. A project can
contain a program of any name, and a command of the model can leave one behind for a later session.
So no program is taken from a project, from a folder for temporary files, or from a folder that
commands of this home were ever allowed to write to. Commands with full access are not recorded:
they could write anywhere. LIGHT.
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
    """The absolute path of a program in an absolute folder of a `$PATH`. `may_use` must accept the
    folder and the path."""
    for folder in search_path.split(os.pathsep):
        if folder.startswith("/") and may_use(folder):
            found = shutil.which(name, path=folder)  # noqa: TID251 - the one place
            if found is not None and may_use(found):
                return found
    return None


@frozen
class Programs:
    """The programs outside of barred folders: those into which a project or the model could have
    put a program."""

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
        """The absolute path of a program; a name that is a path is returned unchanged.

        A path need not exist, unless it looks like a whole command line.

        Args:
            cwd: the folder in which the program will start. A relative path begins there.

        Raises:
            FileNotFoundError: `strerror` says why; `filename2` is the path of a program that is barred.
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
        """Remove barred folders from `PATH`, where scripts find their interpreters, and from other
        lists of folders."""
        may_use = self.test()
        changed = dict(environment)
        for name in {"PATH", *lists} & environment.keys():
            folders = environment[name].split(os.pathsep)
            changed[name] = os.pathsep.join(
                f for f in folders if f.startswith("/") and may_use(f)
            )
        # An empty one would be the working directory.
        if changed.get("PATH") == "":
            changed["PATH"] = os.defpath
        return changed

    def test(self) -> _Test:
        """Return a function that follows links and is False for paths in barred folders. Reads the
        record again."""
        barred = {*self.folders, *_recorded(self.home)}

        def may_use(path: str | Path) -> bool:
            real = Path(os.path.realpath(path))
            for folder in (real, *real.parents):
                if folder == self.user_home or folder in barred:
                    return folder == self.user_home
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
    # If the project is `/`, everything is in it.
    real = frozenset(Path(os.path.realpath(folder)) for folder in folders) - {Path("/")}
    return Programs(home, own, real)


def _trees(project: Path) -> set[Path]:
    around = (project, *project.parents)
    trees = [f for f in around if any(os.path.lexists(f / mark) for mark in _MARKS)]
    return {project, *trees, *filter(None, map(main_work_tree, trees))}


def record_project(home: Path, environment: Mapping[str, str], project: Path) -> None:
    """Bar a project permanently: a git worktree that is made from it does not always give the
    project's place."""
    _record(home, environment, _trees(project))


def record_writable_roots(
    home: Path, environment: Mapping[str, str], policy: "SandboxPolicy"
) -> None:
    """Bar the folders that commands with this environment may write to, in all later sessions of a
    writable home."""
    if policy.mode != "workspace-write":
        return
    if policy.exclude_tmpdir_env_var:
        temporary = []
    else:
        temporary = [environment.get("TMPDIR") or "/tmp"]
    _record(home, environment, (*policy.writable_roots, *map(Path, temporary)))


def _record(
    home: Path, environment: Mapping[str, str], folders: Iterable[Path]
) -> None:
    # Sessions with a temporary folder in their environment bar it themselves.
    known = programs_outside(home, {**environment, "TMPDIR": ""})
    may_use = known.test()
    old = _recorded(home)
    real = [Path(os.path.realpath(folder)) for folder in folders]
    # The user's home and `/` would bar everything.
    new = [r for r in real if may_use(r) and r not in {known.user_home, Path("/")}]
    if not new:
        return
    is_full = len(old) + len(new) > _MAX_ROOTS
    kept = [*old, *new][-_MAX_ROOTS:] if is_full else new
    file = home / "codex-py" / "writable-roots"
    with suppress(OSError):
        make_private(file.parent)
        # Appending needs no lock. A command could hold a lock.
        appended = os.fdopen(os.open(file, _APPEND, 0o600), "ab")
        with appended, written_whole(file) if is_full else appended as output:
            output.write(
                b"".join(b"\n" + os.fsencode(r).replace(b"\n", b"\0") for r in kept)
            )


def _recorded(home: Path) -> list[Path]:
    """The recorded folders, without links, oldest first."""
    with suppress(OSError):
        lines = read_whole(home / "codex-py" / "writable-roots", _MAX_BYTES).split(
            b"\n"
        )
        return [
            Path(os.fsdecode(p.replace(b"\0", b"\n")))
            for p in lines
            if p.startswith(b"/")
        ]
    return []
