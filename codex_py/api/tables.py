"""Tables of the configuration that an extension claims.

The package names each table in its `pyproject.toml`:

    [project.entry-points."codex_py.tables"]
    shout = "codex_py_shout.table:ShoutTable"

The value is a subclass of `ClaimedTable` that declares the keys of `[shout]`. They are checked as
those of the program are: a wrong value stops the start, an unknown key is told. The table may make a
feature of each session. Its `check` sees all layers of the configuration, where the values of weaker
layers may count as well. A table about scripts that must succeed returns them as its `Verification`, so
that a feature that tests a change again can run them. `seconds_of_key` reads a time such as `30m`. A
command gets the table of a `Config` by `ShoutTable.of(config)`.

The class is imported when a file has the table, and by nothing else. A key of the program itself
cannot be replaced.
"""

from codex_py.app.options import SessionSetup
from codex_py.config.declared.claimed import ClaimedTable, Verification
from codex_py.config.declared.kinds import Count, Limit, Positive, Secret, Variable
from codex_py.config.declared.section import (
    Section,
    is_set,
    key,
    no_effect,
    raw,
    rest,
    table,
)
from codex_py.config.layers import Layers
from codex_py.config.limits import seconds_of_key
from codex_py.errors import CodexError, ConfigError
from codex_py.protocol.extension import Extension, Feature, Thread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.place import Place

__all__ = [
    "ClaimedTable",
    "CodexError",
    "ConfigError",
    "Count",
    "Extension",
    "Feature",
    "Layers",
    "Limit",
    "Place",
    "Positive",
    "Secret",
    "Section",
    "SessionSetup",
    "Thread",
    "Variable",
    "Verification",
    "frozen",
    "is_set",
    "key",
    "no_effect",
    "raw",
    "rest",
    "seconds_of_key",
    "table",
]
