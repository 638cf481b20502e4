"""Options of the command line that an extension adds to the commands of a session.

The package names each option, without its dashes, in its `pyproject.toml`:

    [project.entry-points."codex_py.options"]
    shout-words = "codex_py_shout:ShoutOptions"

The value is a subclass of `Options` whose attributes declare options in their annotations,
`shout-words` among them. The class is imported when a command line has the option, and by nothing
else. An option of the program itself cannot be replaced.

A package adds a value to `--fail-on` as well:

    [project.entry-points."codex_py.failures"]
    shouting = "codex_py_shout:FailOnOptions"

With `--fail-on shouting`, the subclass of `Options` gets `fail_on=("shouting",)`: all of the words that
name it. The `turn_facts` of its feature set the exit code.

One extension can take values of `--deny` for an option of its own; a folder goes before a package. Its
function is named by the option:

    [project.entry-points."codex_py.option_values"]
    deny = "codex_py_shout:denied_shout"

It gets each value, and returns the word to read in its place, such as `--deny-shout=VALUE`, or None.
"""

from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.app.session import TurnResult
from codex_py.command_line.arguments import (
    Arguments,
    given_options,
    option_words,
    unshared_options,
)
from codex_py.command_line.continuing import continuing_words
from codex_py.command_line.options import EXEC, SESSIONS, Options
from codex_py.command_line.parser import (
    OneOf,
    count,
    flag,
    not_empty,
    option,
    working_folder,
)
from codex_py.command_line.parsing import parse_arguments
from codex_py.command_line.target import SessionTarget, exec_target, terminal_target
from codex_py.config.config import Config
from codex_py.config.limits import seconds
from codex_py.errors import CodexError, ConfigError, OptionError, UsageError
from codex_py.protocol.approval import Approver
from codex_py.protocol.extension import (
    Extension,
    Feature,
    Thread,
    TurnStart,
    TurnStop,
)
from codex_py.protocol.place import Place
from codex_py.protocol.prompts import Note

__all__ = [
    "EXEC",
    "SESSIONS",
    "Approver",
    "Arguments",
    "CodexError",
    "Config",
    "ConfigError",
    "Extension",
    "Feature",
    "Note",
    "OneOf",
    "OptionError",
    "Options",
    "Place",
    "SessionOptions",
    "SessionSetup",
    "SessionTarget",
    "Thread",
    "TurnResult",
    "TurnStart",
    "TurnStop",
    "UsageError",
    "continuing_words",
    "count",
    "exec_target",
    "flag",
    "given_options",
    "not_empty",
    "option",
    "option_words",
    "parse_arguments",
    "seconds",
    "terminal_target",
    "unshared_options",
    "working_folder",
]
