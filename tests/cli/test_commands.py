import pytest

from codex_py.app.loading import load
from codex_py.cli.commands import COMMANDS

TARGETS = sorted(
    {
        target
        for command in COMMANDS
        for target in (command.target, *command.members.values())
        if target
    }
)


@pytest.mark.parametrize("target", TARGETS)
def test_every_row_of_the_table_names_a_function(target: str) -> None:
    assert callable(load(f"codex_py.{target}"))
