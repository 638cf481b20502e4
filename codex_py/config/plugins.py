"""Describes the plugins in `$CODEX_HOME/codex-py/plugins`, and lists their names. LIGHT.

`codex-py plugin add` puts them there. A plugin is used only in the form that the user saw when
adding it. Its skills, roles, hooks, commands and MCP servers are treated as those that the user has
written.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.frozen import frozen

PLUGIN_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@frozen
class Plugin:
    """A plugin. Paths are absolute and in `root`. The texts were checked; do not read the files."""

    name: str
    """Lower-case letters, digits and `-`. With a colon, it is the prefix of the names of its
    commands and skills."""
    version: str
    description: str
    author: str
    source: str
    """The folder or the address that the plugin was added from."""
    commit: str
    """The commit of the source; empty if the source was a folder."""
    root: Path
    skills: Mapping[Path, str]
    """The text of each `SKILL.md`."""
    agents: Mapping[Path, str]
    """The text of each file of a role, Markdown or TOML."""
    commands: Mapping[str, tuple[Path, str]]
    """The path and text of each command, by its name, which is `sub:name` for
    `commands/sub/name.md`."""
    hooks: Mapping[Path, str]
    """The texts of files in the form of `hooks.json`."""
    servers: Mapping[str, Mapping[str, Any]]
    """MCP servers, as tables of `config.toml`."""


@frozen
class Plugins:
    found: tuple[Plugin, ...] = ()
    """The usable plugins, sorted by name."""
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])
    """The reason why another plugin cannot be used, as a clause, by its name."""

    @property
    def warnings(self) -> list[str]:
        """One sentence for each unusable plugin."""
        return [
            f"The plugin {name} is not used: {why}; to use it as it is now, remove it and add it again."
            for name, why in self.unusable.items()
        ]


def plugins_folder(home: Path) -> Path:
    """The folder of all plugins, each in a subfolder of its name. `home`: `$CODEX_HOME`."""
    return home / "codex-py" / "plugins"


def plugin_names(home: Path) -> list[str]:
    """The sorted names of the folders in the folder of plugins."""
    try:
        names = sorted(each.name for each in plugins_folder(home).iterdir())
    except OSError:
        return []
    return list(filter(PLUGIN_NAME.fullmatch, names))


def plugin_variables(root: Path) -> dict[str, str]:
    """Return further variables for a plugin's programs, by their names in Claude Code and Codex."""
    names = ("CLAUDE_PLUGIN_ROOT", "CODEX_PLUGIN_ROOT", "PLUGIN_ROOT")
    # Byte code in the plugin's folder would count as a change of the plugin.
    return dict.fromkeys(names, str(root)) | {"PYTHONDONTWRITEBYTECODE": "1"}
