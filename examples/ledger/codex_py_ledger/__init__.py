"""A ledger of what the turns of `codex-py` have called."""
