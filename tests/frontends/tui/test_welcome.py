"""The first run in a folder: the question of trust, and a start without a key.

Tests `frontends/tui/first_run.py` and `frontends/tui/session_half.py`.
"""

import tomllib

from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.support.program import Workplace
from tests.support.repository import make_repository
from tests.support.server import ScriptedServer

ANSWER = [[*ev_message("Hello."), ev_completed()]]


def test_a_new_folder_is_asked_about_and_enter_alone_does_not_trust_it(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer(ANSWER) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.press("enter")
        program.wait_for("read-only")
        leave(program)
    config = tomllib.loads((place.home / "config.toml").read_text(encoding="utf-8"))
    assert "projects" not in config


def test_a_folder_that_is_trusted_can_be_written_and_is_not_asked_about_again(
    start: Start, place: Workplace
) -> None:
    # Whatever lies above it is no repository of this folder's.
    make_repository(place.cwd)
    with ScriptedServer(ANSWER) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("y")
        program.wait_for("workspace-write")
        leave(program)
        config = tomllib.loads((place.home / "config.toml").read_text(encoding="utf-8"))
        assert config["projects"] == {str(place.cwd): {"trust_level": "trusted"}}


def test_text_typed_at_the_question_of_trust_is_a_prompt_and_no_answer(
    start: Start,
) -> None:
    with ScriptedServer(ANSWER) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("say hello")
        program.wait_for("Do you trust this folder? (Tab to answer)")
        program.wait_for("\u203a say hello")
        program.settle(0.5)
        program.press("enter")
        program.wait_for("Do you trust what is in")
        program.type("y")
        program.wait_for("Hello.")
        program.wait_for("workspace-write")
        assert "\u203a say hello" in program.text


def test_a_command_that_is_typed_before_there_is_a_session_waits_for_it(
    start: Start,
) -> None:
    with ScriptedServer(ANSWER) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("/model")
        program.wait_for("\u203a /model")
        program.settle(0.5)
        program.press("enter")
        program.wait_for("Do you trust what is in")
        program.type("y")
        program.wait_for("> gpt-5.5                   (now)")
        program.press("esc")
        program.wait_for("Ask codex-py")
        program.type("!echo $((40 + 2))")
        program.settle(0.5)
        program.press("enter")
        program.wait_for("42")


def test_a_prompt_of_the_command_line_comes_back_with_up(start: Start) -> None:
    with ScriptedServer(ANSWER) as server:
        program = start(server, "/etc/hosts is wrong")
        program.wait_for("Hello.")
        program.press("up")
        program.wait_until(
            lambda: program.text.count("\u203a /etc/hosts is wrong") == 2
        )


def test_without_a_key_the_first_run_says_what_can_be_done(start: Start) -> None:
    with ScriptedServer(ANSWER) as server:
        program = start(server, columns=60, MOCK_KEY="")
        program.wait_for("Missing environment variable: `MOCK_KEY`.")
        program.wait_for("codex-py demo")
        # No command is broken where it would be copied.
        assert "      codex-py --oss --local-provider ollama" in program.lines
        program.wait_for(IDLE)
        leave(program)


def test_a_line_that_is_typed_while_the_program_starts_is_sent(start: Start) -> None:
    with ScriptedServer(ANSWER) as server:
        program = start(server)
        # The terminal makes a newline of this Enter: the program has not asked for keys yet.
        program.type("say hello")
        program.press("enter")
        program.wait_for("Hello.")
        assert "\u203a say hello" in program.lines
