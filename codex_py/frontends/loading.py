"""Loading by name, for tables whose rows must not all be imported: subcommands, formats of patches."""

from importlib import import_module
from typing import Any


def load(target: str) -> Any:
    """The function, or another value, that `module:name` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
