"""Recognise shell commands that do nothing but apply a patch.

The forms are those that Codex recognises, and none of them can mean anything else:

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
"""Texts of which a command has at least one if it is a patch, or applies one."""
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
"""The first line of such a script: an optional `cd`, assignments of variables, and the command with
its here-document."""


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
    """Find the patch in a command that does nothing but apply it; None for any other command.

    Args:
        argv: the arguments of the process. A shell has its script as the third, after `-c` or `-lc`.
    """
    if len(argv) == 2 and argv[0] in _NAMES:
        return ShellPatch(argv[1], None)
    script = _script(argv)
    if script is None:
        return None
    return _in_script(script)


def is_bare_patch(argv: Sequence[str]) -> bool:
    """True if a command is a patch itself, without a program to apply it.

    A shell would run each line of it as a command. In a here-document without a command, it would
    silently ignore it.
    """
    if len(argv) == 1:
        text = argv[0]
    else:
        text = _script(argv)
    return text is not None and is_enveloped(text)


def _script(argv: Sequence[str]) -> str | None:
    """Return the script that a shell is to run; None if the command is no such shell."""
    match argv:
        case [shell, "-c" | "-lc", script] if shell.rpartition("/")[2] in _SHELLS:
            return script
        case _:
            return None


def _in_script(script: str) -> ShellPatch | None:
    """Find the patch in the here-document of a script; None if the script does anything else."""
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
