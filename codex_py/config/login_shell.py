"""Login shells without the variables that are kept from commands: a profile may set them again."""

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import Final

_SHELLS: Final = {"bash", "dash", "ksh", "sh", "zsh"}
_LOGIN: Final = (["-lc"], ["-cl"], ["-l", "-c"], ["--login", "-c"])
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def without_variables(argv: Sequence[str], names: Collection[str]) -> list[str]:
    """What runs `argv` so that its script does not see these variables, whatever the user's profile says.

    Only a login shell with a script is changed. Its script runs in the same shell, with all else that the
    profile has set, its own `$0` and arguments and the same numbers of lines: an inner shell would have lost the
    profile's functions, and `eval` changes what errors say.
    """
    hidden = " ".join(sorted(name for name in names if _NAME.fullmatch(name)))
    if hidden and argv and PurePath(argv[0]).name in _SHELLS:
        for options in _LOGIN:
            at = len(options) + 1
            if len(argv) > at and list(argv[1:at]) == options:
                # On the first line of the script, so that all keep their numbers.
                return [*argv[:at], f"unset {hidden} 2>/dev/null; {argv[at]}", *argv[at + 1 :]]
    return list(argv)
