"""`codex-py demo`: the one command that runs another one."""

from collections.abc import Mapping

from codex_py.cli.main import run
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.demo.run import play_demo


def run_demo(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """See `play_demo`."""
    return play_demo(arguments, environment, run)
