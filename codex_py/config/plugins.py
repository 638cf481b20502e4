"""Finds the plugins that `codex-py plugin add` has put into `$CODEX_HOME/codex-py/plugins`. LIGHT.

A plugin is used as the user saw it when it was added, or not at all. What it brings goes the way of what the user
has written: skills, roles, hooks, commands and MCP servers.
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from codex_py.config.plugin import PLUGIN_NAME, Plugin
from codex_py.protocol.frozen import frozen


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


def find_plugins(home: Path) -> Plugins:
    """The plugins, all files of which are checked now."""
    try:
        names = sorted(each.name for each in plugins_folder(home).iterdir())
    except OSError:
        names = []
    names = list(filter(PLUGIN_NAME.fullmatch, names))
    if not names:
        return Plugins()
    # 4 ms, which only a plugin costs.
    from codex_py.config.plugin_files import installed_plugin  # noqa: PLC0415

    found: list[Plugin] = []
    unusable: dict[str, str] = {}
    for name in names:
        try:
            found.append(installed_plugin(plugins_folder(home) / name))
        except ValueError as error:
            unusable[name] = str(error)
    return Plugins(tuple(found), unusable)
