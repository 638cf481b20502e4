"""`codex-py acp`, driven as an editor does; what it writes is checked with the schema of the protocol.

Tests `frontends/acp/acp_command.py`, `frontends/acp/agent.py`,
`frontends/acp/questions.py` and `frontends/acp/session.py`.
"""

import json
import re
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
    ev_text_deltas,
)
from tests.support.editor import (
    Editor,
    Refused,
    allows,
    always,
    begin_prompt,
    editor,
    new_session,
    prompt,
    schema_file,
)
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
FREE = ("-s", "danger-full-access")
ASKS = ("-s", "workspace-write", "-a", "untrusted")


def runs(command: str, call_id: str = "call_1", **more: Any) -> list[Any]:
    call = ev_function_call(call_id, "exec_command", {"cmd": command, **more})
    return [*call, ev_completed()]


def patches(*lines: str) -> list[Any]:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return [*ev_custom_tool_call("call_1", "apply_patch", text), ev_completed()]


def test_the_schema_of_the_protocol_is_here() -> None:
    if schema_file() is None:
        pytest.skip("SCHEMAS_DIR has no acp-v1.json")


def test_an_answer_comes_in_chunks_of_one_message(place: Workplace) -> None:
    answer = [
        *ev_reasoning("I think."),
        *ev_message("Hello", index=1, pieces=2),
        ev_completed(),
    ]
    with ScriptedServer([answer]) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        assert prompt(client, session, "Say hello") == "end_turn"
    assert client.said() == "Hello"
    assert client.said("agent_thought") == "I think."
    chunks = client.of_kind("agent_message_chunk")
    assert len({chunk["messageId"] for chunk in chunks}) == 1
    assert len(chunks) == 2
    assert client.of_kind("session_info_update")[0]["title"] == "Say hello"
    assert client.of_kind("usage_update")[-1]["used"] > 0


def editor_of(
    place: Workplace, server: ScriptedServer, *args: str, **how: Any
) -> AbstractContextManager[Editor]:
    place.configure(server)
    return editor(place, *(args or FREE), **how)


def test_the_agent_says_what_it_can(place: Workplace) -> None:
    with ScriptedServer([]) as server, editor_of(place, server) as client:
        told = client.request("initialize", protocolVersion=999, clientCapabilities={})
        assert told["protocolVersion"] == 1
        assert told["agentInfo"]["name"] == "codex-py"
        assert told["agentCapabilities"]["loadSession"] is True
        assert [method.get("type") for method in told["authMethods"]] == [None]
        can = {"auth": {"terminal": True}}
        told = client.request("initialize", protocolVersion=0, clientCapabilities=can)
        assert told["protocolVersion"] == 1
        assert told["authMethods"][0]["args"] == ["login"]


@pytest.mark.parametrize(
    "capabilities",
    [
        {"fs": 1},
        {"terminal": "yes"},
        {"auth": []},
        {"session": 3},
        {"elicitation": "form"},
        [],
        "none",
        None,
    ],
)
def test_capabilities_of_a_wrong_type_count_as_none(
    place: Workplace, capabilities: Any
) -> None:
    with ScriptedServer([]) as server, editor_of(place, server) as client:
        told = client.request(
            "initialize", protocolVersion=1, clientCapabilities=capabilities
        )
        assert told["protocolVersion"] == 1


def test_a_command_is_shown_with_its_output_while_it_runs(place: Workplace) -> None:
    (place.cwd / "go").touch()
    script = "echo one; while [ -e go ]; do sleep 0.05; done; echo two; exit 3"
    with (
        ScriptedServer([runs(script, yield_time_ms=60_000), DONE]) as server,
        editor_of(place, server) as client,
    ):
        session = new_session(client, place)
        number = begin_prompt(client, session)
        client.until(
            lambda update: "```\none\n```" in json.dumps(update).replace("\\n", "\n")
        )
        assert client.call()["status"] == "in_progress"
        (place.cwd / "go").unlink()
        assert client.result(number)["stopReason"] == "end_turn"
    call = client.call()
    assert (call["kind"], call["title"]) == ("execute", script)
    assert call["rawInput"] == {"command": script, "cwd": str(place.cwd)}
    assert (call["status"], call["rawOutput"]) == ("failed", {"exit_code": 3})
    assert call["content"] == [content("```\none\ntwo\n```")]


def content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def test_live_output_is_bounded_in_size_and_in_rate(place: Workplace) -> None:
    script = "for i in $(seq 2000); do printf '%0200d\\n' $i; sleep 0.001; done; echo '```'; echo end"
    with (
        ScriptedServer([runs(script, yield_time_ms=60_000), DONE]) as server,
        editor_of(place, server) as client,
    ):
        began = time.monotonic()
        prompt(client, new_session(client, place))
        took_s = time.monotonic() - began
    live = [
        u
        for u in client.of_kind("tool_call_update")
        if "status" not in u and u["content"]
    ]
    assert max(len(json.dumps(update)) for update in live) < 12_000
    # However long the machine takes for these 400 kB.
    assert len(live) <= 3 * took_s
    last = client.call()["content"][0]["content"]["text"]
    assert last.endswith("```\nend\n````")
    assert len(last) < 40_000


def test_a_patch_is_shown_as_whole_files(place: Workplace) -> None:
    (place.cwd / "old.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (place.cwd / "gone.txt").write_text("x\n", encoding="utf-8")
    patch = patches(
        *("*** Add File: new.txt", "+hello"),
        *("*** Update File: old.txt", "@@", " a", "-b", "+B"),
        "*** Delete File: gone.txt",
    )
    with ScriptedServer([patch, DONE]) as server, editor_of(place, server) as client:
        prompt(client, new_session(client, place))
    call = client.call()
    cwd = place.cwd
    assert (call["kind"], call["status"]) == ("edit", "completed")
    assert [each["path"] for each in call["locations"]] == [
        str(cwd / name) for name in ("gone.txt", "new.txt", "old.txt")
    ]
    texts = {
        each["path"]: (each["oldText"], each["newText"]) for each in call["content"]
    }
    assert texts == {
        str(cwd / "new.txt"): (None, "hello\n"),
        str(cwd / "old.txt"): ("a\nb\nc\n", "a\nB\nc\n"),
        str(cwd / "gone.txt"): ("x\n", ""),
    }


def test_a_patch_that_does_not_fit_is_shown(place: Workplace) -> None:
    """Both adapters of Codex show nothing."""
    patch = patches("*** Update File: nothing.txt", "@@", "-b", "+B")
    with ScriptedServer([patch, DONE]) as server, editor_of(place, server) as client:
        prompt(client, new_session(client, place))
    call = client.call()
    assert (call["kind"], call["status"]) == ("edit", "failed")
    assert "apply_patch verification failed" in call["content"][0]["content"]["text"]


def test_a_call_that_cannot_run_is_shown(place: Workplace) -> None:
    script = [[*ev_function_call("call_1", "no_such_tool", {}), ev_completed()], DONE]
    with ScriptedServer(script) as server, editor_of(place, server) as client:
        prompt(client, new_session(client, place))
    assert (client.call()["title"], client.call()["status"]) == (
        "no_such_tool",
        "failed",
    )


def test_a_plan_is_a_plan(place: Workplace) -> None:
    steps = [
        {"step": "look", "status": "completed"},
        {"step": "act", "status": "in_progress"},
        {"step": "rest", "status": "pending"},
    ]
    script = [
        [*ev_function_call("call_1", "update_plan", {"plan": steps}), ev_completed()],
        DONE,
    ]
    with ScriptedServer(script) as server, editor_of(place, server) as client:
        prompt(client, new_session(client, place))
    plans = client.of_kind("plan")
    assert [(each["content"], each["status"]) for each in plans[-1]["entries"]] == [
        (each["step"], each["status"]) for each in steps
    ]
    assert client.calls() == {}


def test_a_question_comes_after_its_call_and_with_the_diff(place: Workplace) -> None:
    patch = patches("*** Add File: new.txt", "+hello")
    with (
        ScriptedServer([patch, DONE]) as server,
        editor_of(place, server, *ASKS) as client,
    ):
        prompt(client, new_session(client, place))
    (asked,) = client.asked
    first = client.of_kind("tool_call")[0]
    assert (first["status"], first["toolCallId"]) == (
        "pending",
        asked["toolCall"]["toolCallId"],
    )
    diff = {"type": "diff", "path": str(place.cwd / "new.txt"), "oldText": None}
    assert (
        first["content"]
        == asked["toolCall"]["content"]
        == [{**diff, "newText": "hello\n"}]
    )
    assert client.call()["status"] == "completed"
    assert (place.cwd / "new.txt").read_text(encoding="utf-8") == "hello\n"
    assert [each["kind"] for each in asked["options"]] == [
        *("allow_once", "allow_always", "reject_once")
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"outcome": {"outcome": "selected", "optionId": "denied"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "yes please"}}},
        {
            "result": {
                "outcome": {"outcome": "selected", "optionId": "approved_with_rule"}
            }
        },
        {"result": {"outcome": "selected", "optionId": "approved"}},
        {"result": {"outcome": {"outcome": "allowed"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": ["approved"]}}},
        {"result": {"decision": "approved"}},
        {"result": "approved"},
        {"result": None},
        {"error": {"code": -32603, "message": "no"}},
        {"error": "no"},
    ],
)
def test_whatever_is_no_clear_yes_is_a_no(place: Workplace, answer: Any) -> None:
    with (
        ScriptedServer([runs("touch made"), DONE]) as server,
        editor_of(place, server, *ASKS, answer=always(answer)) as client,
    ):
        assert prompt(client, new_session(client, place)) == "end_turn"
    assert not (place.cwd / "made").exists()
    assert client.call()["status"] == "failed"


def test_an_allowance_for_the_session_is_asked_for_once(place: Workplace) -> None:
    script = [runs("touch made"), runs("touch made", "call_2"), DONE]
    with (
        ScriptedServer(script) as server,
        editor_of(
            place, server, *ASKS, answer=allows("approved_for_session")
        ) as client,
    ):
        prompt(client, new_session(client, place))
    assert len(client.asked) == 1
    assert [call["status"] for call in client.calls().values()] == [
        "completed",
        "completed",
    ]


def test_a_cancel_stops_the_command_and_closes_its_call(
    place: Workplace, tmp_path: Path
) -> None:
    """Both adapters of Codex leave the command running, and its call open."""
    with Lifeline(tmp_path) as line:
        script = (
            f"{line.hold} trap '' HUP TERM; (trap '' HUP TERM; sleep 600) & sleep 600"
        )
        with (
            ScriptedServer([runs(script, yield_time_ms=60_000), DONE]) as server,
            editor_of(place, server) as client,
        ):
            session = new_session(client, place)
            number = begin_prompt(client, session)
            line.wait_until_up()
            client.notify("session/cancel", sessionId=session)
            assert client.result(number)["stopReason"] == "cancelled"
            line.wait_until_dead()
            assert client.call()["status"] == "failed"
            count = len(client.updates)
            assert prompt(client, session, "again") == "end_turn"
            assert client.updates[count]["sessionUpdate"] != "tool_call_update"
        assert_answered(server)


def assert_answered(server: ScriptedServer) -> None:
    """The server itself checks that each call has its output."""
    assert [item["type"] for item in server.requests[-1].body["input"]].count(
        "function_call_output"
    ) == 1


def test_a_cancel_directly_behind_the_prompt_counts(place: Workplace) -> None:
    """opencode answers `end_turn`."""
    with ScriptedServer([DONE, DONE]) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        blocks = [{"type": "text", "text": "go"}]
        first = client.message("session/prompt", sessionId=session, prompt=blocks)
        cancel = {"method": "session/cancel", "params": {"sessionId": session}}
        second = client.message("session/prompt", sessionId=session, prompt=blocks)
        client.write(first, {"jsonrpc": "2.0", **cancel}, second)
        assert client.result(first["id"])["stopReason"] == "cancelled"
        assert client.result(second["id"])["stopReason"] == "end_turn"


def test_a_late_allowance_runs_nothing(place: Workplace) -> None:
    """In one of two runs opencode began the command."""
    with (
        ScriptedServer([runs("touch made"), DONE]) as server,
        editor_of(place, server, *ASKS, answer=always(None)) as client,
    ):
        session = new_session(client, place)
        number = begin_prompt(client, session)
        while "id" not in (question := client.step()) or "method" not in question:
            pass
        client.notify("session/cancel", sessionId=session)
        # The client has to answer with `cancelled`; the agent waits for no answer.
        assert client.result(number)["stopReason"] == "cancelled"
        assert client.call()["status"] == "failed"
        client.write({"jsonrpc": "2.0", "id": question["id"], **allows()("", {})})
        assert prompt(client, session) == "end_turn"
    assert not (place.cwd / "made").exists()


def test_a_client_that_answers_with_cancelled_ends_the_turn(place: Workplace) -> None:
    answer = {"result": {"outcome": {"outcome": "cancelled"}}}
    with (
        ScriptedServer([runs("touch made")]) as server,
        editor_of(place, server, *ASKS, answer=always(answer)) as client,
    ):
        assert prompt(client, new_session(client, place)) == "cancelled"
    assert client.call()["status"] == "failed"


def test_a_cancel_of_nothing_means_nothing(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        client.notify("session/cancel", sessionId=session)
        client.notify("session/cancel", sessionId="unknown")
        client.notify("session/cancel")
        client.notify("no/such/method", a=1)
        assert prompt(client, session) == "end_turn"


def test_prompts_of_a_session_run_one_after_another(place: Workplace) -> None:
    """zed never answers the second one."""
    script = [
        [*ev_message("one"), ev_completed()],
        [*ev_message("two"), ev_completed()],
    ]
    with ScriptedServer(script) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        numbers = [begin_prompt(client, session, text) for text in ("first", "second")]
        assert [client.result(n)["stopReason"] for n in numbers] == [
            "end_turn",
            "end_turn",
        ]
    assert client.said() == "onetwo"


def test_a_turn_that_fails_is_an_error_and_the_session_goes_on(
    place: Workplace,
) -> None:
    refusal = {
        "type": "response.failed",
        "response": {"error": {"code": "boom", "message": "Bad."}},
    }
    with (
        ScriptedServer([[refusal], DONE]) as server,
        editor_of(place, server) as client,
    ):
        session = new_session(client, place)
        with pytest.raises(Refused, match="Bad") as refused:
            prompt(client, session)
        assert refused.value.data is not None
        assert prompt(client, session) == "end_turn"


def test_a_session_is_loaded_with_the_whole_conversation(place: Workplace) -> None:
    (place.cwd / "old.txt").write_text("a\nb\n", encoding="utf-8")
    script = [
        patches("*** Update File: old.txt", "@@", " a", "-b", "+B"),
        runs("echo hi", "call_2"),
        [*ev_reasoning("Hm."), *ev_message("done"), ev_completed()],
        DONE,
    ]
    with ScriptedServer(script) as server:
        with editor_of(place, server) as client:
            session = new_session(client, place)
            prompt(client, session, "Work, please")
        with editor(place, *FREE) as again:
            params: dict[str, Any] = {
                "sessionId": session,
                "cwd": str(place.cwd),
                "mcpServers": [],
            }
            number = again.begin("session/load", **params)
            loaded = again.result(number)
            replayed = len(again.updates)
            assert {"configOptions", "modes"} <= loaded.keys()
            assert again.said("user_message") == "Work, please"
            assert again.said("agent_thought") == "Hm."
            assert again.said() == "done"
            patch, command = again.calls().values()
            (diff,) = patch["content"]
            assert (diff["oldText"], diff["newText"]) == ("a\nb\n", "a\nB\n")
            assert diff["path"] == str(place.cwd / "old.txt")
            assert command["content"] == [content("```\nhi\n```")]
            assert {patch["status"], command["status"]} == {"completed"}
            assert prompt(again, session, "And on") == "end_turn"
            later = {u["sessionUpdate"] for u in again.updates[replayed:]}
            assert {"available_commands_update", "usage_update"} <= later
            # It is open: a second load closes it first.
            again.request("session/load", **params)
        with editor(place, *FREE) as third:
            third.request("session/resume", sessionId=session, cwd=str(place.cwd))
            assert third.said("user_message") == ""
    assert len(place.rollouts()) == 1


def opens(client: Editor, method: str, session: str, cwd: Path) -> Any:
    """Ask for an earlier session."""
    return client.request(method, sessionId=session, cwd=str(cwd), mcpServers=[])


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
@pytest.mark.parametrize("times", [1, 2])
def test_an_open_session_without_a_prompt_is_opened_again_under_its_id(
    place: Workplace, method: str, times: int
) -> None:
    with ScriptedServer([DONE, DONE]) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        for _ in range(times):
            answer = opens(client, method, session, place.cwd)
            assert {"configOptions", "modes"} <= answer.keys()
        assert client.said("user_message") == ""
        assert prompt(client, session, "First") == "end_turn"
        client.request("session/close", sessionId=session)
        opens(client, "session/load", session, place.cwd)
        assert client.said("user_message") == "First"
        assert prompt(client, session, "Second") == "end_turn"
    (file,) = place.rollouts()
    assert session in file.name


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_without_a_prompt_is_opened_in_a_later_process(
    place: Workplace, method: str
) -> None:
    """`acpx sessions new` opens one, and `acpx` prompts it by another process."""
    with ScriptedServer([DONE, DONE]) as server:
        with editor_of(place, server) as client:
            session = new_session(client, place)
        with editor(place, *FREE) as again:
            opens(again, method, session, place.cwd)
            again.request("session/close", sessionId=session)
            opens(again, method, session.upper(), place.cwd)
            assert prompt(again, session.upper(), "First") == "end_turn"
        with editor(place, *FREE) as third:
            opens(third, "session/load", session, place.cwd)
            assert third.said("user_message") == "First"
    (file,) = place.rollouts()
    assert session in file.name
    assert list((place.home / "codex-py" / "unprompted").iterdir()) == []


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_does_not_exist_has_one_code(
    place: Workplace, method: str
) -> None:
    with ScriptedServer([]) as server, editor_of(place, server) as client:
        deleted = new_session(client, place)
        client.request("session/delete", sessionId=deleted)
        for session in (deleted, "01a22274-52d2-7000-8000-000000000000", "name", ""):
            with pytest.raises(Refused, match="-32002"):
                opens(client, method, session, place.cwd)
            with pytest.raises(Refused, match="-32002"):
                prompt(client, session)


def test_an_open_session_is_found_by_its_id_in_capitals(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        opens(client, "session/load", session.upper(), place.cwd)
        assert prompt(client, session.upper(), "First") == "end_turn"
        opens(client, "session/load", session, place.cwd)
        assert client.said("user_message") == "First"
        assert prompt(client, session, "Second") == "end_turn"
        client.request("session/delete", sessionId=session.upper())
        with pytest.raises(Refused, match="-32002"):
            prompt(client, session)
    assert place.rollouts() == []


@pytest.mark.parametrize("has_prompt", [False, True])
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_cannot_be_opened_again_stays_open(
    place: Workplace, method: str, has_prompt: bool
) -> None:
    with ScriptedServer([DONE, DONE]) as server, editor_of(place, server) as client:
        session = new_session(client, place)
        if has_prompt:
            prompt(client, session, "First")
        config = place.home / "config.toml"
        text = config.read_text(encoding="utf-8")
        required = '\n[mcp_servers.broken]\ncommand = "/nowhere"\nrequired = true\n'
        config.write_text(text + required, encoding="utf-8")
        with pytest.raises(Refused) as refused:
            opens(client, method, session, place.cwd)
        config.write_text(text, encoding="utf-8")
        assert "broken" in str(refused.value)
        assert prompt(client, session, "And on") == "end_turn"
    (file,) = place.rollouts()
    assert session in file.name


def test_sessions_are_listed_closed_and_deleted(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server, editor_of(place, server) as client:
        ids = [new_session(client, place) for _ in range(2)]
        for number, session in enumerate(ids):
            prompt(client, session, f"Prompt {number}")
        listed = client.request("session/list", cwd=str(place.cwd))["sessions"]
        assert [each["title"] for each in listed] == ["Prompt 1", "Prompt 0"]
        assert {each["sessionId"] for each in listed} == set(ids)
        assert (
            client.request("session/list", cwd="/nowhere", cursor=None)["sessions"]
            == []
        )
        client.request("session/close", sessionId=ids[0])
        with pytest.raises(Refused, match="-32002"):
            prompt(client, ids[0])
        client.request("session/delete", sessionId=ids[0])
        client.request("session/delete", sessionId=ids[1])
        client.request("session/delete", sessionId="unknown")
        assert client.request("session/list")["sessions"] == []
        with pytest.raises(Refused, match="-32002"):
            client.request("session/load", sessionId=ids[0], cwd="/", mcpServers=[])


def test_closing_a_session_cancels_its_turn(place: Workplace) -> None:
    with (
        ScriptedServer([[*ev_text_deltas(["Hel"]), Pause()]]) as server,
        editor_of(place, server) as client,
    ):
        session = new_session(client, place)
        number = begin_prompt(client, session)
        client.until(lambda update: update["sessionUpdate"] == "agent_message_chunk")
        client.request("session/close", sessionId=session)
        assert client.result(number)["stopReason"] == "cancelled"


def test_a_command_that_outlasts_its_call_has_all_its_output_and_an_end(
    place: Workplace,
) -> None:
    """zed's adapter sends the last piece alone, and in one run never closed the call."""
    (place.cwd / "go").touch()
    script = "echo one; while [ -e go ]; do sleep 0.05; done; echo two"

    def later(request: Any) -> list[Any]:
        (place.cwd / "go").unlink()
        shown = json.dumps(request.input[-1])
        number = int(re.findall(r"session ID (\d+)", shown)[0])
        waits = {"session_id": number, "yield_time_ms": 60_000}
        return [*ev_function_call("call_2", "write_stdin", waits), ev_completed()]

    with (
        ScriptedServer([runs(script, yield_time_ms=250), later, DONE]) as server,
        editor_of(place, server) as client,
    ):
        prompt(client, new_session(client, place))
    assert client.call()["status"] == "completed"
    assert client.call()["content"] == [content("```\none\ntwo\n```")]


def test_a_cancel_is_for_the_prompts_that_wait_too(place: Workplace) -> None:
    with (
        ScriptedServer([[*ev_text_deltas(["Hel"]), Pause()], DONE]) as server,
        editor_of(place, server) as client,
    ):
        session = new_session(client, place)
        numbers = [begin_prompt(client, session, text) for text in ("first", "second")]
        client.until(lambda update: update["sessionUpdate"] == "agent_message_chunk")
        client.notify("session/cancel", sessionId=session)
        assert [client.result(n)["stopReason"] for n in numbers] == [
            "cancelled",
            "cancelled",
        ]
        assert prompt(client, session, "third") == "end_turn"
    assert len(server.requests) == 2


def test_sessions_run_side_by_side_each_in_its_folder(
    place: Workplace, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    # Each waits for the other one's file.
    both = f"[ -e {place.cwd}/here ] && [ -e {other}/here ]"
    script = f"touch here; until {both}; do sleep 0.05; done"
    call = runs(script, yield_time_ms=60_000)

    def answer(request: Any) -> list[Any]:
        return DONE if "call_1" in json.dumps(request.input) else call

    with (
        ScriptedServer([answer] * 4, check_prefix=False) as server,
        editor_of(place, server) as client,
    ):
        sessions = [
            new_session(client, place, cwd=str(cwd)) for cwd in (place.cwd, other)
        ]
        numbers = [begin_prompt(client, session) for session in sessions]
        assert [client.result(n)["stopReason"] for n in numbers] == [
            "end_turn",
            "end_turn",
        ]
    assert {call["rawInput"]["cwd"] for call in client.calls().values()} == {
        *(str(place.cwd), str(other))
    }


def test_a_server_of_the_editor_is_not_looked_for_in_the_configuration(
    place: Workplace,
) -> None:
    bad: dict[str, Any] = {"name": "bad", "command": "/no/such/program"}
    bad |= {"args": [], "env": []}
    with ScriptedServer([DONE]) as server, editor_of(place, server) as client:
        session = new_session(client, place, mcpServers=[bad])
        assert prompt(client, session, "go") == "end_turn"
    told = client.said()
    assert "MCP server `bad` could not be started" in told
    assert "codex-py mcp test" not in told
