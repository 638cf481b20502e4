"""What the terminal does about a turn that failed, and while a request is tried again.

Tests `frontends/tui/conversation.py`.
"""

import re
import sys
from pathlib import Path

import pytest

from codex_py.testing import (
    Pause,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.frontends.tui.terminals import Start, leave
from tests.support.packages import install_package
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

FREE = ("-s", "danger-full-access")
ANSWER = [*ev_message("Hello **you**."), ev_completed()]
BUSY = Reply(status=503, body=b'{"error": {"message": "at lunch"}}')
TOO_LONG = Reply(
    status=400,
    body=b'{"error": {"message": "too long", "code": "context_length_exceeded"}}',
)
OFFER = "Enter on an empty prompt, or /retry, tries again."


def test_enter_on_an_empty_prompt_goes_on_with_a_turn_that_failed(start: Start) -> None:
    with ScriptedServer([BUSY, BUSY, ANSWER]) as server:
        program = start(server, "Hello?")
        program.wait_for(OFFER)
        program.press("enter")
        program.wait_until(lambda: program.text.count("at lunch") == 2)
        program.type("/retry")
        program.press("enter")
        program.wait_for("Hello you.")
        assert program.text.count("\u203a Hello?") == 1
        first, *others = server.requests
        assert [other.input for other in others] == [first.input] * 2


def test_enter_on_an_empty_prompt_sends_nothing_after_a_turn_that_did_not_fail(
    start: Start,
) -> None:
    with ScriptedServer([ANSWER, ANSWER]) as server:
        program = start(server, "Hello?")
        program.wait_for("Hello you.")
        program.press("enter")
        # Read together they would be a paste.
        program.settle()
        program.type("/retry")
        program.press("enter")
        program.wait_for("there is nothing to try again")
        assert len(server.requests) == 1


def test_a_call_of_the_turn_that_failed_does_not_run_again(
    start: Start, place: Workplace
) -> None:
    call = ev_function_call("call_1", "exec_command", {"cmd": "echo ran >> count"})
    replies = [Reply(events=call, cut=True), [*call, ev_completed()], ANSWER]
    with ScriptedServer(replies) as server:
        program = start(server, *FREE, "Count.")
        program.wait_for(OFFER)
        program.press("enter")
        program.wait_for("Hello you.")
    assert (place.cwd / "count").read_text(encoding="utf-8") == "ran\n"


def test_a_turn_that_a_kill_has_cut_off_goes_on_after_a_resume(start: Start) -> None:
    call = [
        *ev_function_call("call_1", "exec_command", {"cmd": "echo ran"}),
        ev_completed(),
    ]
    with ScriptedServer(
        [call, [ev_created(), Pause()], ANSWER], check_prefix=False
    ) as server:
        program = start(server, *FREE, "Count.")
        program.wait_until(
            lambda: len(server.requests) == 2 and "Ran echo ran" in program.text
        )
        program.process.kill()
        program.wait()
        program = start(server, *FREE, "resume", "--last")
        program.wait_for("\u203a Count.")
        program.wait_for("The last turn did not end. /retry goes on with it.")
        program.type("/retry")
        program.press("enter")
        program.wait_for("Hello you.")
        assert "ran" in server.requests[2].output("call_1")
        assert str(server.requests[2].input).count("Count.") == 1


def test_a_retry_is_counted_down_with_its_cause_and_escape_ends_it(
    start: Start,
) -> None:
    busy = Reply(status=503, body=BUSY.body, headers={"retry-after": "60"})
    with ScriptedServer([busy, ANSWER]) as server:
        program = start(server, "Hello?", provider={"request_max_retries": 3})
        counted = re.compile(
            r"[.…] Trying again in (5\ds|1m 00s) \(try 2, \ds; Esc stops\)"
        )
        program.wait_until(lambda: counted.search(program.text) is not None)
        program.wait_for("503 Service Unavailable")
        program.press("esc")
        program.wait_for("interrupted")
        program.wait_until(lambda: "Trying again" not in program.text)
        program.type("/retry")
        program.press("enter")
        program.wait_for("Hello you.")


def test_tries_are_counted_by_one_counter_across_both_kinds_of_retries(
    start: Start,
) -> None:
    lost = Reply(events=[ev_created()], cut=True)
    slow = Reply(status=503, body=BUSY.body, headers={"retry-after": "60"})
    with ScriptedServer([BUSY, BUSY, lost, BUSY, slow]) as server:
        retries = {"request_max_retries": 2, "stream_max_retries": 3}
        program = start(server, "Hello?", provider=retries, columns=60, rows=20)
        program.wait_for("(try 6, ")
        assert program.text.count("Trying again") == 1


def test_enter_on_an_empty_prompt_tries_again_what_the_server_refused(
    start: Start,
) -> None:
    refused = Reply(status=401, body=b'{"error": {"message": "no such key"}}')
    with ScriptedServer([refused, ANSWER]) as server:
        program = start(server, "Hello?")
        program.wait_for("no such key")
        program.wait_for(OFFER)
        program.press("enter")
        program.wait_for("Hello you.")


def test_queued_prompts_return_to_the_composer_when_the_turn_fails(
    start: Start,
) -> None:
    hold = Pause()
    with ScriptedServer(
        [Reply(events=[ev_created(), hold, ev_created()], cut=True), ANSWER]
    ) as server:
        program = start(server, "Hello?")
        hold.reached.wait(120)
        program.type("And then this.")
        program.wait_for("\u203a And then this.")
        program.press("tab")
        # What followed at once would belong to the same burst.
        program.read_for(0.4)
        program.wait_until(lambda: "\u203a And then this." not in program.lines)
        program.type("And that.")
        program.press("enter")
        program.wait_for("  \u203a And that.")
        hold.until.set()
        program.wait_for(OFFER)
        program.wait_for("\u203a And that.")
        program.wait_for("And then this.")
        program.press("enter")
        program.wait_for("Hello you.")
        said = server.requests[-1].body["input"][-1]["content"][-1]["text"]
        assert said == "And that.\n\nAnd then this."


def test_a_full_window_names_the_commands_that_help(start: Start) -> None:
    with ScriptedServer([TOO_LONG]) as server:
        program = start(server, "Hello?")
        program.wait_for("/compact puts a summary in place of the conversation")
        program.wait_for("/new begins another one")


WITH_EXTENSION = """
import runpy, sys
# The program drops the first one.
sys.path[:0] = ["", sys.argv.pop(1)]
runpy.run_module("codex_py", run_name="__main__", alter_sys=True)
"""
FAILING = """
from codex_py import Extension

def feature(_settings):
    def make(thread):
        async def before_prompt(prompt):
            if "fail" in prompt.text:
                raise KeyError("of an extension")
            return ()
        return Extension(before_prompt=before_prompt)
    return make
"""


@pytest.mark.parametrize("log", [None, "the.log"])
def test_a_bug_costs_its_turn_and_not_the_terminal(
    place: Workplace, tmp_path: Path, log: str | None
) -> None:
    packages = tmp_path / "packages"
    points = {"codex_py.extensions": {"failing": "failing:feature"}}
    install_package(packages, "failing", FAILING, points)
    with ScriptedServer([ANSWER]) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write("[extensions.failing]\n")
            config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
        options = [] if log is None else ["--log", str(tmp_path / log)]
        argv = [sys.executable, "-c", WITH_EXTENSION, str(packages), *options, "fail"]
        variables = environment(
            place.home, {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        )
        with PtyProgram(argv, place.cwd, variables) as program:
            program.wait_for("internal error: the extension 'failing'")
            program.wait_for("KeyError(")
            program.wait_for(
                "The traceback is in" if log else "Start codex-py with --log FILE"
            )
            program.settle()
            program.type("Hello?")
            program.press("enter")
            program.wait_for("Hello you.")
            assert "Traceback" not in program.text
            leave(program)
    if log is not None:
        assert "before_prompt" in (tmp_path / log).read_text(encoding="utf-8")
