"""What the SDK logs is for nobody: it is raised too, and may quote what is secret."""

import logging


def keep_sdk_quiet() -> None:
    """Without a handler, warnings and errors of a library end on stderr."""
    for name in ("client", "mcp"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.propagate = False
