"""Loads a module by name when it is first needed: subcommands, features, formats of patches. LIGHT."""

import signal
import sys
from typing import Any


def load(target: str) -> Any:
    """Import the function, or another value, that `module:name` names.

    Ctrl-C waits for the end of the import: some modules take an exception while they import another
    module for its absence.
    """
    module, _, name = target.partition(":")
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # Not `import_module`: `-X importtime`, which a test reads, does not list its imports.
        __import__(module)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    return getattr(sys.modules[module], name)
