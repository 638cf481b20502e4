"""Commands that are known to only read, and commands that are known to destroy.

The list is that of Codex 0.169, without `uniq` with an output file, `sed` with a second option,
`-z` among other short options of `rg`, and programs outside the folders of the system, because the
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
UNREAD: Final = "the command is too long or too deeply nested to be checked"
"""This and the constant above are clauses for the user."""

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
        *(("numfmt", "tac") if sys.platform == "linux" else ()),
    )
)
"""Programs that are safe with any arguments."""

_BASE64_WRITES = re.compile(r"-[^-]*o|--o")
_FIND_WRITES = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fls|fprint.*)", re.DOTALL)
_RG_RUNS = re.compile(
    r"--(?:pre|hostname-bin)(?:=.*)?|--search-zip|-[^-ABCEMTdefgjmrt]*z.*", re.DOTALL
)
_SED_PRINT = re.compile(r"(?:[0-9]+,)?[0-9]+p")
_QUOTING = str.maketrans("", "", "'\"\\\n")


def is_known_safe(argv: Sequence[str], place: CommandPlace = BY_NAME) -> bool:
    """True if all commands that `argv` runs are known to only read, by their names and options.

    They may read anything. False does not mean that a command is unsafe.
    """
    commands = plain_commands(argv, place)
    return commands is not None and all(
        _only_reads(command)
        and (command[0] == "cd" or place.program(command[0]) is not None)
        for command in commands
    )


def dangerous(argv: Sequence[str]) -> str | None:
    """The reason why `argv` should not run without approval: `FORCED_RM`, `UNREAD`, or None.

    The reasons are `rm` with `-f` or `--force` anywhere in `argv` (see `all_commands`), and a
    script that may contain such an `rm` and cannot be read.
    """
    # Parse only scripts that could contain an `rm`, however it is quoted.
    if not any("rm" in word.translate(_QUOTING) for word in argv):
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
    match name:
        case "base64":
            return not any(_BASE64_WRITES.match(word) for word in arguments)
        case "find":
            return not any(_FIND_WRITES.fullmatch(word) for word in arguments)
        case "rg":
            return not any(_RG_RUNS.fullmatch(word) for word in arguments)
        case "sed":
            return (
                len(arguments) in {2, 3}
                and arguments[0] == "-n"
                and _SED_PRINT.fullmatch(arguments[1]) is not None
                and not "".join(arguments[2:]).startswith("-")
            )
        case "uniq":
            return len(_uniq_files(arguments)) < 2
        case _:
            return False


def _uniq_files(arguments: Sequence[str]) -> list[str]:
    """The operands of `uniq`. It writes to the second one."""
    files: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            files += words
        elif word in {"-f", "-s", "-w"}:
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            files.append(word)
    return files


def _is_forced_rm(command: Command) -> bool:
    if program_name(command) != "rm":
        return False
    if "--" in command:
        options = command[1 : command.index("--")]
    else:
        options = command[1:]
    return any(
        # Long options may be abbreviated.
        (len(option) > 2 and "--force".startswith(option))
        or (option[:1] == "-" and option[:2] != "--" and "f" in option)
        for option in options
    )
