"""`codex-py features`: the table of Codex 0.171, and the switches in `config.toml`."""

import re
from collections.abc import Mapping, Sequence

from codex_py.command_line.arguments import unknown_feature
from codex_py.command_line.subcommand import command_config, command_parser, required
from codex_py.config.check import lookup
from codex_py.config.config import Config
from codex_py.config.declared.names import feature_lines, feature_names
from codex_py.config.declared.section import raw
from codex_py.config.edit import set_in_config
from codex_py.errors import CodexError
from codex_py.streams.standard import print_out, print_table


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print name, stage and state of each feature. Returns the exit code."""
    options = command_parser().parse_args(list(argv))
    config = command_config(options, environment)
    rows: list[tuple[str, str, str]] = []
    for line in feature_lines():
        cells = re.split(r"  +", line)
        is_row = len(cells) > 1
        if is_row:
            name, stage, default = cells
            state = _state(config, name, default == "true")
            rows.append((name, stage, str(state).lower()))
    return print_table(rows)


def run_enable(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Switch a feature on in the user's file. Returns the exit code."""
    return _switch(argv, environment, "enable", value=True)


def run_disable(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Switch a feature off in the user's file. Returns the exit code."""
    return _switch(argv, environment, "disable", value=False)


def _switch(
    argv: Sequence[str],
    environment: Mapping[str, str],
    command: str,
    *,
    value: bool,
) -> int:
    options = command_parser("name").parse_args(list(argv))
    name = required(options.name, f"feature: codex-py features {command} NAME")
    known = feature_names()
    if name not in known:
        raise CodexError(unknown_feature(name, known), code="feature")
    # Write nothing to a file that cannot be read.
    config = command_config(options, environment, warns=False)
    set_in_config(config.home, ("features", *_switch_key(config, name)), value)
    return print_out(f"{command.capitalize()}d feature `{name}` in config.toml.\n")


def _state(
    config: Config,
    name: str,
    default: bool,
) -> bool:
    """True if the configuration switches the feature on, or says nothing and it is on by
    default."""
    found = lookup(raw(config.features), _switch_key(config, name))
    if found is None:
        return default
    return found


def _switch_key(config: Config, name: str) -> tuple[str, ...]:
    """The key in `[features]` that switches a feature, which may have a table of settings."""
    has_settings = isinstance(raw(config.features).get(name), Mapping)
    if has_settings:
        return name, "enabled"
    return (name,)
