"""Lists the folders of projects, users and plugins that define skills, roles and commands. LIGHT.

The folders are those of Codex 0.169, of Claude Code and of https://agentskills.io.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.config.config import Config
from codex_py.config.layers import SYSTEM_FOLDER
from codex_py.config.paths import folders_between, user_home
from codex_py.protocol.frozen import frozen

Origin: TypeAlias = Literal["bundled", "plugin", "project", "user", "system"]

_SKILLS: Final = (".codex/skills", ".agents/skills", ".claude/skills")


@frozen
class Folder:
    """A folder with definitions, which need not exist."""

    path: Path
    origin: Origin
    root: Path | None = None
    """The root of the project, which no link may leave; None for a folder of the user or the
    machine."""
    prefix: str = ""
    """A prefix for the names of all definitions in this folder."""
    texts: Mapping[Path, str] | None = field(default=None, compare=False)
    """The checked texts of a plugin's files, which replace the files; None without a plugin."""


def project_folders(
    config: Config,
    *names: str,
    prefix: str = "",
) -> Iterator[Folder]:
    """Yield the folders of these names, from the working directory up to the project's root.

    Args:
        names: paths relative to each folder, such as `.codex/skills`.
    """
    folders = folders_between(config.project_root, config.cwd)
    root = folders[0]
    for folder in reversed(folders):
        for name in names:
            yield Folder(folder / name, "project", root, prefix)


def plugin_folders(config: Config, part: str) -> Iterator[Folder]:
    """Yield the folder of each plugin that has such a part.

    Args:
        part: the attribute of `Plugin` with the texts: `skills` or `agents`.
    """
    for plugin in config.plugins:
        texts = getattr(plugin, part)
        if texts:
            yield Folder(plugin.root, "plugin", plugin.root, f"{plugin.name}:", texts)


def skill_folders(config: Config, environment: Mapping[str, str]) -> list[Folder]:
    """The existing folders of skills; if two skills have one name, the earlier folder wins.

    Skills are text, so an untrusted project's skills are found as well, but they never win.
    """
    user = user_home(environment)
    folders = [
        Folder(config.home / "skills", "user"),
        Folder(user / ".agents" / "skills", "user"),
        Folder(user / ".claude" / "skills", "user"),
    ]
    if config.settings.skills.bundled.enabled is not False:
        folders.append(Folder(config.home / "skills" / ".system", "bundled"))
    folders.append(Folder(SYSTEM_FOLDER / "skills", "system"))
    folders += plugin_folders(config, "skills")
    folders += [Folder(path, "user") for path in config.skill_folders]
    # In the user's home folder, the skills are the user's own.
    own = {user / name for name in _SKILLS}
    found = project_folders(config, *_SKILLS)
    project = [folder for folder in found if folder.path not in own]
    if config.trust == "trusted":
        folders = [*project, *folders]
    else:
        folders = [*folders, *project]
    return [folder for folder in folders if folder.texts or folder.path.is_dir()]


def role_folders(config: Config, environment: Mapping[str, str]) -> list[Folder]:
    """All folders that may have roles, the project's first, even if it is not trusted."""
    return [
        *project_folders(config, ".codex/agents", ".claude/agents"),
        Folder(config.home / "agents", "user"),
        Folder(user_home(environment) / ".claude" / "agents", "user"),
        *plugin_folders(config, "agents"),
    ]
