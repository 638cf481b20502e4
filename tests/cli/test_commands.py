import pytest

from codex_py.app.loading import load
from codex_py.cli.commands import COMMANDS, WITHOUT_NAME

TARGETS = sorted(
    {
        target
        for command in (WITHOUT_NAME, *COMMANDS)
        for target in (command.target, *command.members.values())
        if target
    }
)


@pytest.mark.parametrize("target", TARGETS)
def test_every_row_of_the_table_names_a_function(target: str) -> None:
    assert callable(load(target))
