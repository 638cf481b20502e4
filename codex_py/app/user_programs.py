"""Finds the programs that a session starts for the user, such as MCP servers, git or an editor, and their working directory.

A repository can hold a program of any name, and modules that an interpreter loads from its working directory.
The user's configuration means neither by `npx` or `python -m server`. LIGHT.
"""

import os
import pwd
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.project_trust import Trusted
from codex_py.filesystem.private import make_private
from codex_py.programs import Programs, programs_outside
from codex_py.protocol.frozen import frozen

_SHELLS: Final = frozenset({"bash", "zsh", "sh", "dash", "ksh", "ash"})
"""Shells that understand what models write. Others, such as fish, are left to the user's terminal."""


@frozen
class UserPrograms(Programs):
    project_cwd: Path | None
    """Where programs start in a trusted project; None: in a folder of their own."""

    def cwd(self) -> Path:
        """The working directory of programs without a configured `cwd`. Makes the folder if it is missing."""
        if self.project_cwd is not None:
            return self.project_cwd
        # Commands cannot write below our home, unlike in a temporary folder.
        folder = self.home / "codex-py" / "programs"
        try:
            make_private(folder)
        except OSError:
            return Path("/")
        return folder


def user_programs(
    config: Config, environment: Mapping[str, str], add_dirs: Sequence[Path] = ()
) -> UserPrograms:
    """The programs of a session. `add_dirs`: writable folders besides those of the configuration."""
    # In every mode, because the user can change it.
    writable = (*config.sandbox_workspace_write.writable_roots, *(config.cwd / d for d in add_dirs))
    roots = filter(None, (config.project_root, config.layers.project_root))
    found = programs_outside(config.home, environment, config.cwd, *roots, *writable)
    project_cwd = config.cwd if isinstance(config.project_trust, Trusted) else None
    return UserPrograms(found.home, found.user_home, found.folders, project_cwd)


def user_shell(environment: Mapping[str, str]) -> str:
    """The absolute path of the shell for the model's commands.

    `$SHELL`, else the user's login shell, else bash, else `/bin/sh`; the first that is compatible
    with the Bourne shell and executable.
    """
    candidates = [environment.get("SHELL", "")]
    with suppress(KeyError):  # a container may run under a user id that has no entry
        candidates.append(pwd.getpwuid(os.getuid()).pw_shell)
    candidates.append("/bin/bash")
    return next((shell for shell in candidates if _is_usable_shell(shell)), "/bin/sh")


def _is_usable_shell(shell: str) -> bool:
    path = Path(shell)
    return path.is_absolute() and path.name in _SHELLS and os.access(path, os.X_OK)
