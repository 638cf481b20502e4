"""Finds the commands that wrappers run, such as the `rm f` in `sudo -u x env A=1 rm f`."""

import re
from collections.abc import Sequence
from typing import Final

from codex_py.execpolicy.words import Command
from codex_py.protocol.frozen import frozen

SHELLS: Final = frozenset(("ash", "bash", "dash", "ksh", "sh", "zsh"))
"""Shells that read plain scripts in the same way."""
_OTHER_SHELLS: Final = (
    "csh",
    "elvish",
    "fish",
    "mksh",
    "nu",
    "oksh",
    "osh",
    "pdksh",
    "posh",
    "pwsh",
    "rbash",
    "rksh",
    "rzsh",
    "tcsh",
    "yash",
)


@frozen
class _Wrapper:
    """The words that a wrapper takes before the command that it runs."""

    values: str = ""
    """Short options that take a value, which may be the next word."""
    long_values: str = ""
    """Long options whose value may be the next word, without their dashes."""
    operands: int = 0
    """The number of the wrapper's own words before the command."""
    assignments: bool = False
    """True if `NAME=value` may stand before the command."""


_SIMPLE: Final = (
    "builtin",
    "busybox",
    "command",
    "coproc",
    "nohup",
    "pkexec",
    "setsid",
    "toybox",
    "unshare",
)
"""Wrappers whose options take no values."""
_WRAPPERS: Final = {
    **dict.fromkeys(_SIMPLE, _Wrapper()),
    **dict.fromkeys(("chroot", "chrt", "setarch", "taskset"), _Wrapper(operands=1)),
    "doas": _Wrapper("uC"),
    "env": _Wrapper("uC", "unset chdir", assignments=True),
    "exec": _Wrapper("a"),
    "flock": _Wrapper("wE", "wait timeout conflict-exit-code", operands=1),
    "ionice": _Wrapper("cnpPu", "class classdata"),
    "nice": _Wrapper("n", "adjustment"),
    "runuser": _Wrapper("ugG", "user group supp-group"),
    "stdbuf": _Wrapper("ioe", "input output error"),
    "strace": _Wrapper("abeEIoOpPsSuUX"),
    "sudo": _Wrapper(
        "ughpCDRTUrt",
        "user group host prompt close-from chdir chroot command-timeout other-user role type",
        assignments=True,
    ),
    "time": _Wrapper("fo", "format output"),
    "timeout": _Wrapper("ks", "kill-after signal", operands=1),
    "watch": _Wrapper("n", "interval"),
    "xargs": _Wrapper(
        "adEILnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var"
    ),
}

_GIT: Final = _Wrapper("cC", "config-env git-dir namespace super-prefix work-tree")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_FIND_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


def program_name(command: Sequence[str]) -> str:
    """The name of the program without its folder; empty for an empty command."""
    if command:
        return command[0].rpartition("/")[2]
    return ""


def is_shell(command: Sequence[str]) -> bool:
    """True if the program has the name of a shell, even with a version: `/opt/x/bash-5.2`."""
    name = program_name(command).rstrip("0123456789.-").removesuffix("-static")
    return name in SHELLS or name in _OTHER_SHELLS


def git_subcommand(command: Command) -> int:
    """The index of the subcommand of `git`; the length of the command if it has none."""
    return _after_options(command, _GIT)


def wrapped_commands(command: Command) -> list[Command]:
    """The commands that stand in the words of a wrapper.

    For `git` with options before its subcommand, this is the same command without them.
    """
    name = program_name(command)
    if name == "git":
        start = git_subcommand(command)
        if 1 < start < len(command):
            return [(command[0], *command[start:])]
        return []
    if name == "find":
        return _find_actions(command)
    wrapper = _WRAPPERS.get(name)
    if wrapper is None:
        return []
    is_lookup = len(command) > 1 and command[1] in {"-v", "-V"}
    if name == "command" and is_lookup:
        return []
    start = _after_options(command, wrapper)
    if wrapper.assignments:
        while start < len(command) and _ASSIGNMENT.match(command[start]):
            start += 1
    rest = command[start + wrapper.operands :]
    if rest:
        return [rest]
    return []


def wrapped_script(command: Command) -> str | None:
    """The script that a shell, `eval` or a similar program runs; None if there is none."""
    name = program_name(command)
    match name:
        case "eval":
            return " ".join(command[1:])
        case "trap":
            if len(command) > 2 and command[1][:1] != "-":
                return command[1]
            return None
        case "watch":
            return " ".join(command[_after_options(command, _WRAPPERS[name]) :])
        case "env":
            # `env` splits the text as a shell would, although no shell is involved.
            return _option_value(command, "S", "--split-string")
        case "flock" | "runuser" | "script" | "su":
            return _option_value(command, "c", "--command")
        case _:
            if is_shell(command):
                return _shell_text(command)
            return None


def _shell_text(command: Command) -> str | None:
    """The text that a shell runs with `-c`; None if it has no such option."""
    runs_text = False
    index = 1
    while index < len(command) and command[index][:1] in {"-", "+"}:
        option = command[index]
        index += 1
        if option in {"-", "--"}:
            break
        if option.startswith("--"):
            takes_next_word = option in {"--rcfile", "--init-file"}
        else:
            takes_next_word = option[-1] in "oO"
            runs_text |= option[0] == "-" and "c" in option
        if takes_next_word:
            index += 1
    if runs_text and index < len(command):
        return command[index]
    return None


def _option_value(
    command: Command,
    letter: str,
    long: str,
) -> str | None:
    """The value of an option, in the same word or the next one; None if it is not given."""
    words = command[1:]
    for index, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("--"):
            name, _, value = word.partition("=")
            is_wanted = name == long
            takes_next_word = "=" not in word
        else:
            _, _, value = word.partition(letter)
            is_wanted = word.startswith("-") and letter in word
            takes_next_word = not value
        if is_wanted and takes_next_word:
            return "".join(words[index + 1 : index + 2])
        if is_wanted:
            return value
    return None


def _after_options(command: Command, wrapper: _Wrapper) -> int:
    """The index of the first word that is neither an option of the wrapper nor its value."""
    index = 1
    while index < len(command) and command[index].startswith("-"):
        option = command[index]
        index += 1
        if option == "--":
            break
        if option.startswith("--"):
            takes_next_word = option[2:] in wrapper.long_values.split()
        else:
            takes_next_word = _takes_next_word(option, wrapper.values)
        if takes_next_word:
            index += 1
    return index


def _takes_next_word(options: str, with_value: str) -> bool:
    """True if the value of short options, such as `-xu`, is the next word.

    The first option that takes a value gets the rest of the word, or else the next word.
    """
    for index, letter in enumerate(options):
        if letter in with_value:
            return index == len(options) - 1
    return False


def _find_actions(command: Command) -> list[Command]:
    """The commands of the actions such as `-exec`, which end with `;` or `+`."""
    found: list[Command] = []
    start: int | None = None
    """The index at which the current command begins."""
    for index, word in enumerate(command):
        if start is None:
            if word in _FIND_ACTIONS:
                start = index + 1
        elif word in {";", "+"}:
            found.append(command[start:index])
            start = None
    return [part for part in found if part]
