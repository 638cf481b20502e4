"""Finds the programs that we start for the user, such as MCP servers, git or an editor, and their working directory.

A repository can hold a program of any name, and modules that an interpreter loads from its working directory.
The user's configuration means neither by `npx` or `python -m server`. LIGHT.
"""

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.config.config import Config
from codex_py.config.paths import user_home
from codex_py.config.project_trust import Trusted, main_work_tree
from codex_py.filesystem.own import make_private
from codex_py.programs import find_program, safe_search_path
from codex_py.protocol.frozen import frozen


@frozen
class UserPrograms:
    home: Path
    """`$CODEX_HOME`."""
    project_cwd: Path | None
    """Where programs start in a trusted project; None: in a folder of their own."""
    barred: tuple[Path, ...]
    """Folders that are not searched: the project, and folders that the model may write to."""

    def find(self, name: str, environment: Mapping[str, str]) -> str:
        """The absolute path of a program; a path is returned unchanged.

        Raises:
            FileNotFoundError: there is no such program; `strerror` says why.
        """
        if "/" in name:
            return name
        search_path = environment.get("PATH", os.defpath)
        found = find_program(name, search_path, self.barred)
        if found is not None:
            return found
        inside = shutil.which(name, path=search_path)
        why = os.strerror(errno.ENOENT)
        if inside is not None:
            why = f"it was found only inside the project or a writable folder; to allow it, configure its path, {inside}"
        raise FileNotFoundError(errno.ENOENT, why, name)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Remove the barred folders from `PATH`, on which scripts find their interpreters."""
        if "PATH" not in environment:
            return dict(environment)
        return {**environment, "PATH": safe_search_path(environment["PATH"], self.barred)}

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
    policy = config.sandbox_policy(add_dirs)
    root = config.project_root or config.cwd
    # In a worktree, the tree that it was made from is the project too.
    roots = [root, main_work_tree(root), config.layers.project_root]
    folders = [config.cwd, *filter(None, roots)]
    # In every mode, because the user can change it.
    folders += [*config.sandbox_workspace_write.writable_roots, *(config.cwd / d for d in add_dirs)]
    if policy.mode == "workspace-write" and not policy.exclude_slash_tmp:
        folders.append(Path("/tmp"))
    # If the project is the home or `/`, the user's own programs are in it.
    home = user_home(environment).resolve()
    return UserPrograms(
        home=config.home,
        project_cwd=config.cwd if isinstance(config.project_trust, Trusted) else None,
        barred=tuple(folder for folder in folders if not home.is_relative_to(folder.resolve())),
    )
