"""Paths that stay protected whatever the policy allows.

A module of its own, because patches need nothing else of the policies.
"""

from typing import Final

PROTECTED_NAMES: Final = (".git", ".agents", ".codex", ".claude", ".aws")
"""Entries of a writable root that stay read-only."""

HOME_SETTINGS: Final = (
    *("config.toml", "hooks.json", "hooks", "rules", "AGENTS.md", "AGENTS.override.md", "agents"),
    *("auth.json", ".credentials.json", "codex-py"),
)
"""Entries of `$CODEX_HOME` that later sessions obey. Neither these nor the home itself can be a writable root."""

HOME_SECRETS: Final = (
    *("auth.json", ".credentials.json", "codex-py/mcp-logins"),
    *("codex-py/journal", "codex-py/undo"),
)
"""Entries of `$CODEX_HOME` that the sandbox hides from commands, if it can: logins, and the files that `undo` keeps, with
locks that a command could hold so that nothing more is kept."""
