"""Loading by name, for tables of which one run needs few rows: subcommands, formats of patches."""

import sys
from typing import Any


def load(target: str) -> Any:
    """The function, or another value, that `module:name` names."""
    module, _, name = target.partition(":")
    # Not `import_module`: `-X importtime`, by which start-up is tested, does not list what that loads.
    __import__(module)
    return getattr(sys.modules[module], name)
