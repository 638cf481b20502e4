"""Features of sessions that a package adds, and the keys of their settings.

The package names each feature in its `pyproject.toml`:

    [project.entry-points."codex_py.extensions"]
    shout = "codex_py_shout:feature"

The value is called with the table `[extensions.shout]` of the user's configuration, and returns a
`Feature`. Instead of a function, it may be a subclass of `Section` that declares the keys of the
table: then they are checked as those of the program are, and its method `feature(setup)` makes
the feature from the `SessionSetup`.
"""

from codex_py.app.options import SessionSetup
from codex_py.config.declared.kinds import Count, Limit, Positive, Secret, Variable
from codex_py.config.declared.section import Section, key, rest, table
from codex_py.errors import CodexError, ConfigError, ExitCode
from codex_py.protocol.extension import (
    Compaction,
    Extension,
    Feature,
    OfferedTool,
    Thread,
    TurnStart,
    TurnStop,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note, UserPrompt

__all__ = [
    "CodexError",
    "Compaction",
    "ConfigError",
    "Count",
    "ExitCode",
    "Extension",
    "Feature",
    "Limit",
    "Note",
    "OfferedTool",
    "Positive",
    "Secret",
    "Section",
    "SessionSetup",
    "Thread",
    "TurnStart",
    "TurnStop",
    "UserPrompt",
    "Variable",
    "frozen",
    "key",
    "rest",
    "table",
]
