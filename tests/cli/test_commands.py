"""Also tests `command_line/subcommand.py`."""

import re
from collections.abc import Iterator

import pytest

from codex_py.app.loading import load
from codex_py.cli.commands import COMMANDS, Command, help_text
from codex_py.cli.main import run
from codex_py.command_line.parser import CommandParser, HelpRequested
from codex_py.errors import UsageError

TARGETS = sorted(
    {
        command.target(member)
        for command in COMMANDS
        for member in command.members or [""]
    }
)
OWN_OPTIONS = [row for row in COMMANDS if row.own_options and row.names[0] != "help"]
WORDS = [
    [row.names[0], *member]
    for row in COMMANDS
    for member in ([[m] for m in row.members] or [[]])
]
OF_ALL = {
    "-h",
    "--help",
    "-c",
    "--config",
    "--enable",
    "--disable",
    "--search",
    "--tool-choice",
}
"""Options of every command, which some help texts leave out."""
REFUSED = {"--with-access-token", "--device-auth"}


@pytest.mark.parametrize("target", TARGETS)
def test_every_row_of_the_table_names_a_function(target: str) -> None:
    assert callable(load(target))


def test_the_list_of_commands_has_every_command_in_the_order_of_the_table() -> None:
    listed = re.search(r"^Commands:\n(.*?)^$", help_text(""), re.MULTILINE | re.DOTALL)
    assert listed is not None
    calls = [line.split("  ")[1] for line in listed[1].splitlines()]
    assert [re.match(r"[a-z-]+(, [a-z]+)*", call)[0] for call in calls] == [  # pyright: ignore[reportOptionalSubscript]
        row.called for row in COMMANDS
    ]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_command_prints_its_help(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--help"], {}) == 0
    assert capfd.readouterr() == (help_text(words[0]), "")


@pytest.mark.parametrize(
    "words", [words for words in WORDS if words != ["help"]], ids=" ".join
)
def test_a_misspelt_option_is_told_with_the_one_that_was_meant(
    words: list[str],
) -> None:
    with pytest.raises(UsageError) as caught:
        run([*words, "--hepl"], {})
    assert str(caught.value) == "unknown option --hepl. Did you mean --help?"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("row", OWN_OPTIONS, ids=lambda row: row.names[0])
def test_the_help_names_every_option_and_no_other(row: Command) -> None:
    name = row.names[0]
    accepted = {
        option for parser in _parsers(row) for option in _options(parser.format_help())
    }
    named = set(_options(help_text(name)))
    assert named - accepted == set()
    assert accepted - named - OF_ALL - REFUSED == set()


def _parsers(row: Command) -> Iterator[CommandParser]:
    for member in row.members or [""]:
        with pytest.raises(HelpRequested) as caught:
            load(row.target(member))(["--help"], {})
        assert isinstance(caught.value.parser, CommandParser)
        yield caught.value.parser


def _options(text: str) -> list[str]:
    # `codex-py`, and the shell in an example.
    return [
        o
        for o in re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", text)
        if o not in {"-py", "-lc"}
    ]
