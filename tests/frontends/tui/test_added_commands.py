"""Slash commands that installed packages add, as `docs/extensions.md` shows one.

Tests `frontends/tui/commands/added.py`, `app/slash_commands.py` and `api/slash_commands.py`.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.registry import SLASH_COMMANDS
from tests.frontends.tui.terminals import IDLE, starting
from tests.frontends.tui.test_approval import says
from tests.support.packages import (
    install_package,
    shown_block,
    shown_points,
)
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

OTHERS = """
from codex_py.api.slash_commands import CodexError, SlashCommand

async def fails(terminal, argument):
    raise SystemExit("enough")

async def refuses(terminal, argument):
    raise CodexError("not today")

async def sends(terminal, argument):
    terminal.show("one\\x1b[31m\\ntwo")
    terminal.send(f"Say {argument}.")

def plain(terminal, argument):
    pass

bug = SlashCommand(fails)
refusing = SlashCommand(refuses, "refuse\\neverything", while_working=False)
sending = SlashCommand(sends, "send a prompt", "WORD")
ordinary = SlashCommand(plain)
text = "no command"
"""
POINTS = {
    "bug": "codex_py_others:bug",
    "refusing": "codex_py_others:refusing",
    "sending": "codex_py_others:sending",
    "ordinary": "codex_py_others:ordinary",
    "wordy": "codex_py_others:text",
    "absent": "codex_py_others:absent",
    "retry": "codex_py_others:text",
    "Loud": "codex_py_others:bug",
}

Begin: TypeAlias = Callable[[ScriptedServer], PtyProgram]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return tmp_path / "packages"


@pytest.fixture
def begin(place: Workplace, packages: Path) -> Generator[Begin]:
    with starting(place, packages) as start:

        def begin(server: ScriptedServer) -> PtyProgram:
            program = start(server, columns=120, rows=50)
            program.wait_for(IDLE)
            return program

        yield begin


def install_others(packages: Path) -> None:
    install_package(packages, "codex_py_others", OTHERS, {SLASH_COMMANDS: POINTS})


def run(program: PtyProgram, line: str) -> None:
    # With a blank, nothing is completed.
    program.type(f"{line} ")
    program.wait_for(f"\u203a {line}")
    program.press("enter")


def test_the_command_of_the_documentation_runs(
    begin: Begin, place: Workplace, packages: Path
) -> None:
    module = shown_block("import SlashCommand, Terminal")
    points = shown_points(SLASH_COMMANDS)
    install_package(packages, "codex_py_longest", module, {SLASH_COMMANDS: points})
    with ScriptedServer([says("Hello."), says("Hello again.")]) as server:
        program = begin(server)
        program.type("/lon")
        program.wait_for("/longest FILE")
        program.wait_for("write the longest answer to a file")
        program.press("enter")
        program.wait_for("\u203a /longest\n")
        program.press("enter")
        program.wait_for("say which file: /longest FILE")
        program.press("c-c")
        run(program, "/longest out.txt")
        program.wait_for("There is no answer yet.")
        for prompt, answer in (("One?", "Hello."), ("Two?", "Hello again.")):
            program.type(f"{prompt}\r")
            program.wait_for(answer)
            program.wait_until(lambda: program.title == "work")
        out = place.cwd / "out.txt"
        out.write_text("mine", encoding="utf-8")
        run(program, "/longest out.txt")
        program.wait_for("Replace out.txt?")
        program.press("enter")
        program.wait_until(lambda: "Replace out.txt?" not in program.text)
        assert out.read_text(encoding="utf-8") == "mine"
        run(program, "/longest out.txt")
        program.wait_for("Replace out.txt?")
        program.press("up", "enter")
        program.wait_for("The longest answer was written to out.txt.")
        assert out.read_text(encoding="utf-8") == "Hello again."


def test_a_broken_package_costs_a_sentence_and_not_the_terminal(
    begin: Begin, packages: Path
) -> None:
    install_others(packages)
    with ScriptedServer([says("Word.")]) as server:
        program = begin(server)
        for line, sentence in (
            ("/bug", "the slash command /bug has failed: SystemExit('enough')"),
            (
                "/ordinary",
                "the slash command /ordinary has failed: TypeError('its function must be"
                " an `async def`; it returned None')",
            ),
            ("/refusing", "not today"),
            ("/wordy", "its entry point is a str, not a `SlashCommand`"),
            (
                "/absent",
                "the slash command 'absent' (codex_py_others:absent) cannot be used",
            ),
            ("/Loud", "its name has more than small letters"),
            ("/refusign", "no command /refusign. Did you mean /refusing?"),
            ("/retry", "there is nothing to try again"),
        ):
            run(program, line)
            program.wait_for(sentence)
        run(program, "/sending word")
        program.wait_for("Word.")
        assert "Say word." in str(server.requests[0].body["input"][-1])
        assert "\x1b[31m" not in program.text


def test_a_bug_of_a_command_is_told_with_its_line_and_logged(
    place: Workplace, packages: Path, tmp_path: Path
) -> None:
    install_others(packages)
    log = tmp_path / "log"
    with ScriptedServer([]) as server, starting(place, packages) as start:
        program = start(server, "--log", str(log), columns=200, rows=50)
        program.wait_for(IDLE)
        program.wait_until(lambda: log.exists())
        run(program, "/bug")
        file = packages / "codex_py_others.py"
        program.wait_for(f"has failed: SystemExit('enough'), in line 5 of {file}")
        text = log.read_text(encoding="utf-8")
        assert 'raise SystemExit(\\"enough\\")' in text


def test_the_list_tells_of_a_broken_package_once(begin: Begin, packages: Path) -> None:
    install_others(packages)
    with ScriptedServer([]) as server:
        program = begin(server)
        assert "slash command" not in program.text
        program.type("/refus")
        program.wait_for("refuse everything")
        program.type("ing")
        program.wait_for("refuse everything")
        text = "\n".join(program.lines)
        assert text.count("the slash command 'wordy'") == 1
        assert text.count("the slash command 'absent'") == 1
        # The program has one of this name, so that of the package is not loaded.
        assert "the slash command 'retry'" not in text


def test_nothing_is_imported_before_a_command_is_listed(
    begin: Begin, packages: Path
) -> None:
    mark = packages.parent / "imported"
    module = f"import pathlib; pathlib.Path({str(mark)!r}).touch()\n{OTHERS}"
    points = {"sending": "codex_py_others:sending"}
    install_package(packages, "codex_py_others", module, {SLASH_COMMANDS: points})
    with ScriptedServer([says("Hello.")]) as server:
        program = begin(server)
        program.type("Hi.\r")
        program.wait_for("Hello.")
        assert not mark.exists()
        program.type("/send")
        program.wait_for("/sending WORD")
        assert mark.exists()


def test_a_name_of_two_packages_is_used_by_neither(
    begin: Begin, packages: Path
) -> None:
    points = {"sending": "codex_py_others:sending"}
    for module in ("codex_py_others", "codex_py_more"):
        install_package(packages, module, OTHERS, {SLASH_COMMANDS: points})
    with ScriptedServer([]) as server:
        program = begin(server)
        run(program, "/sending x")
        program.wait_for("is ambiguous: codex-py-more, codex-py-others have it")
