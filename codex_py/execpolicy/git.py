"""Finds uses of `git` that an allowing rule does not cover.

They involve other repositories, and options that name programs or files. Outside the sandbox, git
runs programs from the configuration and the hooks of a repository. Commands cannot change those of
the project; but if a command has made a repository, the model has written them.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.execpolicy.place import CommandPlace
from codex_py.execpolicy.words import Command
from codex_py.execpolicy.wrappers import git_subcommand
from codex_py.filesystem.git import common_folder, find_dot_git, git_folder
from codex_py.filesystem.reading import read_whole

_MAX_READ_BYTES: Final = 256 * 1024 * 1024
"""The size of the index in the largest repositories."""
_HARMLESS: Final = frozenset(
    ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs")
)
"""Harmless options that may stand before the subcommand."""

_LONG: Final = (
    "--access-hook",
    "--cc-cmd",
    "--config",
    "--exec",
    "--extcmd",
    "--ext-diff",
    "--git-dir",
    "--header-cmd",
    "--open-files-in-pager",
    "--output",
    "--receive-pack",
    "--sendmail-cmd",
    "--smtp-server",
    "--template",
    "--textconv",
    "--to-cmd",
    "--tool",
    "--upload-pack",
    "--work-tree",
    "--recurse-submodules",
    "--remote",
    "--repo",
    "--submodule",
)
"""Options that name a program, a file to write, or a repository, or that let git enter
submodules."""
_SHORT: Final = {
    "archive": "o",
    "clone": "cu",
    "difftool": "xt",
    "format-patch": "o",
    "grep": "O",
    "ls-remote": "u",
    "mergetool": "t",
    "rebase": "x",
}
"""Short options of the same kinds, by subcommand."""
_RUNNERS: Final = frozenset(
    (
        "bisect",
        "config",
        "daemon",
        "filter-branch",
        "for-each-repo",
        "remote",
        "submodule",
    )
)
"""Subcommands whose other words may be programs, or are stored as a repository's address."""
_CONTACTS: Final = frozenset(("clone", "fetch", "ls-remote", "pull", "push"))
"""Subcommands whose first word may be another repository, whose hooks and configuration git
uses."""
_HOOKS = re.compile(
    r'^[^#;\n]*\bhookspath\s*=[ \t]*"?([^"#;\n]*)', re.IGNORECASE | re.MULTILINE
)
_ADDRESS = re.compile(r"[a-z+]+://|[^/:~]+:(?!:)")
"""The beginning of the address of a repository on another machine, as a URL or for ssh."""


def is_held_back(
    command: Command,
    covered: int,
    place: CommandPlace,
) -> bool:
    """True if a `git` command needs more than a rule that allows its first `covered` words."""
    start = git_subcommand(command)
    subcommand = "".join(command[start : start + 1])
    arguments = command[max(start + 1, covered) :]
    return (
        any(word not in _HARMLESS for word in command[covered:start])
        or (subcommand in _RUNNERS and covered <= start + 1 and bool(arguments))
        or any(_names_program(word, subcommand) for word in _options(arguments))
        or any(_leads_away(word, place) for word in arguments)
        or (
            subcommand in _CONTACTS
            and _contacts_local(command, start + 1, covered, place)
        )
        or _can_be_another(place.cwd, place)
        or not _is_safe_repository(place.cwd, place)
        or _can_change_hooks(place)
    )


def _options(arguments: Sequence[str]) -> Sequence[str]:
    if "--" in arguments:
        end = arguments.index("--")
    else:
        end = len(arguments)
    return [word for word in arguments[:end] if word.startswith("-")]


def _has_submodules(repository: Path) -> bool:
    """True if the index may hold submodules, which git enters. A command can change their `.git`.

    Also true for an index that cannot be read. https://git-scm.com/docs/index-format
    """
    try:
        folder = git_folder(repository)
        # A split index has most of its entries in one or more other files.
        indexes = [
            _read(path) for path in (folder / "index", *folder.glob("sharedindex.*"))
        ]
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    # Look for the mode of such an entry. If other bytes happen to match, the user is asked once too
    # often.
    return any((0o160000).to_bytes(4) in index for index in indexes)


def _names_program(option: str, subcommand: str) -> bool:
    if not option.startswith("--"):
        return any(letter in option for letter in _SHORT.get(subcommand, ""))
    # Options may be abbreviated.
    name = option.partition("=")[0]
    return any(long.startswith(name) or name.startswith(f"{long}-") for long in _LONG)


def _contacts_local(
    command: Command, start: int, covered: int, place: CommandPlace
) -> bool:
    """True if the contacted repository may be a local folder that is not a configured remote.

    The folder need not exist yet: a command may make it while we look. `start`: the index of the
    first word after the subcommand.
    """
    words = enumerate(command[start:], start)
    named = (
        (at, word)
        for at, word in words
        if not word.startswith("-") and not word.isdecimal()
    )
    at, name = next(named, (start, ""))
    if not name or at < covered or _ADDRESS.match(name):
        return False
    return place.can_change(place.cwd / _expanded(name)) and not _is_remote(
        name, place.cwd
    )


def _is_remote(name: str, cwd: Path) -> bool:
    """True if the repository that git finds has a remote of this name in its own `config`."""
    try:
        folder = common_folder(git_folder(find_dot_git(cwd) or cwd))
        return f'[remote "{name}"]'.encode() in _read(folder / "config")
    except (OSError, ValueError):
        return False


def _can_change_hooks(place: CommandPlace) -> bool:
    """True if git runs hooks that the model can change.

    Such hooks are in a folder that the configuration names, such as `.husky`; or `.git/hooks`, or a
    hook in it, is a link to a changeable place. Files that the configuration includes are not read.
    """
    dot_git = find_dot_git(place.cwd) or place.cwd / ".git"
    home = Path((place.environment or {}).get("HOME") or "/")
    try:
        own = git_folder(dot_git)
        folders = [common_folder(own) / "config", own / "config.worktree"]
        configs = [*folders, home / ".gitconfig", home / ".config/git/config"]
        texts = [os.fsdecode(_read(path)) for path in configs if path.exists()]
        links = _linked_hooks(common_folder(own) / "hooks")
    except (OSError, ValueError):
        return True
    if any(place.can_change(os.path.realpath(link)) for link in links):
        return True
    named = (value.strip() for text in texts for value in _HOOKS.findall(text))
    return any(
        place.can_change(dot_git.parent / _expanded(value)) for value in named if value
    )


def _linked_hooks(folder: Path) -> list[Path]:
    """The links among the folder of hooks and the files in it.

    Raises:
        OSError: the folder cannot be read.
    """
    hooks = folder.iterdir() if folder.is_dir() else ()
    return [path for path in (folder, *hooks) if path.is_symlink()]


def _expanded(path: str) -> str:
    """Expand a path that begins with `~`, as git does."""
    return os.path.expanduser(path)  # noqa: PTH111 - `Path.expanduser` raises where there is no such user


def _read(path: Path) -> bytes:
    return read_whole(os.path.abspath(path), _MAX_READ_BYTES)  # noqa: PTH100


def _leads_away(word: str, place: CommandPlace) -> bool:
    """True if the word, or an option's value, may be a repository that the model can change."""
    if word.startswith("-"):
        value = word.partition("=")[2]
    else:
        value = word
    if value.startswith("file:") or "::" in value:
        return True
    folder = place.cwd / _expanded(value)
    if folder.name:
        candidates = (folder, folder.with_name(f"{folder.name}.git"))
    else:
        candidates = (folder,)
    return any(
        any(os.path.lexists(path / name) for name in (".git", "HEAD"))
        and not _is_safe_repository(path, place)
        for path in candidates
        if value
    )


def _can_be_another(folder: Path, place: CommandPlace) -> bool:
    """True if a command can make a repository in the folder, or replace the folder by another one.

    The command may do so after we have looked. The roots of the workspace and their `.git` stay
    where they are.
    """
    for part in (folder, *folder.parents):
        if part / ".git" in place.protected:
            return False
        if place.can_change(part.parent):
            return True
    return False


def _is_safe_repository(folder: Path, place: CommandPlace) -> bool:
    """True if git finds no repository from a folder, or one that no command can change.

    The search follows git's `setup_git_directory_gently`. If the `.git` of a folder is not a
    repository, such as an empty `.git`, git takes the folder itself for a bare repository.
    """
    real = Path(os.path.realpath(folder))
    for parent in (real, *real.parents):
        found = parent / ".git"
        if found.is_file() or os.path.lexists(found / "HEAD"):
            if not place.can_change(found):
                return True
            return (
                found in place.protected
                and not found.is_symlink()
                and not _has_submodules(found)
            )
        if os.path.lexists(parent / "HEAD") and place.can_change(parent):
            return False
    return True
