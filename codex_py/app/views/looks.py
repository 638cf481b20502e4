"""Reads which files a script only looks at: it reads, lists or searches them, and changes nothing."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from codex_py.execpolicy.safety import is_known_safe
from codex_py.execpolicy.words import Command, plain_script
from codex_py.protocol.frozen import frozen

_MOST_READ = 4_000
"""Characters of a script. A longer one is not examined."""
_SILENT = {"cd", "pwd", "true", "wc", "uniq"}
"""Commands that print nothing from files, or count what others have read."""
_FILTERS = {"head", "tail"}


@frozen
class Look:
    """A command that looks at files."""

    kind: Literal["read", "list", "search"]
    command: Command
    paths: Sequence[str]
    """The files and folders as the command names them; none if it names none."""
    pattern: str = ""
    """The text that is searched for."""
    folder: str | None = ""
    """The folder of the command, relative to that of the script; None if unknown."""


def looks_of(script: str) -> list[Look]:
    """Return the looks of a script; empty if it does more than look, or nothing at all."""
    if len(script) > _MOST_READ:
        return []
    if not is_known_safe(("bash", "-c", script)):
        # It may do more than look.
        return []
    found: list[Look] = []
    folder: str | None = ""
    for command in plain_script(script) or ():
        if command[0] == "cd":
            folder = _entered(folder, command)
        is_filter = command[0] in _FILTERS and not _files(command)
        if is_filter or command[0] in _SILENT:
            continue
        look = _look(command, folder)
        if look is None:
            return []
        found.append(look)
    return found


def _entered(folder: str | None, command: Command) -> str | None:
    """The folder after a `cd`."""
    if folder is None or len(command) != 2 or command[1].startswith(("-", "~")):
        return None
    return str(PurePath(folder, command[1]))


def _files(command: Command) -> list[str]:
    """The words of a command without options; for `head` and `tail`, without a leading number."""
    words = [word for word in command[1:] if not word.startswith("-")]
    if command[0] in _FILTERS and words and words[0].isdigit():
        return words[1:]
    return words


def _look(command: Command, folder: str | None) -> Look | None:
    name = command[0]
    files = _files(command)
    match name:
        case "cat" | "head" | "tail" | "nl" if files:
            return Look("read", command, files, folder=folder)
        case "sed" if command[1:2] == ("-n",) and len(files) > 1:
            return Look("read", command, files[1:], folder=folder)
        case "ls":
            return Look("list", command, files, folder=folder)
        case "find":
            return Look("list", command, command[1:2], folder=folder)
        case "rg" if "--files" in command:
            return Look("list", command, files, folder=folder)
        case "rg" | "grep" if files:
            return Look("search", command, files[1:], files[0], folder)
        case _:
            return None
