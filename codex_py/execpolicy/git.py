"""What a rule that allows `git` does not allow: other repositories, and options that name programs or files.

Outside of the sandbox git runs what the configuration and the hooks of a repository say. Those of the project
are read-only to commands; in a repository that a command has made, they are the model's.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.execpolicy.place import Place
from codex_py.execpolicy.words import Command
from codex_py.execpolicy.wrappers import git_subcommand

_HARMLESS: Final = frozenset(("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"))
"""Options that may stand before the subcommand."""

_LONG: Final = (
    *("--access-hook", "--cc-cmd", "--config", "--exec", "--extcmd", "--ext-diff", "--git-dir"),
    *("--header-cmd", "--open-files-in-pager", "--output", "--receive-pack", "--sendmail-cmd"),
    *("--smtp-server", "--template", "--textconv", "--to-cmd", "--tool", "--upload-pack"),
    *("--work-tree", "--recurse-submodules"),
)
"""Options that name a program, or a file to write, or let git enter the repositories of submodules."""
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
"""The same among the short options, by subcommand."""
_RUNNERS: Final = frozenset(
    ("bisect", "config", "daemon", "filter-branch", "for-each-repo", "submodule")
)
"""Subcommands whose other words may be programs."""


def is_held_back(command: Command, covered: int, place: Place) -> bool:
    """True if a rule that allows the first `covered` words of a `git` command should not count for all of it."""
    start = git_subcommand(command)
    before, subcommand, arguments = (
        command[covered:start],
        "".join(command[start : start + 1]),
        command[max(start + 1, covered) :],
    )
    return (
        any(word not in _HARMLESS for word in before)
        or (subcommand in _RUNNERS and covered <= start + 1 and bool(arguments))
        or any(_names_program(word, subcommand) for word in _options(arguments))
        or any(_leads_away(word, place) for word in arguments)
        or not _is_safe_repository(place.cwd, place)
    )


def _options(arguments: Sequence[str]) -> Sequence[str]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [word for word in arguments[:end] if word.startswith("-")]


def _has_submodules(repository: Path) -> bool:
    """True if the index may hold submodules: git enters them, and what their `.git` is a command can change.

    Also true for an index that cannot be read. https://git-scm.com/docs/index-format
    """
    try:
        if repository.is_file():
            pointer = repository.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            repository = repository.parent / pointer
        index = (repository / "index").read_bytes()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    # The mode of an entry. Other fields may look like it by chance; then a question too many is asked.
    return (0o160000).to_bytes(4) in index


def _names_program(option: str, subcommand: str) -> bool:
    if not option.startswith("--"):
        return any(letter in option for letter in _SHORT.get(subcommand, ""))
    # Options may be cut short.
    name = option.partition("=")[0]
    return any(long.startswith(name) or name.startswith(f"{long}-") for long in _LONG)


def _leads_away(word: str, place: Place) -> bool:
    """True if the word, or the value of an option, may be another repository which the model can change."""
    value = word.partition("=")[2] if word.startswith("-") else word
    if value.startswith("file:") or "::" in value:
        return True
    folder = place.cwd / value
    candidates = (folder, folder.with_name(f"{folder.name}.git")) if folder.name else (folder,)
    return any(
        _is_repository(path) and not _is_safe_repository(path, place)
        for path in candidates
        if value
    )


def _is_repository(folder: Path) -> bool:
    return os.path.lexists(folder / ".git") or os.path.lexists(folder / "HEAD")


def _is_safe_repository(folder: Path, place: Place) -> bool:
    """True if no command can change the repository that git finds from a folder; also if it finds none.

    Source of the search: `setup_git_directory_gently` of git, which takes a folder for a bare repository where its
    `.git` is none, as an empty one is.
    """
    real = Path(os.path.realpath(folder))
    for parent in (real, *real.parents):
        found = parent / ".git"
        if found.is_file() or os.path.lexists(found / "HEAD"):
            if not place.can_change(found):
                return True
            return (
                found in place.protected and not found.is_symlink() and not _has_submodules(found)
            )
        if os.path.lexists(parent / "HEAD") and place.can_change(parent):
            return False
    return True
