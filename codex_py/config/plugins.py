"""Plugins that `codex-py plugin add` has put into `$CODEX_HOME/codex-py/plugins`. LIGHT.

A plugin is used as the user saw it when it was added, or not at all. What it brings goes the way of what the user
has written: skills, roles, hooks, commands and MCP servers.
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
    """Paths are absolute and in `root`. Texts were checked: use them rather than read the files again."""

    name: str
    """Lower-case letters, digits and `-`. It and a colon stand before the names of its commands and skills."""
    version: str
    description: str
    author: str
    source: str
    """The folder or the address that it was added from."""
    commit: str
    """Empty if it was a folder."""
    root: Path
    skills: Mapping[Path, str]
    """Each is a `SKILL.md`."""
    agents: Mapping[Path, str]
    """Files of roles, Markdown or TOML."""
    commands: Mapping[str, tuple[Path, str]]
    """By name, which is `sub:name` for `commands/sub/name.md`."""
    hooks: Mapping[Path, str]
    """In the form of `hooks.json`."""
    servers: Mapping[str, Mapping[str, Any]]
    """MCP servers, as tables of `config.toml`."""


@frozen
class Plugins:
    found: tuple[Plugin, ...] = ()
    """By name."""
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])
    """A clause for each other one, by name."""

    @property
    def warnings(self) -> list[str]:
        """One sentence each."""
        return [
            f"The plugin {name} is not used: {why}; to use it as it is now, remove it and add it again."
            for name, why in self.unusable.items()
        ]


def plugins_folder(home: Path) -> Path:
    """Holds a folder for each plugin, by its name. `home`: `$CODEX_HOME`."""
    return home / "codex-py" / "plugins"


def plugin_names(home: Path) -> list[str]:
    """The names of the folders of plugins, sorted."""
    try:
        names = sorted(each.name for each in plugins_folder(home).iterdir())
    except OSError:
        return []
    return list(filter(PLUGIN_NAME.fullmatch, names))


def plugin_variables(root: Path) -> dict[str, str]:
    """The environment of the programs of a plugin, besides the usual one. The names are those of Claude and Codex."""
    names = ("CLAUDE_PLUGIN_ROOT", "CODEX_PLUGIN_ROOT", "PLUGIN_ROOT")
    # Byte code in its folder would be a change of the plugin.
    return dict.fromkeys(names, str(root)) | {"PYTHONDONTWRITEBYTECODE": "1"}
