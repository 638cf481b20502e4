"""Options of `codex-py exec` that a package adds.

The package names each option, without its dashes, in its `pyproject.toml`:

    [project.entry-points."codex_py.options"]
    shout-words = "codex_py_shout:ShoutOptions"

The value is a class whose fields declare options in their annotations, `shout-words` among them. An
instance of it makes the feature that the options are for. The class is imported when a command line
has the option, and by nothing else. An option of the program itself cannot be replaced.
"""

from typing import Protocol

from codex_py.command_line.parser import OneOf, flag, option
from codex_py.errors import CodexError, UsageError
from codex_py.protocol.extension import Extension, Feature, Thread, TurnStop
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note

__all__ = [
    "CodexError",
    "Extension",
    "Feature",
    "Note",
    "OneOf",
    "Options",
    "Thread",
    "TurnStop",
    "UsageError",
    "flag",
    "frozen",
    "option",
]


class Options(Protocol):
    """The options of a package that are on a command line."""

    def feature(self) -> Feature:
        """Make the feature of the session, before the session is opened.

        Raises:
            UsageError: the options contradict each other.
        """
        ...
