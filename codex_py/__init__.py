"""A streaming coding agent for the terminal and for CI, and the library it is made of."""

__version__ = "0.1.0"
