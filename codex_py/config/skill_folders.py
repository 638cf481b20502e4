"""The folders that are searched for skills: those of Codex 0.169, of Claude Code and of https://agentskills.io. LIGHT."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.config.config import Config
from codex_py.config.layers import SYSTEM_FOLDER
from codex_py.config.paths import folders_between, user_home
from codex_py.config.plugin import Plugin
from codex_py.protocol.frozen import frozen

Origin: TypeAlias = Literal["bundled", "plugin", "project", "user", "system"]

_PROJECT: Final = (".codex/skills", ".agents/skills", ".claude/skills")


@frozen
class SkillFolder:
    path: Path
    origin: Origin
    root: Path | None = None
    """The root of the project, out of which no link may lead; None for a folder of the user or of the machine."""
    plugin: Plugin | None = field(default=None, compare=False)
    """The one whose skills are taken, instead of those in the folder."""


def skill_folders(config: Config, environment: Mapping[str, str]) -> list[SkillFolder]:
    """The folders that exist; if two skills have one name, that of the first folder wins.

    Skills are text: those of a project that is not trusted are found as well, but never win.
    """
    user = user_home(environment)
    folders = folders_between(config.project_root, config.cwd)
    # In the home folder of the user, they are the user's own.
    project = [
        SkillFolder(folder / name, "project", folders[0])
        for folder in reversed(folders)
        if folder != user
        for name in _PROJECT
    ]
    own = [
        SkillFolder(config.home / "skills", "user"),
        SkillFolder(user / ".agents" / "skills", "user"),
        SkillFolder(user / ".claude" / "skills", "user"),
        SkillFolder(SYSTEM_FOLDER / "skills", "system"),
    ]
    if config.values.get("skills", {}).get("bundled", {}).get("enabled") is not False:
        own.insert(3, SkillFolder(config.home / "skills" / ".system", "bundled"))
    own += [
        SkillFolder(each.root, "plugin", each.root, each) for each in config.plugins if each.skills
    ]
    ordered = [*project, *own] if config.trust == "trusted" else [*own, *project]
    return [folder for folder in ordered if folder.plugin or folder.path.is_dir()]
