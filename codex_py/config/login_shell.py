"""Removes hidden variables from login shells, whose profiles may set them again."""

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import Final

_SHELLS: Final = {"bash", "dash", "ksh", "sh", "zsh"}
_LOGIN: Final = (["-lc"], ["-cl"], ["-l", "-c"], ["--login", "-c"])
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def without_variables(argv: Sequence[str], names: Collection[str]) -> list[str]:
    """The command line, changed so that its script does not see these variables even if the profile sets them.

    Only a login shell with a script is changed. The script still runs in the same shell, with everything else that
    the profile sets, its own `$0`, arguments and line numbers: an inner shell would lose the profile's functions,
    and `eval` changes error messages.
    """
    hidden = " ".join(sorted(name for name in names if _NAME.fullmatch(name)))
    if hidden and argv and PurePath(argv[0]).name in _SHELLS:
        for options in _LOGIN:
            at = len(options) + 1
            if len(argv) > at and list(argv[1:at]) == options:
                # On the first line of the script, so that line numbers stay the same.
                return [*argv[:at], f"unset {hidden} 2>/dev/null; {argv[at]}", *argv[at + 1 :]]
    return list(argv)
