"""A plugin that was added: what it brings, as texts that were checked. LIGHT."""

import re
from collections.abc import Mapping
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


def plugin_variables(root: Path) -> dict[str, str]:
    """The environment of the programs of a plugin, besides the usual one. The names are those of Claude and Codex."""
    names = ("CLAUDE_PLUGIN_ROOT", "CODEX_PLUGIN_ROOT", "PLUGIN_ROOT")
    # Byte code in its folder would be a change of the plugin.
    return dict.fromkeys(names, str(root)) | {"PYTHONDONTWRITEBYTECODE": "1"}
