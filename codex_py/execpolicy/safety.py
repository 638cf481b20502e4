"""Tells the commands that only read, and those that delete without asking.

The list is that of Codex 0.169. Not taken over are `uniq` with an output file, `sed` with a second
option, `-z` among other short options of `rg`, and programs outside the folders of the system: the
model may have written those.
"""

import re
import sys
from collections.abc import Sequence
from typing import Final

from codex_py.execpolicy.place import BY_NAME, SYSTEM_FOLDERS, CommandPlace
from codex_py.execpolicy.script import all_commands, plain_commands
from codex_py.execpolicy.words import Command
from codex_py.execpolicy.wrappers import program_name

FORCED_RM: Final = "`rm -f` deletes without asking"
"""A reason of `dangerous`, as a clause for the user."""
UNREAD: Final = "the command is too long or too deeply nested to be checked"
"""The other reason of `dangerous`, as a clause for the user."""

_READERS: Final = frozenset(
    (
        "cat",
        "cd",
        "cut",
        "echo",
        "expr",
        "false",
        "grep",
        "head",
        "id",
        "ls",
        "nl",
        "paste",
        "pwd",
        "rev",
        "seq",
        "stat",
        "tail",
        "tr",
        "true",
        "uname",
        "wc",
        "which",
        "whoami",
    )
)
"""Programs that only read, whatever their arguments."""
_LINUX_READERS: Final = ("numfmt", "tac")
"""More of them, on Linux."""
_BASE64_WRITES = re.compile(r"-[^-]*o|--o")
_FIND_WRITES = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fls|fprint.*)", re.DOTALL)
_RG_RUNS = re.compile(
    r"--(?:pre|hostname-bin)(?:=.*)?|--search-zip|-[^-ABCEMTdefgjmrt]*z.*", re.DOTALL
)
_SED_PRINT = re.compile(r"(?:[0-9]+,)?[0-9]+p")
_QUOTING = str.maketrans("", "", "'\"\\\n")
"""Removes the characters that may quote a word, or a part of it."""


def is_known_safe(argv: Sequence[str], place: CommandPlace = BY_NAME) -> bool:
    """True if all commands that `argv` runs are known to only read, by their names and options.

    They may read anything. False does not mean that a command is unsafe.
    """
    commands = plain_commands(argv, place)
    if commands is None:
        return False
    for command in commands:
        program = command[0]
        if not _only_reads(command):
            return False
        # `cd` is no program, but a word of the shell.
        if program != "cd" and place.program(program) is None:
            return False
    return True


def dangerous(argv: Sequence[str]) -> str | None:
    """The reason why `argv` should not run without approval: `FORCED_RM`, `UNREAD`, or None.

    `FORCED_RM`: one of its `all_commands` is an `rm` with `-f` or `--force`. `UNREAD`: a script
    that may contain such an `rm` cannot be read.
    """
    # Parse only scripts that could contain an `rm`, however it is quoted.
    unquoted = (word.translate(_QUOTING) for word in argv)
    if not any("rm" in word for word in unquoted):
        return None
    found = all_commands(argv)
    if any(_is_forced_rm(command) for command in found.commands):
        return FORCED_RM
    if found.is_complete:
        return None
    return UNREAD


def is_system_program(program: str) -> bool:
    """True if the word is a bare name, or a path into a folder of the system."""
    folder, slash, _ = program.rpartition("/")
    return not slash or folder in SYSTEM_FOLDERS


def _only_reads(command: Command) -> bool:
    if not is_system_program(command[0]):
        return False
    name = program_name(command)
    arguments = command[1:]
    if name in _READERS:
        return True
    if name in _LINUX_READERS:
        return sys.platform == "linux"
    match name:
        case "base64":
            return not any(_BASE64_WRITES.match(word) for word in arguments)
        case "find":
            return not any(_FIND_WRITES.fullmatch(word) for word in arguments)
        case "rg":
            return not any(_RG_RUNS.fullmatch(word) for word in arguments)
        case "sed":
            return _prints_lines(arguments)
        case "uniq":
            return len(_uniq_files(arguments)) < 2
        case _:
            return False


def _prints_lines(arguments: Sequence[str]) -> bool:
    """True for the arguments of `sed -n 1,5p` and `sed -n 1,5p FILE`."""
    if len(arguments) not in {2, 3} or arguments[0] != "-n":
        return False
    if len(arguments) == 3 and arguments[2].startswith("-"):
        return False
    return _SED_PRINT.fullmatch(arguments[1]) is not None


def _uniq_files(arguments: Sequence[str]) -> list[str]:
    """The operands of `uniq`. It writes to the second one."""
    files: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            files += words
        elif word in {"-f", "-s", "-w"}:
            # The next word is a number.
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            files.append(word)
    return files


def _is_forced_rm(command: Command) -> bool:
    if program_name(command) != "rm":
        return False
    options = command[1:]
    if "--" in options:
        options = options[: options.index("--")]
    return any(_is_force(option) for option in options)


def _is_force(option: str) -> bool:
    """True for `--force`, its abbreviations, and short options with an `f`."""
    if option.startswith("--"):
        return len(option) > 2 and "--force".startswith(option)
    return option.startswith("-") and "f" in option
