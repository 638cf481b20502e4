"""The version of the program, which the packaging reads here."""

__version__ = "0.1.0"
