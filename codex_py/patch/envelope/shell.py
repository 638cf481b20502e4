"""Recognise shell commands that do nothing but apply a patch.

Only forms that can mean one thing are taken, the same as Codex takes:

    apply_patch <<'EOF' … EOF
    cd DIR && apply_patch <<'EOF' … EOF
    ["apply_patch", PATCH]

Everything else is left to the shell.
"""

import re
from collections.abc import Sequence

from codex_py.patch.envelope.reader import BEGIN, is_enveloped
from codex_py.protocol.frozen import frozen

_NAMES = {"apply_patch", "applypatch"}
_MARKS = (*_NAMES, BEGIN)
"""A command that is a patch, or applies one, has one of these words in it."""
_SHELLS = {"bash", "sh", "zsh"}

_COMMAND = re.compile(
    r"""
    \s*
    (?: cd [ \t]+
        (?: '(?P<raw>[^'\n]*)' | "(?P<quoted>[^"$`\\\n]*)"
            | (?P<word>(?![-~])[^\s'"$`\\|&;<>()*?\[\]{}\#!]+) )
        [ \t]* && \s* )?
    (?: [A-Za-z_]\w*= (?: '[^'\n]*' | "[^"$`\\\n]*" | [^\s'"$`\\|&;<>()]* ) [ \t]+ )*
    (?: apply_patch | applypatch )
    [ \t]* << (?P<dash>-?) [ \t]*
    (?: '(?P<raw_end>[^'\n]+)' | "(?P<quoted_end>[^"\n]+)" | (?P<end>[^\s'"$`\\|&;<>()]+) )
    [ \t\r]* \n
    """,
    re.VERBOSE,
)


@frozen
class ShellPatch:
    patch: str
    workdir: str | None
    """The directory of a `cd` before the patch, as written; relative to the working directory of
    the command."""


def mentions_patch(argv: Sequence[str]) -> bool:
    """True if a command may be a patch or apply one; False for nearly all commands."""
    return any(mark in word for word in argv for mark in _MARKS)


def find_patch(argv: Sequence[str]) -> ShellPatch | None:
    """The patch that a command applies and does nothing besides; None for any other command.

    Args:
        argv: the arguments of the process; a script of a shell is its third argument, after `-c` or
            `-lc`.
    """
    if len(argv) == 2 and argv[0] in _NAMES:
        return ShellPatch(argv[1], None)
    script = _script(argv)
    if script is None:
        return None
    return _in_script(script)


def is_bare_patch(argv: Sequence[str]) -> bool:
    """True if a command is a patch itself, without a program to apply it.

    A shell would run each of its lines, or take it for the input of no command and say nothing.
    """
    text = argv[0] if len(argv) == 1 else _script(argv)
    return text is not None and is_enveloped(text)


def _script(argv: Sequence[str]) -> str | None:
    match argv:
        case [shell, "-c" | "-lc", script] if shell.rpartition("/")[2] in _SHELLS:
            return script
        case _:
            return None


def _in_script(script: str) -> ShellPatch | None:
    command = _COMMAND.match(script)
    if command is None:
        return None
    lines = script[command.end() :].split("\n")
    if command["dash"]:
        lines = [line.lstrip("\t") for line in lines]
    end = command["raw_end"] or command["quoted_end"] or command["end"]
    if end not in lines:
        return None
    last = lines.index(end)
    if any(line.strip() for line in lines[last + 1 :]):
        return None
    directories = (command["raw"], command["quoted"], command["word"])
    workdir = next((name for name in directories if name is not None), None)
    patch = "".join([f"{line}\n" for line in lines[:last]])
    return ShellPatch(patch, workdir)
