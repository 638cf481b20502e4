"""Lists the commands that a user may be asked to allow for good, by their first words.

These are commands known to run no code of others: a list of harmful commands could never be
complete. Left out are commands that run a program, script or configuration of the project (`npm`,
`cargo`, `make`), write a file that an option names (`curl`), take over the work of others (`git
pull`), or delete (`git reset`).
"""

import re
from collections.abc import Sequence
from typing import Final

from codex_py.execpolicy.place import BY_NAME, CommandPlace
from codex_py.execpolicy.script import plain_commands
from codex_py.execpolicy.words import Command
from codex_py.execpolicy.wrappers import program_name

_PIP: Final = (
    "check",
    "download",
    "freeze",
    "index versions",
    "install",
    "list",
    "show",
)
_KNOWN: Final = {
    "docker": ("images", "info", "inspect", "logs", "ps", "pull", "version"),
    "gh": (
        "issue list",
        "issue status",
        "issue view",
        "pr checks",
        "pr diff",
        "pr list",
        "pr status",
        "pr view",
        "release list",
        "release view",
        "repo view",
        "run list",
        "run view",
    ),
    "git": (
        "add",
        "blame",
        "commit",
        "describe",
        "diff",
        "fetch",
        "log",
        "ls-files",
        "ls-remote",
        "merge-base",
        "push",
        "rev-parse",
        "shortlog",
        "show",
        "status",
    ),
    "pip": _PIP,
    "pip3": _PIP,
    **dict.fromkeys(
        (
            "df",
            "dig",
            "du",
            "free",
            "host",
            "nslookup",
            "pgrep",
            "ping",
            "ps",
        ),
        ("",),
    ),
}
"""The known subcommands of each program. An empty one means that any arguments are known."""
_PIP_OPTION = re.compile(
    r"-[qvUI]+|--(?:upgrade|quiet|verbose|user|pre|no-deps|no-cache-dir|no-input|dry-run|outdated"
    r"|break-system-packages|disable-pip-version-check|force-reinstall|ignore-installed)"
)
"""An option that names no file and no index."""
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][\w.-]*(?:\[[\w.,-]*\])?(?:(?:[<>=!~]=|[<>])[\w.*+!-]+,?)*", re.ASCII
)
"""A package by name, with its extras and versions: `name[extra]>=1,<2`."""
_ARCHIVE = re.compile(
    r".*\.(?:whl|zip|tar|t[bglx]z|tar\.\w+|bz2|gz|xz|lz|lzma)", re.IGNORECASE
)


def known_prefix(argv: Sequence[str], place: CommandPlace = BY_NAME) -> Command:
    """The first words of the command that `argv` runs, as far as they are in the table.

    Empty if they are not, and unless `argv` certainly runs only one command.
    """
    commands = plain_commands(argv, place)
    if commands is None or len(commands) != 1:
        return ()
    (command,) = commands
    program = command[0]
    for words in _KNOWN.get(program, ()):
        prefix = (program, *words.split())
        if command[: len(prefix)] == prefix:
            return prefix
    return ()


def is_local_install(command: Command, covered: int) -> bool:
    """True if words of `pip` after the first `covered` may name code, an index or a file.

    The file may be a program. pip takes a word for a file on this disk if it has a slash, begins
    with a dot or ends like an archive.
    """
    if program_name(command) not in {"pip", "pip3"}:
        return False
    words = command[max(covered, 1) :]
    return not all(_is_option_or_package(word) for word in words)


def _is_option_or_package(word: str) -> bool:
    if _PIP_OPTION.fullmatch(word):
        return True
    is_requirement = _REQUIREMENT.fullmatch(word) is not None
    return is_requirement and not _ARCHIVE.fullmatch(word)
