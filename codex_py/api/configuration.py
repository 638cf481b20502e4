"""The configuration, for a command that an extension adds.

The options of the command are a subclass of `ConfigOptions`, so that it takes `-c KEY=VALUE` as all
commands do. `command_config` reads the configuration of the working folder with them: a file with a
mistake raises a `ConfigError`. `Config.home` is `$CODEX_HOME`, and `Config.cwd` the working folder.

`read_config` reads it with the options of a session. `verifications` lists the scripts that the
configuration requires of a change, whatever extension has them. `unknown_setting` tells that a `KEY=VALUE`
names no setting, and `bad_setting` that its value is of another kind. `amount` reads the value of one of the `LIMITS`,
which are fields of `Budget`. `secret_names` are patterns for the variables that a provider needs.
"""

from codex_py.app.user_programs import secret_names
from codex_py.command_line.configuration import read_config, warn_of_config
from codex_py.command_line.subcommand import ConfigOptions, command_config
from codex_py.config.config import Config
from codex_py.config.declared.claimed import Verification, verifications
from codex_py.config.limits import LIMITS, Budget, amount
from codex_py.config.overrides import bad_setting, unknown_setting
from codex_py.config.paths import codex_home
from codex_py.errors import ConfigError

__all__ = [
    "LIMITS",
    "Budget",
    "Config",
    "ConfigError",
    "ConfigOptions",
    "Verification",
    "amount",
    "bad_setting",
    "codex_home",
    "command_config",
    "read_config",
    "secret_names",
    "unknown_setting",
    "verifications",
    "warn_of_config",
]
