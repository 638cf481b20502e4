"""Hooks: programs and MCP tools of the user that run at certain events of a session, and may decide what happens.
LIGHT."""

from codex_py.app.features.hooks.feature import HooksFeature

__all__ = ["HooksFeature"]
