"""The simple commands of a shell script, read with tree-sitter-bash; nothing is expanded or run."""

from collections.abc import Sequence
from typing import TypeAlias

Command: TypeAlias = tuple[str, ...]
"""The words of one simple command, unquoted."""


def plain_commands(argv: Sequence[str]) -> tuple[Command, ...] | None:
    """The commands that `argv` runs, where that can be told for certain; None for anything else."""
    raise NotImplementedError(argv)


def all_commands(argv: Sequence[str]) -> tuple[Command, ...]:
    """Every simple command found anywhere in `argv`."""
    raise NotImplementedError(argv)
