"""The configuration, for a command that an extension adds.

The options of the command are a subclass of `ConfigOptions`, so that it takes `-c KEY=VALUE` as all
commands do. `command_config` reads the configuration of the working folder with them: a file with a
mistake raises a `ConfigError`. `Config.home` is `$CODEX_HOME`, and `Config.cwd` the working folder.
"""

from codex_py.command_line.subcommand import ConfigOptions, command_config
from codex_py.config.config import Config
from codex_py.config.paths import codex_home
from codex_py.errors import ConfigError

__all__ = [
    "Config",
    "ConfigError",
    "ConfigOptions",
    "codex_home",
    "command_config",
]
