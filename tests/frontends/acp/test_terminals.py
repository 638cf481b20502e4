"""Commands run in the terminals of the editor, where the user has chosen that.

Also tests `frontends/acp/terminal_job.py`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.editor import begin_prompt, editor, new_session, prompt
from tests.support.editor_terminals import CAN_RUN, Terminals
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
FREE = ("-s", "danger-full-access")
WORKSPACE = ("-s", "workspace-write", "-a", "on-request")
NOT_FOUND = {"error": {"code": -32603, "message": "no luck"}}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    Terminals.close_all()


def runs(command: str, **more: Any) -> list[Any]:
    arguments = {"cmd": command, "login": False, **more}
    return [*ev_function_call("call_1", "exec_command", arguments), ev_completed()]


def set_up(place: Workplace, server: ScriptedServer, where: str) -> None:
    place.configure(server)
    config = place.home / "config.toml"
    text = f'{config.read_text(encoding="utf-8")}\n[acp]\nclient_terminal = "{where}"\n'
    config.write_text(text, encoding="utf-8")


def played(
    place: Workplace,
    call: Sequence[Any],
    terminals: Terminals,
    *options: str,
    where: str = "unsandboxed",
    can: Mapping[str, Any] = CAN_RUN,
) -> tuple[str, dict[str, Any]]:
    """Run one call. Returns its output as the model got it, and the call as the editor shows it."""
    with ScriptedServer([call, DONE]) as server:
        set_up(place, server, where)
        with editor(place, *options, answer=terminals, capabilities=can) as client:
            terminals.client = client
            assert prompt(client, new_session(client, place)) == "end_turn"
            shown = client.call()
    return str(server.requests[-1].input[-1]["output"]), shown


def test_a_command_runs_in_the_terminal_of_the_editor(place: Workplace) -> None:
    terminals = Terminals()
    output, shown = played(place, runs("echo in; exit 3"), terminals, *FREE)
    assert terminals.methods == ["create", "wait_for_exit", "output", "release"]
    assert "Process exited with code 3" in output
    assert output.endswith("\nin\n")
    assert shown["status"] == "failed"
    assert shown["content"] == [{"type": "terminal", "terminalId": "term_0"}]
    assert shown["rawOutput"] == {"exit_code": 3}


@pytest.mark.parametrize(
    ("where", "can"), [("never", CAN_RUN), ("always", {}), ("always", {"terminal": 1})]
)
def test_no_terminal_is_used_unless_user_and_editor_offer_it(
    place: Workplace, where: str, can: dict[str, Any]
) -> None:
    terminals = Terminals()
    output, _ = played(place, runs("echo here"), terminals, *FREE, where=where, can=can)
    assert output.endswith("\nhere\n")
    assert terminals.methods == []


def test_the_command_has_our_environment_and_none_of_the_editor(
    place: Workplace,
) -> None:
    terminals = Terminals()
    call = runs("env; cat; pwd", workdir="sub")
    (place.cwd / "sub").mkdir()
    output, _ = played(place, call, terminals, *FREE)
    assert "EDITORS_SECRET" not in output
    assert "MOCK_KEY" not in output
    assert "\nPAGER=cat\n" in output
    assert output.endswith(f"{place.cwd / 'sub'}\n")
    (words,) = terminals.commands
    # Nothing in them needs quoting, because some editors have a shell read them.
    assert words[-1].endswith("/1-env-cat-pwd")
    # The file with the environment is gone, and its folder too.
    assert not list(place.home.glob("codex-py/tmp/terminals.*"))


@pytest.mark.parametrize("where", ["unsandboxed", "always"])
def test_a_command_that_may_leave_the_sandbox_leaves_it_for_the_terminal(
    place: Workplace, where: str
) -> None:
    terminals = Terminals()
    call = runs("echo out >made", sandbox_permissions="require_escalated")
    played(place, call, terminals, *WORKSPACE, where=where)
    assert len(terminals.questions) == 1
    assert terminals.methods[0] == "create"
    assert (place.cwd / "made").exists()


def test_a_sandboxed_command_stays_in_its_sandbox(place: Workplace) -> None:
    terminals = Terminals()
    output, shown = played(place, runs("echo in >made"), terminals, *WORKSPACE)
    assert "Process exited with code 0" in output
    assert (terminals.methods, terminals.questions) == ([], [])
    assert shown["status"] == "completed"


def test_always_asks_for_the_terminal_as_for_leaving_the_sandbox(
    place: Workplace,
) -> None:
    terminals = Terminals()
    played(place, runs("echo in >made"), terminals, *WORKSPACE, where="always")
    (question,) = terminals.questions
    text = json.dumps(question["toolCall"]["content"])
    assert "outside of the sandbox" in text
    assert terminals.methods[0] == "create"
    assert (place.cwd / "made").exists()


def test_a_no_runs_nothing_anywhere(place: Workplace) -> None:
    terminals = Terminals(option="denied")
    output, shown = played(
        place, runs("echo in >made"), terminals, *WORKSPACE, where="always"
    )
    assert "rejected by user" in output
    assert shown["status"] == "failed"
    assert terminals.methods == []
    assert not (place.cwd / "made").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("-s", "workspace-write", "-a", "never"),
        ("-s", "workspace-write", "-a", "on-failure"),
        ("-s", "workspace-write", "-a", "on-request", "--deny", "secret"),
        ("-s", "danger-full-access", "--deny", "secret"),
    ],
    ids=["never", "on-failure", "denied", "denied and free"],
)
def test_what_a_terminal_cannot_hold_is_held_by_our_sandbox(
    place: Workplace, options: Sequence[str]
) -> None:
    (place.cwd / "secret").write_text("hush", encoding="utf-8")
    terminals = Terminals()
    output, _ = played(
        place, runs("echo in; cat nothing"), terminals, *options, where="always"
    )
    assert "in\n" in output
    assert (terminals.methods, terminals.questions) == ([], [])


@pytest.mark.parametrize("call", [runs("ls"), runs("cat x; read y", tty=True)])
def test_what_only_reads_or_is_typed_into_stays_with_us(
    place: Workplace, call: Sequence[Any]
) -> None:
    terminals = Terminals()
    options = WORKSPACE
    if "tty" in json.dumps(call):
        options = FREE
    played(place, call, terminals, *options, where="always")
    assert terminals.methods == []


def test_a_project_cannot_choose_the_terminal(place: Workplace) -> None:
    project = place.cwd / ".codex"
    project.mkdir()
    text = '[acp]\nclient_terminal = "always"\n'
    (project / "config.toml").write_text(text, encoding="utf-8")
    terminals = Terminals()
    with ScriptedServer([runs("echo here"), DONE]) as server:
        place.configure(server)
        config = place.home / "config.toml"
        trust = f'\n[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
        config.write_text(config.read_text(encoding="utf-8") + trust, encoding="utf-8")
        with editor(place, *FREE, answer=terminals, capabilities=CAN_RUN) as client:
            terminals.client = client
            prompt(client, new_session(client, place))
    assert terminals.methods == []


def test_rules_and_hooks_come_before_the_terminal(place: Workplace) -> None:
    rules = place.home / "rules"
    rules.mkdir()
    rule = 'prefix_rule(pattern=["touch"], decision="forbidden")\n'
    (rules / "default.rules").write_text(rule, encoding="utf-8")
    terminals = Terminals()
    output, _ = played(place, runs("touch made"), terminals, *FREE, where="always")
    assert "rejected" in output
    assert terminals.methods == []


WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "refuses": ({"create": NOT_FOUND}, "could not answer `terminal/create`: no luck"),
    "names no terminal": ({"create": {"result": {}}}, "without the id"),
    "loses the command": ({"wait_for_exit": NOT_FOUND}, "no luck"),
    "forgets the code": ({"wait_for_exit": {"result": {}}}, "without the exit code"),
    "has a wrong code": (
        {"wait_for_exit": {"result": {"exitCode": True}}},
        "without the exit code",
    ),
    "refuses the output": ({"output": NOT_FOUND}, "no luck"),
    "has no output": ({"output": {"result": {"truncated": False}}}, "the output"),
}


@pytest.mark.parametrize(("wrong", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_one_clear_result(
    place: Workplace, wrong: dict[str, Any], told: str
) -> None:
    terminals = Terminals(wrong)
    output, shown = played(place, runs("sleep 0.2; echo late >>made"), terminals, *FREE)
    assert told in output
    is_lost = "output" not in wrong
    if is_lost:
        assert "Process exited with code -1" in output
        assert told in json.dumps(shown["content"])
        assert shown["status"] == "failed"
    else:
        assert "Process exited with code 0" in output
    has_opened = "create" not in wrong
    assert ("release" in terminals.methods) == has_opened
    if not has_opened:
        assert not (place.cwd / "made").exists()


def test_a_signal_is_told_as_everywhere(place: Workplace) -> None:
    output, _ = played(place, runs("kill -TERM $$"), Terminals(), *FREE)
    assert "Process exited with code 143" in output


def test_long_output_is_cut_and_says_so(place: Workplace) -> None:
    script = "yes 0123456789 | head -c 3000000; echo; echo end"
    output, _ = played(place, runs(script), Terminals(), *FREE)
    assert "the editor kept only the end of the output" in output
    assert output.endswith("end\n")
    assert len(output) < 100_000


def test_a_command_that_goes_on_reports_new_output_alone(place: Workplace) -> None:
    first = runs(
        "echo one; while [ ! -e go ]; do sleep 0.1; done; echo two", yield_time_ms=1500
    )
    terminals = Terminals()

    def second(request: Any) -> list[Any]:
        (place.cwd / "go").touch()
        words = request.input[-1]["output"].split()
        number = int(words[words.index("ID") + 1])
        arguments = {"session_id": number, "yield_time_ms": 20000}
        call = ev_function_call("call_2", "write_stdin", arguments)
        return [*call, ev_completed()]

    with ScriptedServer([first, second, DONE]) as server:
        set_up(place, server, "unsandboxed")
        with editor(place, *FREE, answer=terminals, capabilities=CAN_RUN) as client:
            terminals.client = client
            prompt(client, new_session(client, place))
    outputs = [each["output"] for each in server.requests[-1].input if "output" in each]
    assert outputs[0].endswith("Output:\none\n")
    assert outputs[1].endswith("Output:\ntwo\n")


def test_a_timeout_kills_and_releases(place: Workplace) -> None:
    terminals = Terminals()
    arguments = {"command": ["bash", "-c", "echo one; sleep 60"], "timeout_ms": 1500}
    call = [*ev_function_call("call_1", "shell", arguments), ev_completed()]
    output, _ = played(place, call, terminals, *FREE)
    assert "timed out" in output
    assert "one" in output
    assert terminals.methods[-1] == "release"
    assert terminals.running["term_0"].wait(10) != 0


@pytest.mark.parametrize("wrong", [{}, {"kill": None, "wait_for_exit": None}])
def test_a_cancel_kills_and_releases(place: Workplace, wrong: dict[str, Any]) -> None:
    terminals = Terminals(wrong)
    with ScriptedServer(
        [runs("echo $$ >pid; sleep 60", yield_time_ms=30000), DONE]
    ) as server:
        set_up(place, server, "unsandboxed")
        with editor(place, *FREE, answer=terminals, capabilities=CAN_RUN) as client:
            terminals.client = client
            session = new_session(client, place)
            number = begin_prompt(client, session)
            client.until(lambda each: "terminal" in json.dumps(each.get("content")))
            client.notify("session/cancel", sessionId=session)
            assert client.result(number)["stopReason"] == "cancelled"
            assert client.call()["status"] == "failed"
            # The command is dead by its mark, even if the editor does nothing.
            assert terminals.running["term_0"].wait(10) != 0
            assert prompt(client, session) == "end_turn"
    assert "release" in terminals.methods


def test_a_terminal_that_comes_too_late_runs_nothing(place: Workplace) -> None:
    """The editor answers after the cancel, and starts the command even later."""
    terminals = Terminals({"create": None})
    with ScriptedServer([runs("touch made"), DONE]) as server:
        set_up(place, server, "unsandboxed")
        with editor(place, *FREE, answer=terminals, capabilities=CAN_RUN) as client:
            terminals.client = client
            session = new_session(client, place)
            number = begin_prompt(client, session)
            while "create" not in terminals.methods:
                client.step()
            params = client.asked[-1]
            asked = client.answering
            client.notify("session/cancel", sessionId=session)
            assert client.result(number)["stopReason"] == "cancelled"
            right = Terminals()
            right.client = client
            client.answer = right
            answer = right("terminal/create", params)
            client.write({"jsonrpc": "2.0", "id": asked, **answer})
            assert right.running["term_0"].wait(10) == 125
            while "release" not in right.methods:
                client.step()
    assert not (place.cwd / "made").exists()


def test_an_editor_that_leaves_leaves_no_command(place: Workplace) -> None:
    terminals = Terminals()
    with ScriptedServer([runs("sleep 60", yield_time_ms=30000), DONE]) as server:
        set_up(place, server, "unsandboxed")
        with editor(place, *FREE, answer=terminals, capabilities=CAN_RUN) as client:
            terminals.client = client
            begin_prompt(client, new_session(client, place))
            client.until(lambda each: "terminal" in json.dumps(each.get("content")))
    assert terminals.running["term_0"].wait(10) != 0


def test_an_agent_that_is_killed_leaves_no_command(place: Workplace) -> None:
    terminals = Terminals()

    def killed() -> None:
        with editor(place, *FREE, answer=terminals, capabilities=CAN_RUN) as client:
            terminals.client = client
            begin_prompt(client, new_session(client, place))
            client.until(lambda each: "terminal" in json.dumps(each.get("content")))
            client.program.kill()

    with ScriptedServer([runs("sleep 60", yield_time_ms=30000), DONE]) as server:
        set_up(place, server, "unsandboxed")
        # It has not left in order.
        with pytest.raises(AssertionError):
            killed()
        assert terminals.running["term_0"].wait(10) != 0


def test_a_folder_that_is_not_there_is_said(place: Workplace) -> None:
    terminals = Terminals()
    output, _ = played(place, runs("pwd", workdir="nowhere"), terminals, *FREE)
    assert "working directory" in output
    assert terminals.methods == []
