"""`/export` in the terminal.

Tests `extensions/export/slash_command.py`.
"""

import asyncio
import re
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from codex_py.errors import CodexError
from codex_py.extensions.export.slash_command import command
from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave, starting
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

ANSWER = [*ev_message("Hello **you**."), ev_completed()]


@pytest.fixture
def start(place: Workplace) -> Generator[Start]:
    with starting(place) as start:
        yield start


def test_an_export_has_what_was_said_before_and_since(
    start: Start, place: Workplace
) -> None:
    replies = [ANSWER, [*ev_message("Again."), ev_completed()]]
    with ScriptedServer(replies) as server:
        first = start(server, "One?")
        first.wait_for("Hello you.")
        leave(first)
        program = start(server, "resume", "--last", "Two?")
        program.wait_for("Again.")
        program.wait_until(lambda: program.title == "work")
        for number, name in enumerate(["out.md", "out.html"], 1):
            program.type(f"/export {name}")
            program.press("enter")
            # The path may be broken into lines.
            program.wait_until(
                lambda n=number: program.text.count("was written to") == n
            )
    assert "Hello <strong>you</strong>." in (place.cwd / "out.html").read_text(
        encoding="utf-8"
    )
    text = (place.cwd / "out.md").read_text(encoding="utf-8")
    assert text.startswith("# One?\n\n- Session: ")
    assert text[text.index("## User") :] == (
        "## User\n\nOne?\n\n## Agent\n\nHello **you**.\n\n## User\n\nTwo?\n\n## Agent\n\nAgain.\n"
    )


def test_an_export_has_no_keys(start: Start, place: Workplace) -> None:
    token = f"ghp_{'a1' * 20}"
    with ScriptedServer([[*ev_message(f"It is {token}."), ev_completed()]]) as server:
        program = start(server, "One?")
        program.wait_until(lambda: program.title == "work")
        program.type("/export out.md")
        program.press("enter")
        program.wait_for("keys were replaced by")
    assert "It is [redacted]." in (place.cwd / "out.md").read_text(encoding="utf-8")


def test_an_export_is_private_and_a_bad_path_is_a_sentence(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, "One?", columns=200)
        program.wait_for("Hello you.")
        program.type("/export out.md\r")
        program.wait_until(lambda: program.text.count("was written to") == 1)
    assert (place.cwd / "out.md").stat().st_mode & 0o777 == 0o600
    terminal: Any = SimpleNamespace(config=SimpleNamespace(cwd=place.cwd))

    async def export() -> None:
        await command.run(terminal, "x\0y.md")

    with pytest.raises(CodexError, match="NUL character"):
        asyncio.run(export())


def test_an_export_without_a_name_or_below_the_home_folder_is_not_in_the_repository(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, "One?", columns=200)
        program.wait_for("Hello you.")
        for number, command in enumerate(["/export ~/out.md", "/export "], 1):
            program.type(f"{command}\r")
            program.wait_until(
                lambda n=number: program.text.count("was written to") == n
            )
    assert list(place.cwd.iterdir()) == []
    assert (place.home.parent / "out.md").exists()
    assert len(list(place.home.parent.glob("codex-*.md"))) == 1


def test_the_beginning_of_its_name_completes_it(start: Start, place: Workplace) -> None:
    commands = place.cwd / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "export.md").write_text("Export it all.", encoding="utf-8")
    with ScriptedServer([]) as server:
        program = start(server, rows=50)
        program.wait_for(IDLE)
        program.type("/ex")
        program.wait_for("write the conversation to a file")
        names = re.findall(r"/[a-z:]+", program.text.partition("\u203a /ex")[2])
        assert names[:3] == ["/export", "/quit", "/project:export"]
