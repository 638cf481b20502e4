"""Describes where a command runs, and finds the programs that its words mean there.

Reads the disk, and starts nothing.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from codex_py.execpolicy.wrappers import SHELLS
from codex_py.programs import find_program

_HARMLESS: Final = frozenset(
    (
        "CODEX_HOME",
        "HOME",
        "OLDPWD",
        "PATH",
        "PWD",
        "TEMP",
        "TMP",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
    )
)
"""Variables that programs load no code through, so that they may name a writable folder. `PATH`
loses its writable folders."""
_LISTS: Final = ("PATH", "LIB", "ENV", "PRELOAD")
"""Endings of variables that list paths, such as `PYTHONPATH`, `PERL5LIB` or `BASH_ENV`."""
_SEPARATORS: Final = re.compile(r"[\s:=,;]")
"""Separates the paths in other variables."""
_HOME_SETTINGS: Final = (
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".gitconfig",
    ".config/git/config",
    ".ssh/config",
)
"""Files in the home that shells, git or ssh read."""
SYSTEM_FOLDERS: Final = (
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
    "/home/linuxbrew/.linuxbrew/bin",
)
"""Folders in which the name of a program can be trusted."""


def is_known_shell(path: str, own_shell: str = "") -> bool:
    """True for an absolute path to a shell of the system, and for the user's own shell.

    Only for these may `-c SCRIPT` be taken as the commands of the script. Any other program with
    such a name may do anything, because the model may have written it.
    """
    folder, _, name = path.rpartition("/")
    is_of_system = folder in SYSTEM_FOLDERS and name in SHELLS
    is_own = path != "" and path == own_shell
    return is_of_system or is_own


@dataclass(frozen=True)
class CommandPlace:
    """Where one command runs, and what the model can change there.

    Create a new one for every command: the model can replace writable paths by links to elsewhere.
    """

    cwd: Path = Path("/")
    environment: Mapping[str, str] | None = None
    """The command's environment. None: bare names mean programs of the system, without a search."""
    workspace: tuple[Path, ...] = ()
    """Absolute folders in which the model's commands and patches can change programs."""
    temporary: tuple[Path, ...] = ()
    """More such folders, for temporary files. Unlike in `workspace`, their `.git` is writable."""
    shell: str = ""
    """The path of the user's own shell."""

    @cached_property
    def writable(self) -> tuple[Path, ...]:
        """The folders that the model can change, with links resolved.

        Found on first use: most commands are decided without them.
        """
        folders = (*self.workspace, *self.temporary)
        real = (Path(os.path.realpath(folder)) for folder in folders)
        return tuple(dict.fromkeys(real))

    @cached_property
    def protected(self) -> tuple[Path, ...]:
        """The `.git` of each workspace, which the sandbox keeps read-only."""
        return tuple(Path(os.path.realpath(root), ".git") for root in self.workspace)

    def program(self, word: str) -> str | None:
        """The absolute path of the program that the first word of a command means.

        None if there is no such program, if the model can change it, or if the model can put
        another program before it on `PATH`.
        """
        if "/" in word:
            path = str(self.cwd / word)
        elif self.environment is None:
            path = f"/usr/bin/{word}"
        else:
            path = self._find(word, self._folders) or ""
            if not path or path != self._find(word, self._safe_folders):
                return None
        if self.can_change(path):
            return None
        return path

    def leads_to_changeable(self, word: str) -> bool:
        """True if the word leads to a program that the model can change.

        The word must not be a shell builtin, such as `cd`.
        """
        if "/" not in word:
            if not self.environment:
                return False
            if self._find(word, self._folders) is None:
                return False
        return self.program(word) is None

    def changeable_program(self, name: str) -> str | None:
        """The program on `PATH` for a bare name, if the model can change it; else None."""
        if "/" in name or not self.leads_to_changeable(name):
            return None
        return self._find(name, self._folders)

    def can_change(self, path: str | Path) -> bool:
        """True if a path, as written or resolved, is in a writable folder. It need not exist."""
        written = Path(os.path.normpath(path))
        resolved = Path(os.path.realpath(path))
        return any(
            written.is_relative_to(root) or resolved.is_relative_to(root)
            for root in self.writable
        )

    def safe_environment(self) -> dict[str, str] | None:
        """The environment without variables through which programs could load code of the model's.

        These are variables that name a folder that the model can write to. None if there is no
        environment.
        """
        if self.environment is None:
            return None
        safe: dict[str, str] = {}
        for name, value in self.environment.items():
            paths = self._named_paths(name, value)
            if name in _HARMLESS or not any(map(self.can_change, paths)):
                safe[name] = value
        safe["PATH"] = os.pathsep.join(self._safe_folders)
        return safe

    @cached_property
    def has_safe_home(self) -> bool:
        """False if the workspace holds one of the `_HOME_SETTINGS`."""
        home = (self.environment or {}).get("HOME")
        if not home:
            return True
        roots = [git.parent for git in self.protected]
        for name in _HOME_SETTINGS:
            path = Path(os.path.realpath(self.cwd / home / name))
            if any(path.is_relative_to(root) for root in roots):
                return False
        return True

    def _named_paths(self, name: str, value: str) -> list[Path]:
        """The paths in a variable from which programs may load code.

        Of a variable that lists paths, these are all parts; of another one, the absolute paths.
        """
        if name.endswith(_LISTS):
            paths = value.split(os.pathsep)
        else:
            parts = _SEPARATORS.split(value)
            paths = [part for part in parts if part.startswith("/")]
        return [self.cwd / path for path in paths]

    @cached_property
    def _folders(self) -> list[str]:
        environment = self.environment or {}
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        # Relative and empty entries are relative to the command's working directory.
        return [str(self.cwd / folder) for folder in folders]

    @cached_property
    def _safe_folders(self) -> list[str]:
        return [folder for folder in self._folders if not self.can_change(folder)]

    def _find(self, name: str, folders: list[str]) -> str | None:
        return find_program(name, os.pathsep.join(folders))


BY_NAME: Final = CommandPlace()
"""A place for decisions that look only at the words."""
