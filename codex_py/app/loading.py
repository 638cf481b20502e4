"""Loads modules by name when they are first needed, such as subcommands and features. LIGHT."""

import signal
import sys
from typing import Any


def load(target: str) -> Any:
    """Import the function, or another value, that `module:name` names.

    Ctrl-C takes effect after the import. During it, an exception could be mistaken: some modules
    catch everything while they import another module, and conclude that it is not installed.
    """
    module, _, name = target.partition(":")
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # `import_module` would hide the module from `-X importtime`, whose list a test reads.
        __import__(module)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    return getattr(sys.modules[module], name)
