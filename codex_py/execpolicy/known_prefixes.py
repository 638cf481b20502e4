"""First words of commands which a user may be asked to allow for good, and which run nothing that others name.

A table of what is known to be harmless, because no list of what is not could be complete. Not in it: what runs a
program, script or configuration of the project (`npm`, `cargo`, `make`), what writes a file that an option names
(`curl`), what takes over the work of others (`git pull`), and what deletes (`git reset`).
"""

import re
from collections.abc import Sequence
from typing import Final

from codex_py.execpolicy.place import BY_NAME, Place
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
        ("df", "dig", "du", "free", "host", "nslookup", "pgrep", "ping", "ps"), ("",)
    ),
}
"""The subcommands by program. An empty one: the program alone, with any arguments."""

_PIP_OPTION = re.compile(
    r"-[qvUI]+|--(?:upgrade|quiet|verbose|user|pre|no-deps|no-cache-dir|no-input|dry-run|outdated"
    r"|break-system-packages|disable-pip-version-check|force-reinstall|ignore-installed)"
)
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][\w.-]*(?:\[[\w.,-]*\])?(?:(?:[<>=!~]=|[<>])[\w.*+!-]+,?)*", re.ASCII
)
_ARCHIVE = re.compile(
    r".*\.(?:whl|zip|tar|t[bglx]z|tar\.\w+|bz2|gz|xz|lz|lzma)", re.IGNORECASE
)


def known_prefix(argv: Sequence[str], place: Place = BY_NAME) -> Command:
    """The known prefix of what `argv` runs; empty unless that is certainly one command, which has one."""
    commands = plain_commands(argv, place) or ()
    if len(commands) != 1:
        return ()
    (command,) = commands
    prefixes = ((command[0], *words.split()) for words in _KNOWN.get(command[0], ()))
    return next((words for words in prefixes if command[: len(words)] == words), ())


def is_local_install(command: Command, covered: int) -> bool:
    """True if words of `pip` beyond the first `covered` may name code, an index, a program or a file on this disk.

    pip takes a word for a file if it has a slash, begins with a dot or ends like an archive.
    """
    if program_name(command) in {"pip", "pip3"}:
        words = command[max(covered, 1) :]
    else:
        words = ()
    return not all(
        _PIP_OPTION.fullmatch(word)
        or (_REQUIREMENT.fullmatch(word) and not _ARCHIVE.fullmatch(word))
        for word in words
    )
