"""`codex-py config explain`: where a setting comes from."""

from collections.abc import Mapping

from codex_py.config.explain import explain
from codex_py.config.layers import read_layers
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.command_parser import UsageError
from codex_py.frontends.configuration import config_sources
from codex_py.frontends.streams import print_out


def run_config(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Print the story of a setting; the exit code."""
    words = arguments.words[1:]
    if len(words) != 2 or words[0] != "explain":
        raise UsageError("say which setting: codex-py config explain KEY")
    text = explain(words[1], read_layers(**config_sources(arguments, environment)))
    return print_out(f"{text}\n")
