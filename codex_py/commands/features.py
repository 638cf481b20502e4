"""`codex-py features`: the table of Codex 0.171, and the switches in `config.toml`."""

from collections.abc import Mapping, Sequence

from codex_py.command_line.arguments import unknown_feature
from codex_py.command_line.subcommand import command_config, command_parser, required
from codex_py.config.declared.names import feature_names
from codex_py.config.edit import set_in_config
from codex_py.config.features import listed_features, switch_key
from codex_py.errors import CodexError
from codex_py.streams.standard import print_out, print_table


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print name, stage and state of each feature. Returns the exit code."""
    options = command_parser().parse_args(list(argv))
    config = command_config(options, environment)
    rows = [
        (feature.name, feature.stage, str(feature.is_on).lower())
        for feature in listed_features(config)
    ]
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
    set_in_config(config.home, ("features", *switch_key(config, name)), value)
    return print_out(f"{command.capitalize()}d feature `{name}` in config.toml.\n")
