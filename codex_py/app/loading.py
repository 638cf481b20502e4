"""Loads a module by name when it is first needed: subcommands, features, formats of patches. LIGHT."""

import sys
from typing import Any


def load(target: str) -> Any:
    """Import the function, or another value, that `module:name` names."""
    module, _, name = target.partition(":")
    # Not `import_module`: `-X importtime`, which a test reads, does not list its imports.
    __import__(module)
    return getattr(sys.modules[module], name)
