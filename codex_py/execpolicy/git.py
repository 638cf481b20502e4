"""Finds the uses of `git` that may run code of the model's, although a rule allows the command.

A rule that allows a command also lifts the sandbox. There, git runs programs that its options name,
and programs from the configuration and the hooks of a repository. Commands cannot change the
configuration and the hooks of the project; those of a repository that a command has made come from
the model.
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
"""The limit for one file of a repository. In the largest repositories, the index is so large."""
_HARMLESS: Final = frozenset(
    ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs")
)
"""Options before the subcommand that need no rule."""

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
"""The letters of short options with such an effect, by subcommand."""
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
"""Subcommands with arguments that may be programs, or that are stored as a repository's address."""
_CONTACTS: Final = frozenset(("clone", "fetch", "ls-remote", "pull", "push"))
"""Subcommands whose first argument may be another repository. Git uses its hooks and its
configuration."""
_HOOKS = re.compile(
    r'^[^#;\n]*\bhookspath\s*=[ \t]*"?([^"#;\n]*)', re.IGNORECASE | re.MULTILINE
)
"""A line of a configuration that sets the folder of the hooks, and that folder."""
_ADDRESS = re.compile(r"[a-z+]+://|[^/:~]+:(?!:)")
"""The beginning of the address of a repository on another machine, as a URL or for ssh."""


def is_held_back(
    command: Command,
    covered: int,
    place: CommandPlace,
) -> bool:
    """True if a `git` command needs more than a rule that allows its first `covered` words."""
    start = git_subcommand(command)
    uncovered_options = command[covered:start]
    if any(word not in _HARMLESS for word in uncovered_options):
        return True
    return (
        _has_risky_words(command, start, covered, place)
        or _can_be_another(place.cwd, place)
        or not _is_safe_repository(place.cwd, place)
        or _can_change_hooks(place)
    )


def _has_risky_words(
    command: Command, start: int, covered: int, place: CommandPlace
) -> bool:
    """True if a word that no rule covers may name a program, a file or another repository.

    Args:
        start: the index of the subcommand, which may be missing.
    """
    subcommand = ""
    if start < len(command):
        subcommand = command[start]
    arguments = command[max(start + 1, covered) :]
    covers_only_subcommand = covered <= start + 1
    if subcommand in _RUNNERS and covers_only_subcommand and arguments:
        return True
    if any(_names_program(option, subcommand) for option in _options(arguments)):
        return True
    if any(_leads_away(word, place) for word in arguments):
        return True
    return subcommand in _CONTACTS and _contacts_local(
        command, start + 1, covered, place
    )


def _options(arguments: Sequence[str]) -> Sequence[str]:
    if "--" in arguments:
        end = arguments.index("--")
    else:
        end = len(arguments)
    return [word for word in arguments[:end] if word.startswith("-")]


def _has_submodules(dot_git: Path) -> bool:
    """True if the index may hold submodules: git enters them, and commands can change their `.git`.

    Also true for an index that cannot be read. https://git-scm.com/docs/index-format
    """
    # Look for the mode that entries of submodules have. If other bytes happen to be the same, the
    # user is asked once too often.
    mode = (0o160000).to_bytes(4)
    try:
        folder = git_folder(dot_git)
        # A split index has most of its entries in one or more other files.
        paths = [folder / "index", *folder.glob("sharedindex.*")]
        indexes = [_read(path) for path in paths]
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return any(mode in index for index in indexes)


def _names_program(option: str, subcommand: str) -> bool:
    """True if an option is one of `_LONG` or `_SHORT`."""
    if not option.startswith("--"):
        letters = _SHORT.get(subcommand, "")
        return any(letter in option for letter in letters)
    name = option.partition("=")[0]
    return any(
        # Options may be abbreviated, and some have longer names that begin alike.
        long.startswith(name) or name.startswith(f"{long}-")
        for long in _LONG
    )


def _contacts_local(
    command: Command, start: int, covered: int, place: CommandPlace
) -> bool:
    """True if the contacted repository may be a local folder that is not a configured remote.

    The folder need not exist yet: a command may make it while we look.

    Args:
        start: the index of the first word after the subcommand.
    """
    at = start
    while at < len(command) and _is_option_or_number(command[at]):
        at += 1
    is_named = at < len(command) and bool(command[at])
    if not is_named or at < covered:
        return False
    name = command[at]
    if _ADDRESS.match(name):
        return False
    folder = place.cwd / _expanded(name)
    return place.can_change(folder) and not _is_remote(name, place.cwd)


def _is_option_or_number(word: str) -> bool:
    return word.startswith("-") or word.isdecimal()


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
    Also true if a file cannot be read.
    """
    dot_git = find_dot_git(place.cwd) or place.cwd / ".git"
    try:
        own = git_folder(dot_git)
        common = common_folder(own)
        folders = _configured_hooks(own, common, place)
        links = _linked_hooks(common / "hooks")
    except (OSError, ValueError):
        return True
    if any(place.can_change(os.path.realpath(link)) for link in links):
        return True
    return any(place.can_change(dot_git.parent / folder) for folder in folders)


def _configured_hooks(own: Path, common: Path, place: CommandPlace) -> list[str]:
    """The folders of hooks that the configuration names; a path may be relative to the work tree.

    Args:
        own: the folder of the repository, for one of its work trees.
        common: the folder that its work trees share.

    Raises:
        OSError, ValueError: a file cannot be read.
    """
    home = Path((place.environment or {}).get("HOME") or "/")
    paths = (
        common / "config",
        own / "config.worktree",
        home / ".gitconfig",
        home / ".config/git/config",
    )
    named: list[str] = []
    for path in paths:
        if path.exists():
            text = os.fsdecode(_read(path))
            named += [value.strip() for value in _HOOKS.findall(text)]
    return [_expanded(value) for value in named if value]


def _linked_hooks(folder: Path) -> list[Path]:
    """The links among the folder of hooks and its entries.

    Raises:
        OSError: the folder cannot be read.
    """
    places = [folder]
    if folder.is_dir():
        places += folder.iterdir()
    return [path for path in places if path.is_symlink()]


def _expanded(path: str) -> str:
    """Expand a path that begins with `~`, as git does."""
    # `Path.expanduser` raises where there is no such user.
    return os.path.expanduser(path)  # noqa: PTH111


def _read(path: Path) -> bytes:
    return read_whole(os.path.abspath(path), _MAX_READ_BYTES)  # noqa: PTH100


def _leads_away(word: str, place: CommandPlace) -> bool:
    """True if the word, or an option's value, may be a repository that the model can change."""
    if word.startswith("-"):
        value = word.partition("=")[2]
    else:
        value = word
    if not value:
        return False
    if value.startswith("file:") or "::" in value:
        return True
    folder = place.cwd / _expanded(value)
    candidates = [folder]
    if folder.name:
        # Git also tries the name with this ending.
        candidates.append(folder.with_name(f"{folder.name}.git"))
    return any(
        _looks_like_repository(path) and not _is_safe_repository(path, place)
        for path in candidates
    )


def _looks_like_repository(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (".git", "HEAD"))


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
        dot_git = parent / ".git"
        if dot_git.is_file() or os.path.lexists(dot_git / "HEAD"):
            if not place.can_change(dot_git):
                return True
            return (
                dot_git in place.protected
                and not dot_git.is_symlink()
                and not _has_submodules(dot_git)
            )
        if os.path.lexists(parent / "HEAD") and place.can_change(parent):
            return False
    return True
