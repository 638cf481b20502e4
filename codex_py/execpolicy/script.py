"""Finds the simple commands that a command line runs. Expands, looks up and runs nothing."""

from collections.abc import Sequence

from codex_py.execpolicy.parse_budget import ParseBudget
from codex_py.execpolicy.place import BY_NAME, CommandPlace, is_known_shell
from codex_py.execpolicy.words import UNKNOWN, Command, plain_script
from codex_py.execpolicy.wrappers import (
    SHELLS,
    program_name,
    wrapped_commands,
    wrapped_script,
)
from codex_py.protocol.frozen import frozen

_MAX_SCRIPT = 1024 * 1024
"""The limit in characters. Linux starts no program with an argument of more than 128 KiB."""
_MAX_DEPTH = 8
"""The depth to which commands may be nested in wrappers and shells."""


@frozen
class FoundCommands:
    """The commands in a command line that could be found."""

    commands: tuple[Command, ...]
    is_complete: bool
    """False if a script is too long, too deeply nested or too much work to be read. `commands` then
    lacks those of this script."""


def plain_commands(
    argv: Sequence[str], place: CommandPlace = BY_NAME
) -> tuple[Command, ...] | None:
    """The commands that `argv` runs, if that is certain; never empty.

    `bash -c SCRIPT`, also with `-lc` and with `sh` or `zsh`, gives the commands of the script, if
    `place` trusts the shell and the script consists of plain words and `&&`, `||`, `;`, `|`,
    newlines and comments. Any other program is one command. The words are those that the program
    will get.

    None if there is no command, for a program that only has the name of a shell, and for a script
    with anything else in it: an expansion, a redirection, an assignment, a subshell, a background
    job, control flow, an error, invisible characters.
    """
    if not argv or any("\0" in word for word in argv):
        return None
    command = tuple(argv)
    if program_name(command) not in SHELLS:
        return (command,)
    match command:
        case (shell, "-c" | "-lc", script):
            return _commands_of_shell(shell, script, place)
        case _ if wrapped_script(command) is None:
            # The shell runs a file.
            return (command,)
        case _:
            return None


def _commands_of_shell(
    shell: str, script: str, place: CommandPlace
) -> tuple[Command, ...] | None:
    program = place.program(shell)
    if program is None or not is_known_shell(program, place.shell):
        return None
    # The shell takes a script that begins like an option for one.
    is_like_option = script.startswith(("-", "+"))
    if is_like_option or len(script) > _MAX_SCRIPT:
        return None
    return plain_script(script)


def all_commands(argv: Sequence[str]) -> FoundCommands:
    """Every simple command found anywhere in `argv`, `argv` itself first.

    Finds the commands of pipelines, loops, functions, `$(…)`, backticks and `<(…)`; the commands
    behind `sudo`, `env`, `xargs`, `find -exec` and the like, beside the wrapper's own; and the
    commands of a script within a script and of `eval`. A word that is known only when the script
    runs is `UNKNOWN`. Commands may be missed. How much is read depends only on the text, not on how
    busy the machine is.
    """
    budget = ParseBudget()
    found: list[Command] = []
    is_complete = True
    layer: list[Command] = []
    """The commands at the next depth."""
    if argv:
        layer.append(tuple(argv))
    for _ in range(_MAX_DEPTH + 1):
        found += layer
        outer = layer
        layer = []
        for command in outer:
            inner = _run_by(command, budget)
            if inner is None:
                is_complete = False
            else:
                layer += inner
    if layer:
        # These are nested too deeply.
        is_complete = False
    return FoundCommands(tuple(found), is_complete)


def _run_by(command: Command, budget: ParseBudget) -> Sequence[Command] | None:
    """The commands that this one runs; None if they cannot be found."""
    script = wrapped_script(command)
    if script is None:
        return wrapped_commands(command)
    if len(script) > _MAX_SCRIPT:
        return None
    plain = plain_script(script)
    if plain:
        return plain
    # Few scripts get here.
    from codex_py.execpolicy.grammar import commands_in  # 5 ms

    return commands_in(script.replace(UNKNOWN, '"$_"'), budget)
