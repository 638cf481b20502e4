"""Holds the version of the program, which the packaging reads here."""

__version__ = "0.1.0"

DISTRIBUTION = "codex-py-agent"
"""The name of the package in an index: `codex-py` is too similar to an existing name."""
