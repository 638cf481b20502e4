"""Declares the JSON files with hooks. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.config.declared.features import HookGroup
from codex_py.config.declared.names import hook_events
from codex_py.config.declared.section import Section, key, rest, table


class DocumentedHooks(Section):
    """The groups of hooks by event."""

    events: Mapping[str, tuple[HookGroup, ...]] = rest(names=hook_events)
    others: Mapping[str, Any] = rest()


class HookDocument(Section):
    """`hooks.json`."""

    description: Any = key()
    hooks: DocumentedHooks = table()


class ClaudeSettings(Section):
    """`settings.json` of Claude Code, with any other settings."""

    description: Any = key()
    hooks: DocumentedHooks = table()
    others: Mapping[str, Any] = rest()
