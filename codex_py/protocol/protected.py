"""What nobody may write, whatever else is open to them.

A module of its own, as a patch needs no more of policies than this.
"""

from typing import Final

PROTECTED_NAMES: Final = (".git", ".agents", ".codex", ".aws")
"""Entries of a writable root that stay read-only."""
