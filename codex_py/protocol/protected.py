"""Paths that stay protected under every policy.

This is a separate module because patches need no other part of the policies.
"""

import re
from typing import Final

PROTECTED_NAMES: Final = (".git", ".agents", ".codex", ".claude", ".aws")
"""Entries of a writable root that stay read-only."""

_UNSEEN: Final = dict.fromkeys(
    [
        *range(0x200C, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x206A, 0x2070),
        0xFEFF,
    ]
)
"""Characters that HFS+ ignores in names."""

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
"""Entries of `$CODEX_HOME` that configure later sessions. Neither they nor the home itself can be a
writable root."""

HOME_SECRETS: Final = (
    "auth.json",
    ".credentials.json",
    "codex-py/mcp-logins",
    "codex-py/journal",
    "codex-py/undo",
)
"""Entries of `$CODEX_HOME` that the sandbox hides from commands, if it can.

They are logins, and the files and locks of `undo`: a command that held such a lock could stop
`undo` from keeping files.
"""

HOME_LOGINS: Final = (
    "auth.json",
    ".credentials.json",
)
"""The files of `$CODEX_HOME` that are logins. Each may be a link to a file elsewhere."""

HOME_LOGIN_PREFIXES: Final = (
    "auth.json",
    ".auth.json",
    ".credentials.json",
    ".part-",
)
"""The beginnings of names in `$CODEX_HOME` that belong to logins: the files, their locks, and parts of
their next contents."""

HOME_RECORDS: Final = (
    "sessions",
    "archived_sessions",
)
"""Entries of `$CODEX_HOME` that are also hidden if the policy denies any path: an earlier session
may have recorded the contents of such a path. `filesystem.private.record_folders` has those of features."""


def spelt_out(name: str) -> str:
    """Return the name that HFS+ or NTFS reads in an entry's name, such as `.git` in `GIT~1`.

    Case is folded. The rules are those by which git refuses a `.git`: is_hfs_dotgit in its utf8.c,
    is_ntfs_dotgit in its path.c.
    """
    folded = name.translate(_UNSEEN).casefold()
    # NTFS ends a name at a colon or a backslash, and drops spaces and dots at its end.
    base = re.split(r"[:\\]", folded, maxsplit=1)[0]
    base = base.rstrip(" .")
    if base.endswith("~1"):
        return f".{base[:-2]}"
    return base
