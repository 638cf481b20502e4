"""Paths that stay protected whatever the policy allows.

A module of its own, because patches need nothing else of the policies.
"""

import re
from typing import Final

PROTECTED_NAMES: Final = (".git", ".agents", ".codex", ".claude", ".aws")
"""Entries of a writable root that stay read-only."""

_UNSEEN: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
"""Characters that HFS+ passes over."""

HOME_SETTINGS: Final = (
    "config.toml",
    "hooks.json",
    "hooks",
    "rules",
    "AGENTS.md",
    "AGENTS.override.md",
    "agents",
    "auth.json",
    ".credentials.json",
    "codex-py",
)
"""Entries of `$CODEX_HOME` that later sessions obey. Neither these nor the home itself can be a writable root."""

HOME_SECRETS: Final = (
    "auth.json",
    ".credentials.json",
    "codex-py/mcp-logins",
    "codex-py/journal",
    "codex-py/undo",
)
"""Entries of `$CODEX_HOME` that the sandbox hides from commands, if it can: logins, and the files that `undo` keeps,
with locks that a command could hold so that nothing more is kept."""

HOME_RECORDS: Final = (
    "sessions",
    "archived_sessions",
    "codex-py/best-of",
    "codex-py/imports",
)
"""Hidden too where something is denied: a session before that may have read it."""


def spelt_out(name: str) -> str:
    """The dot name, such as `.git`, that HFS+ or NTFS takes an entry's name for; case is folded.

    The rules are those by which git refuses a `.git`: is_hfs_dotgit in its utf8.c, is_ntfs_dotgit in its path.c.
    """
    name = re.split(r"[:\\]", name.translate(_UNSEEN).casefold(), maxsplit=1)[0].rstrip(
        " ."
    )
    if name.endswith("~1"):
        return f".{name[:-2]}"
    return name
