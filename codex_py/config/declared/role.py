"""Declares the file of one agent role. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.config.declared.section import Section, key, rest
from codex_py.protocol.approval import SandboxMode


class RoleFile(Section):
    """A TOML file with a role."""

    name: str | None = key()
    description: str | None = key()
    developer_instructions: str | None = key()
    model: str | None = key()
    model_reasoning_effort: str | None = key()
    sandbox_mode: SandboxMode | None = key()
    nickname_candidates: tuple[str, ...] | None = key()
    others: Mapping[str, Any] = rest()
