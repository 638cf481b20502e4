"""Declares the files of a plugin. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.config.declared.section import Section, key, rest, table


class Author(Section):
    """The author in `plugin.json`."""

    name: str | None = key()
    others: Mapping[str, Any] = rest()


class Manifest(Section):
    """`plugin.json`."""

    name: str | None = key()
    version: str | None = key()
    description: str | None = key()
    author: str | Author | None = key()
    skills: str | tuple[str, ...] | None = key()
    agents: str | tuple[str, ...] | None = key()
    commands: str | tuple[str, ...] | None = key()
    hooks: str | tuple[str, ...] | Mapping[str, Any] | None = key()
    mcp_servers: str | tuple[str, ...] | Mapping[str, Mapping[str, Any]] | None = key(
        name="mcpServers"
    )
    others: Mapping[str, Any] = rest()


class PluginRecord(Section):
    """The record that is written beside the files of an added plugin."""

    files: Mapping[str, str] = table()
    source: str | None = key()
    commit: str | None = key()
