"""Where a command runs, and which programs its words lead to there. Looks at the disk, and starts nothing."""

import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from codex_py.execpolicy.wrappers import SHELLS

SYSTEM_FOLDERS: Final = (
    *("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"),
    *("/run/current-system/sw/bin", "/home/linuxbrew/.linuxbrew/bin"),
)
"""Where programs are what their names say."""


def is_known_shell(path: str, own_shell: str = "") -> bool:
    """True for an absolute path to a shell of the system, and for the user's own shell.

    Only their `-c SCRIPT` may be taken for the commands of the script. Any other program of such a name can
    do as it likes, because the model may have written it.
    """
    folder, _, name = path.rpartition("/")
    return (folder in SYSTEM_FOLDERS and name in SHELLS) or (bool(path) and path == own_shell)


@dataclass(frozen=True)
class Place:
    """Made anew for every command: what the model can write, it can also replace by a link to elsewhere."""

    cwd: Path = Path("/")
    search_path: str | None = None
    """`$PATH`. None: nothing is looked up, and every bare name is the program of the system."""
    writable: tuple[Path, ...] = ()
    """Folders, absolute and without links, in which the model's commands and patches can change programs."""
    protected: tuple[Path, ...] = ()
    """The `.git` of those folders that the sandbox keeps read-only."""
    shell: str = ""
    """Path of the user's own shell."""

    def program(self, word: str) -> str | None:
        """The absolute path of the program that the first word of a command means.

        None where there is no such program, or where the model can change it or put another one before it.
        """
        if "/" in word:
            path = str(self.cwd / word)
        elif self.search_path is None:
            path = f"/usr/bin/{word}"
        else:
            path = self._find(word, self._folders) or ""
            if not path or path != self._find(word, self._safe_folders):
                return None
        return None if self.can_change(path) else path

    def trusts_shell(self, word: str) -> bool:
        path = self.program(word)
        return path is not None and is_known_shell(path, self.shell)

    def can_change(self, path: str | Path) -> bool:
        """True if a path, as written or where its links lead, is in a writable folder. It need not exist."""
        ways = (Path(os.path.normpath(path)), Path(os.path.realpath(path)))
        return any(way.is_relative_to(root) for way in ways for root in self.writable)

    def safe_search_path(self) -> str | None:
        """`$PATH` without the folders in which the model can put a program."""
        return None if self.search_path is None else os.pathsep.join(self._safe_folders)

    @cached_property
    def _folders(self) -> list[str]:
        # A command looks up relative ones, and empty ones, from its own working directory.
        folders = (self.search_path or "").split(os.pathsep)
        return [str(self.cwd / folder) for folder in folders]

    @cached_property
    def _safe_folders(self) -> list[str]:
        return [folder for folder in self._folders if not self.can_change(folder)]

    def _find(self, name: str, folders: list[str]) -> str | None:
        return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


BY_NAME: Final = Place()
"""Judges the words alone."""
