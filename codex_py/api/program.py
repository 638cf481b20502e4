"""The program itself: its version, and the name of its package in an index."""

from codex_py.version import DISTRIBUTION, __version__

__all__ = ["DISTRIBUTION", "__version__"]
