"""`--record` and `--replay`, from outside."""

import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from codex_py.command_line.parsing import parse_arguments
from codex_py.errors import UsageError
from codex_py.testing import ev_completed, ev_function_call, ev_message
from codex_py.testing.events import ev_created
from tests.frontends.tui.terminals import starting
from tests.frontends.tui.test_hooks import ASKED, write_hooks
from tests.support.program import Workplace, jsonl, run_codex_py
from tests.support.server import ScriptedServer

_CAN_ASK = "tools.experimental_request_user_input.enabled"
AS_EXEC = ("-s", "danger-full-access", "-a", "never", "-c", f"{_CAN_ASK}=false")
"""The options with which the terminal sends the requests that `exec` sends here."""
DONE = [*ev_message("done"), ev_completed()]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ("exec", "--record", "a.tape", "--replay", "b.tape", "go"),
            "--record and --replay exclude each other: a replay asks no model",
        ),
        (("--replay", "a.tape"), "--replay needs the prompt that was recorded"),
    ],
)
def test_options_that_do_not_go_together(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arguments(argv)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--record", "a.tape", "go"), "--record is for `codex-py exec`"),
        (("mcp-server", "--replay", "a.tape"), "--replay is for `codex-py exec`"),
        (
            ("exec", "--best-of", "2", "--record", "a.tape", "go"),
            "--best-of does not go with --record",
        ),
    ],
)
def test_other_commands_have_no_tapes(
    place: Workplace, argv: tuple[str, ...], message: str
) -> None:
    done = run_codex_py(argv, place.home, place.cwd)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"Error: {message}")


def test_a_tape_that_does_not_fit_on_the_disk_fails_the_run_with_a_sentence(
    place: Workplace,
) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))

    with ScriptedServer([DONE]) as server:
        place.configure(server)
        program = place.start("--ephemeral", "--record", "tape", "go", limit=limit)
        out, err = program.communicate(timeout=120)
    # The answer is there; the tape, which was asked for as well, is not.
    assert jsonl(out)[-1]["type"] == "turn.completed"
    tape = place.cwd / "tape"
    last_line = err.decode().splitlines()[-1]
    assert last_line == f"Error: {tape}: the tape cannot be written: File too large"
    assert program.returncode == 1


def test_another_request_than_the_recorded_one_is_not_a_refusal(
    place: Workplace,
) -> None:
    with ScriptedServer([DONE]) as server:
        assert place.run(server, "--record", "tape", "go").code == 0
        outcome = place.run(
            server, "--replay", "tape", "--disable", "multi_agent", "go"
        )
    # It names a type of tools, as servers do that refuse it.
    assert "'namespace'" in outcome.error["message"]
    assert (outcome.code, outcome.error["code"]) == (1, "tape")
    assert [item for item in outcome.items if item["type"] == "error"] == []


def calls(command: str) -> list[Any]:
    call = ev_function_call("c1", "exec_command", {"cmd": command})
    return [ev_created(), *call, ev_completed()]


def test_a_recorded_session_is_replayed_with_the_tag_of_the_recording(
    place: Workplace, tmp_path: Path
) -> None:
    tape = tmp_path / "tape"
    with ScriptedServer([calls("echo one >> log"), DONE], text_tools=True) as server:
        assert place.run(server, "--record", str(tape), "go").code == 0
    assert place.rerun("--replay", str(tape), "go").messages == ["done"]
    assert (place.cwd / "log").read_text(encoding="utf-8") == "one\none\n"


def test_the_terminal_asks_about_hooks_before_a_replay(
    place: Workplace, tmp_path: Path
) -> None:
    tape = tmp_path / "hello.tape"
    with ScriptedServer([DONE]) as server, starting(place) as start:
        assert place.run(server, "--record", str(tape), "go").code == 0
        write_hooks(place.home / "hooks.json", "exit 2")
        program = start(server, *AS_EXEC, "--replay", str(tape), "go")
        program.wait_for(ASKED)
        program.type("a draft")
        program.wait_until(lambda: ASKED not in program.text)
        program.wait_for(ASKED)
        program.type("3")
        program.wait_for("done")
        assert program.wait() == 0


WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last")


def record_words(place: Workplace, tape: Path) -> None:
    """Record an answer of some words, in as many deltas."""
    answer = [*ev_message(" ".join(WORDS), pieces=len(WORDS)), ev_completed()]
    with ScriptedServer([answer]) as server:
        assert place.run(server, "--record", str(tape), "go").code == 0


def test_the_terminal_shows_the_deltas_of_a_replay_one_after_another(
    place: Workplace, tmp_path: Path
) -> None:
    tape = tmp_path / "words.tape"
    record_words(place, tape)
    with ScriptedServer([]) as server, starting(place) as start:
        program = start(server, *AS_EXEC, "--replay", str(tape), "go")
        program.wait_for("second")
        assert "last" not in program.text
        program.wait_for("last")
        assert program.wait() == 0


def test_ctrl_c_ends_a_paced_replay_at_once(place: Workplace, tmp_path: Path) -> None:
    tape = tmp_path / "words.tape"
    record_words(place, tape)
    with ScriptedServer([]) as server, starting(place) as start:
        program = start(server, *AS_EXEC, "--replay", str(tape), "go")
        program.wait_for("second")
        program.press("c-c")
        assert program.wait() == 130
        assert "last" not in program.text
