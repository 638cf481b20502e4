"""What a command line runs, as simple commands. Nothing is expanded, looked up or run."""

import time
from collections.abc import Sequence

from codex_py.execpolicy.grammar import UNKNOWN, commands_in
from codex_py.execpolicy.words import Command, plain_script
from codex_py.execpolicy.wrappers import SHELLS, program_name, wrapped_commands, wrapped_script

_MAX_SCRIPT = 1024 * 1024
"""Characters. Linux starts no program with an argument of more than 128 KiB."""
_MAX_DEPTH = 8
"""Commands within commands, counted in wrappers and in shells."""

_PATIENCE_S = 1.0
"""For parsing. It is linear on what people write, and takes minutes for a hundred thousand heredocs."""


def plain_commands(argv: Sequence[str]) -> tuple[Command, ...] | None:
    """The commands that `argv` runs, where that can be told for certain; never empty.

    `bash -c SCRIPT`, also with `-lc`, with `sh` or `zsh` and by path, gives the commands of a script that
    is made of plain words and `&&`, `||`, `;`, `|`, newlines and comments. Any other program is one command.
    None where there is no command, and for a script with anything else in it: an expansion, a
    redirection, an assignment, a subshell, a background job, control flow, an error, characters
    that do not show. The words are those that the program will get.
    """
    if not argv or any("\0" in word for word in argv):
        return None
    if program_name(argv) not in SHELLS:
        return (tuple(argv),)
    if len(argv) == 3 and argv[1] in {"-c", "-lc"}:
        script = argv[2]
        # What begins like an option is one.
        too_odd = script.startswith(("-", "+")) or len(script) > _MAX_SCRIPT
        return None if too_odd else plain_script(script)
    return None if wrapped_script(tuple(argv)) is not None else (tuple(argv),)


def all_commands(argv: Sequence[str]) -> tuple[Command, ...]:
    """Every simple command found anywhere in `argv`, itself first.

    Those of pipelines, loops, functions, `$(…)`, backticks and `<(…)`; those behind `sudo`, `env`, `xargs`,
    `find -exec` and the like, beside the wrapper's own; those of a script within a script and of
    `eval`. A word that is known only when it runs is `UNKNOWN`. Scripts that are too
    long or too deep, and those that are still to be read after a second, give none: this
    finds what there is to be found, and proves nothing.
    """
    deadline = time.monotonic() + _PATIENCE_S
    found: list[Command] = []
    layer: list[Command] = [tuple(argv)] if argv else []
    for depth in range(_MAX_DEPTH + 1):
        found += layer
        if depth < _MAX_DEPTH:
            layer = [inner for command in layer for inner in _run_by(command, deadline)]
    return tuple(found)


def _run_by(command: Command, deadline: float) -> Sequence[Command]:
    script = wrapped_script(command)
    if script is None:
        return wrapped_commands(command)
    if len(script) > _MAX_SCRIPT:
        return ()
    return plain_script(script) or commands_in(script.replace(UNKNOWN, '"$_"'), deadline)
