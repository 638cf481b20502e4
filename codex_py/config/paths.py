"""Finds the home of the configuration, the root of a project, and a git repository."""

import pwd
from collections.abc import Mapping, Sequence
from os import getuid
from os.path import lexists, realpath
from pathlib import Path

from codex_py.errors import ConfigError
from codex_py.filesystem.reading import is_empty_folder


def worktrees_folder(home: Path) -> Path:
    """The folder of our git worktrees, without links; it may not exist yet."""
    return Path(realpath(home / "worktrees"))


def codex_home(environment: Mapping[str, str]) -> Path:
    """The absolute path of `$CODEX_HOME`, or of `~/.codex`, which need not exist yet.

    Raises:
        ConfigError: `$CODEX_HOME` is set but is not a folder.
    """
    configured = environment.get("CODEX_HOME")
    if not configured:
        return user_home(environment) / ".codex"
    home = Path(configured).absolute()
    try:
        if home.is_dir():
            # Resolve links, as Codex does when it writes the path: hooks are trusted by their path.
            return Path(realpath(home))
    except OSError as error:
        raise ConfigError(
            f"CODEX_HOME {configured!r} cannot be used: {error.strerror}"
        ) from error
    if lexists(home):
        what = "is not a folder"
    else:
        what = "does not exist"
    raise ConfigError(f"CODEX_HOME {configured!r} {what}")


def user_home(environment: Mapping[str, str]) -> Path:
    """Return `$HOME` if it is set, else the home folder in the password database."""
    home = environment.get("HOME")
    if home:
        return Path(home).absolute()
    try:
        return Path(pwd.getpwuid(getuid()).pw_dir)
    except KeyError:
        # A container may run under a user id that has no entry.
        return Path("/")


def project_root(cwd: Path, markers: Sequence[str]) -> Path | None:
    """Return the nearest of `cwd` and its parents that has a marker, such as `.git`.

    An empty `.git` folder does not count: git ignores it too, and a killed Codex leaves it behind.
    """
    for folder in (cwd, *cwd.parents):
        for marker in markers:
            path = folder / marker
            if not lexists(path):
                continue
            if marker != ".git" or not is_empty_folder(path):
                return folder
    return None


def repository_root(folder: Path) -> Path | None:
    """Return the top of the git work tree around a folder. None if it is in none."""
    return project_root(folder, (".git",))


def folders_between(root: Path | None, cwd: Path) -> tuple[Path, ...]:
    """The folders from the project's root to `cwd`, both included; only `cwd` without a root."""
    chain = (cwd, *cwd.parents)
    if root not in chain:
        return (cwd,)
    return tuple(reversed(chain[: chain.index(root) + 1]))
