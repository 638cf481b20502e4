"""The table of commands, and those that the folders of `codex_py/extensions` add to it.

Also tests `command_line/subcommand.py`.
"""

import re
from collections.abc import Iterator

import pytest

from codex_py.api.commands import Command as AddedCommand
from codex_py.app.loading import load
from codex_py.cli.commands import COMMANDS, Command
from codex_py.cli.help_pages import help_text
from codex_py.cli.main import run
from codex_py.cli.package_commands import package_command
from codex_py.command_line.parser import CommandParser, HelpRequested
from codex_py.errors import UsageError
from codex_py.registry import COMMANDS as EXTENSION_COMMANDS
from codex_py.registry import own_points

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
ADDED = [point.name for point in own_points(EXTENSION_COMMANDS)]
"""The commands of the folders, and the members that they add to groups: `GROUP.MEMBER`."""
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


@pytest.mark.parametrize("target", TARGETS)
def test_every_row_of_the_table_names_a_function(target: str) -> None:
    assert callable(load(target))


def test_the_list_of_commands_has_every_command_in_the_order_of_the_table() -> None:
    listed = re.search(r"^Commands:\n(.*?)^$", help_text(""), re.MULTILINE | re.DOTALL)
    assert listed is not None
    calls = [line.split("  ")[1] for line in listed[1].splitlines()]
    assert [re.match(r"[a-z-]+(, [a-z]+)*", call)[0] for call in calls] == [  # pyright: ignore[reportOptionalSubscript]
        *(row.called for row in COMMANDS),
        *(name for name in ADDED if "." not in name),
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
    assert accepted - named - OF_ALL == set()


@pytest.mark.parametrize("name", [name for name in ADDED if "." not in name])
def test_the_help_of_an_added_command_names_its_options_and_no_other(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"], {}) == 0
    assert f"\n  {name} " in help_text("")
    text = capfd.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    named = set(_options(text))
    parsers = list(_parsers_of(_added(name)))
    accepted = {
        option for parser in parsers for option in _options(parser.format_help())
    }
    assert named - accepted == set()
    assert accepted - named - OF_ALL == set()


@pytest.mark.parametrize("name", [name for name in ADDED if "." in name])
def test_an_added_member_without_a_help_stands_in_that_of_its_group(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    group, _, member = name.partition(".")
    assert run([group, member, "--help"], {}) == 0
    text = _added(name).help_text() or help_text(group)
    assert capfd.readouterr() == (text, "")
    assert f"\n  {member} " in help_text(group)


def _added(name: str) -> AddedCommand:
    command = package_command(name)
    assert command is not None
    return command


def _parsers_of(command: AddedCommand) -> Iterator[CommandParser]:
    for member in command.members.values():
        yield from _parsers_of(member)
    if command.options is not None:
        yield CommandParser(command.options)


def _parsers(row: Command) -> Iterator[CommandParser]:
    for name in ADDED:
        if name.startswith(f"{row.names[0]}."):
            yield from _parsers_of(_added(name))
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
