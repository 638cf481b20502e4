"""What nobody may write, whatever else is open to them.

A module of its own, as a patch needs no more of policies than this.
"""

from typing import Final

PROTECTED_NAMES: Final = (".git", ".agents", ".codex", ".aws")
"""Entries of a writable root that stay read-only."""

HOME_SETTINGS: Final = (
    *("config.toml", "hooks.json", "hooks", "rules", "AGENTS.md", "AGENTS.override.md"),
    *("auth.json", ".credentials.json", "codex-py"),
)
"""Entries of `$CODEX_HOME` that later sessions obey. Neither these nor the home itself can be a writable root."""

HOME_SECRETS: Final = ("auth.json", ".credentials.json", "codex-py/mcp-logins", "codex-py/journal")
"""What in `$CODEX_HOME` commands cannot read, where a sandbox can hide it: logins, and the files that patches
replaced, with the lock that all sessions take."""
