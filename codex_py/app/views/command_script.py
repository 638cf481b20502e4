"""The command line of an item without its shell, as people read it."""

import re

from codex_py.execpolicy.place import is_known_shell

_SHELL = re.compile(r"(\S+) -l?c (?=.)", re.DOTALL)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|([^\s'"\\]+)""", re.DOTALL)
"""A part of a word: within single quotes, within double quotes, or bare."""
LONGEST_SCRIPT = 100_000
"""The characters of the longest command line whose shell is left out."""


def script_of(command: str, own_shell: str = "") -> str:
    """Return a command line without its shell: `/bin/bash -lc 'ls -l'` becomes `ls -l`.

    Only a shell of the system, or the user's own at its absolute path, is left out. Another program
    of that name may do anything, whatever its script says.
    """
    wrapper = _SHELL.match(command)
    if wrapper is None or len(command) > LONGEST_SCRIPT:
        return command
    if not is_known_shell(wrapper[1], own_shell):
        return command
    script: list[str] = []
    position = wrapper.end()
    while position < len(command):
        part = _QUOTED.match(command, position)
        if part is None:
            # Several words: the script has arguments, which are a part of the command.
            return command
        single, double, bare = part.groups()
        if double:
            script.append(re.sub(r"\\(.)", r"\1", double))
        else:
            script.append(single or bare or "")
        position = part.end()
    return "".join(script)
