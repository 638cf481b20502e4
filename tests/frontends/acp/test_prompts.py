"""What a client puts into prompts, chooses for a session, and brings with it.

Also tests `command_line/session_report.py`.
"""

import base64
import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.codex_process import start_codex_py
from tests.support.editor import (
    Refused,
    always,
    begin_prompt,
    editor,
    new_session,
    prompt,
)
from tests.support.mcp import odd_command
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
FREE = ("-s", "danger-full-access")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE = {
    "type": "image",
    "mimeType": "image/png",
    "data": base64.b64encode(PNG).decode(),
}


def last_prompt(server: ScriptedServer) -> list[dict[str, Any]]:
    """The content parts of the last user message that was sent."""
    messages = [
        item for item in server.requests[-1].input if item.get("role") == "user"
    ]
    return messages[-1]["content"]


def test_the_parts_of_a_prompt_reach_the_model(place: Workplace) -> None:
    selection = {"uri": "file:///a%20b/c.py#L3-4", "text": "x = 1\n"}
    parts = [
        {"type": "text", "text": "Explain "},
        {"type": "resource_link", "name": "c.py", "uri": "file:///a%20b/c.py"},
        {"type": "text", "text": " and "},
        {"type": "resource", "resource": selection},
        {
            "type": "resource",
            "resource": {"uri": "file:///x.png", **_blob("image/png")},
        },
        {
            "type": "resource",
            "resource": {"uri": "file:///x.zip", **_blob("application/zip")},
        },
        {"type": "resource_link", "name": "odd", "uri": "http://[odd"},
        IMAGE,
    ]
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            assert prompt(client, new_session(client, place), *parts) == "end_turn"
        content = last_prompt(server)
    said = "".join(part.get("text", "") for part in content)
    assert (
        "Explain [@c.py](/a b/c.py) and [@c.py#L3-4](/a b/c.py#L3-4)[@x.png](/x.png)[@x.zip](/x.zip)[@odd](http://[odd)"
        '\n\n<context ref="/a b/c.py#L3-4">\nx = 1\n\n</context>'
    ) in said
    assert [part["type"] for part in content].count("input_image") == 2


def test_the_images_of_a_prompt_are_there_when_it_is_loaded(place: Workplace) -> None:
    with ScriptedServer([DONE, DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            prompt(client, session, "First")
            prompt(client, session, "Look", IMAGE)
        with editor(place, *FREE) as again:
            params: dict[str, Any] = {"cwd": str(place.cwd), "mcpServers": []}
            again.request("session/load", sessionId=session, **params)
    first, second, image = again.of_kind("user_message_chunk")
    texts = [each["content"]["text"] for each in (first, second)]
    assert texts == ["First", "Look"]
    assert image["content"] == IMAGE
    assert image["messageId"] == second["messageId"] != first["messageId"]


def _blob(kind: str) -> dict[str, str]:
    return {"blob": IMAGE["data"], "mimeType": kind}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "audio", "mimeType": "audio/wav", "data": ""},
        {**IMAGE, "data": "no base64!"},
        {"type": "text"},
        {"type": "video"},
        "text",
        {"type": "text", "text": " \n"},
    ],
)
def test_a_part_that_cannot_be_used_is_refused(place: Workplace, part: Any) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            with pytest.raises(Refused, match="-32602"):
                client.request("session/prompt", sessionId=session, prompt=[part])
            assert prompt(client, session) == "end_turn"


def test_a_path_is_no_command(place: Workplace) -> None:
    """opencode takes it for one, and the model never gets the text."""
    with ScriptedServer([DONE, DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            prompt(client, session, "/usr/bin is what?")
            assert last_prompt(server)[0]["text"] == "/usr/bin is what?"
            # Without a slash it is no command either.
            prompt(client, session, "init")
            assert last_prompt(server)[0]["text"] == "init"


def test_commands_are_offered_and_run(place: Workplace) -> None:
    (place.home / "prompts").mkdir()
    (place.home / "prompts" / "greet.md").write_text(
        "---\ndescription: Greets\nargument-hint: WHO\n---\nSay hello to $1\n",
        encoding="utf-8",
    )
    # Ours counts, where both have a name.
    (place.cwd.parent / ".claude" / "commands").mkdir(parents=True)
    (place.cwd.parent / ".claude" / "commands" / "init.md").write_text(
        "Mine", encoding="utf-8"
    )
    with ScriptedServer([DONE] * 4, check_prefix=False) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            told = client.until(
                lambda u: u["sessionUpdate"] == "available_commands_update"
            )
            offered = {each["name"]: each for each in told["availableCommands"]}
            assert offered.keys() == {
                "init",
                "compact",
                "review",
                "status",
                "help",
                "mcp",
                "skills",
                "diff",
                "user:init",
                "prompts:greet",
            }
            assert len(told["availableCommands"]) == len(offered)
            assert offered["init"]["description"] == "have AGENTS.md written"
            assert offered["prompts:greet"]["input"] == {"hint": "WHO"}
            prompt(client, session, "/prompts:greet\nAda")
            assert last_prompt(server)[0]["text"] == "Say hello to Ada"
            prompt(client, session, "/init")
            assert "AGENTS.md" in last_prompt(server)[0]["text"]
            assert prompt(client, session, "/compact") == "end_turn"
            assert "think" in {call["kind"] for call in client.calls().values()}
            with pytest.raises(Refused, match="git"):
                prompt(client, session, "/review")
            assert prompt(client, session) == "end_turn"


def test_commands_about_the_session_are_answered_without_the_model(
    place: Workplace,
) -> None:
    skill = place.home / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        "---\nname: greet\ndescription: Greets\n---\nHi\n", encoding="utf-8"
    )
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        who = ["-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run(["git", *who, *command], cwd=place.cwd, check=True)
    (place.cwd / "new.txt").write_text("hello\n", encoding="utf-8")
    with ScriptedServer([DONE, DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)

            def answer(command: str) -> str:
                known = len(client.updates)
                assert prompt(client, session, command) == "end_turn"
                shown = client.updates[known:]
                assert shown[-1]["sessionUpdate"] == "agent_message_chunk"
                return shown[-1]["content"]["text"]

            assert session in answer("/status")
            assert "/mcp [verbose]" in answer("/help")
            assert answer("/mcp") == "No MCP servers are configured."
            assert "$greet  Greets" in answer("/skills")
            assert "+hello" in answer("/diff")
            assert server.requests == []
            # With other words behind it, it is a sentence for the model.
            prompt(client, session, "/status of what?")
            assert last_prompt(server)[0]["text"] == "/status of what?"
            assert client.of_kind("session_info_update")[0]["title"] == (
                "/status of what?"
            )
            assert prompt(client, session) == "end_turn"


def test_a_diff_outside_of_a_repository_is_refused(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            with pytest.raises(Refused, match="git repository"):
                prompt(client, session, "/diff")
            assert prompt(client, session) == "end_turn"


def test_permissions_model_and_effort_are_options(place: Workplace) -> None:
    with ScriptedServer([DONE] * 5) as server:
        place.configure(server)
        with editor(place) as client:
            opened = client.request("session/new", cwd=str(place.cwd), mcpServers=[])
            session = opened["sessionId"]
            options = {each["id"]: each for each in opened["configOptions"]}
            assert {each["category"] for each in options.values()} == {
                *("mode", "model", "thought_level")
            }
            assert options["mode"]["currentValue"] == "read-only"
            modes = [each["value"] for each in options["mode"]["options"]]
            assert modes == [each["id"] for each in opened["modes"]["availableModes"]]
            assert modes == [
                *("ask", "never-ask", "read-only", "full-access", "configured", "plan")
            ]

            def choose(option: str, value: Any) -> dict[str, Any]:
                chosen = client.request(
                    "session/set_config_option",
                    sessionId=session,
                    configId=option,
                    value=value,
                )
                return {
                    each["id"]: each["currentValue"] for each in chosen["configOptions"]
                }

            assert choose("effort", "high")["effort"] == "high"
            assert choose("mode", "full-access")["mode"] == "full-access"
            assert client.updates[-2:] == [
                {
                    "sessionUpdate": "current_mode_update",
                    "currentModeId": "full-access",
                },
                {
                    "sessionUpdate": "config_option_update",
                    "configOptions": client.updates[-1]["configOptions"],
                },
            ]
            model = options["model"]["options"][-1]["value"]
            assert choose("model", model)["model"] == model
            prompt(client, session)
            body = server.requests[-1].body
            assert (body["model"], body["reasoning"]["effort"]) == (model, "high")
            (file,) = place.rollouts()
            assert '"sandbox_policy":{"type":"danger-full-access"}' in file.read_text(
                encoding="utf-8"
            )
            client.request("session/set_mode", sessionId=session, modeId="plan")
            prompt(client, session)
            assert "<collaboration_mode>" in json.dumps(
                server.requests[-1].body["input"]
            )
            assert choose("mode", "configured")["mode"] == "read-only"
            for option, value in (
                ("mode", "yolo"),
                ("speed", "high"),
                ("model", 3),
                ("effort", None),
            ):
                with pytest.raises(Refused, match="-32602"):
                    choose(option, value)


def test_a_choice_during_a_turn_counts_for_the_next_one(place: Workplace) -> None:
    (place.cwd / "go").touch()
    wait = "while [ -e go ]; do sleep 0.05; done"
    call = ev_function_call(
        "call_1", "exec_command", {"cmd": wait, "yield_time_ms": 60_000}
    )
    with ScriptedServer([[*call, ev_completed()], DONE, DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            number = begin_prompt(client, session)
            client.until(lambda update: update["sessionUpdate"] == "tool_call")
            params = {"sessionId": session, "configId": "effort", "value": "low"}
            client.request("session/set_config_option", **params)
            (place.cwd / "go").unlink()
            client.result(number)
            prompt(client, session)
    *before, last = [
        "low" in json.dumps(sent.body.get("reasoning")) for sent in server.requests
    ]
    assert last
    assert not any(before)


def odd(place: Workplace, behaviour: str, name: str = "My server") -> dict[str, Any]:
    """A server as a client names it."""
    command, *args = odd_command(behaviour, place.home / "messages")
    return {
        "name": name,
        "command": command,
        "args": args,
        "env": [{"name": "GIVEN", "value": "yes"}],
    }


def test_servers_of_the_client_become_those_of_the_session(place: Workplace) -> None:
    call = ev_function_call("call_1", "mcp__My-server__echo", {"text": "hi"})
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place, mcpServers=[odd(place, "plain")])
            assert prompt(client, session) == "end_turn"
    shown = client.call()
    assert (shown["title"], shown["status"]) == ("My-server.echo", "completed")
    assert shown["rawInput"] == {"text": "hi"}
    assert '"text": "hi"' in json.dumps(shown["content"]).replace("\\", "")


def test_servers_whose_names_become_the_same_are_all_there(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            names = ("a b", "a/b", "a-b")
            servers = [{**odd(place, "plain"), "name": name} for name in names]
            session = new_session(client, place, mcpServers=servers)
            assert prompt(client, session) == "end_turn"
    offered = json.dumps(server.requests[0].fields["tools"])
    for name in ("a-b", "a-b-2", "a-b-3"):
        assert f"mcp__{name}" in offered


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"result": {"action": "accept", "content": {"name": "Ada"}}}, "Ada"),
        ({"result": {"action": "decline"}}, "decline"),
        ({"result": {"action": "_later", "content": {}}}, "decline"),
        ({"result": 3}, "decline"),
        ({"error": {"code": -1, "message": "no"}}, "decline"),
    ],
)
def test_a_server_asks_the_user_of_the_client(
    place: Workplace, answer: Any, told: str
) -> None:
    call = ev_function_call("call_1", "mcp__My-server__asks", {})
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        can: dict[str, Any] = {"elicitation": {"form": {}}}
        with editor(place, *FREE, capabilities=can, answer=always(answer)) as client:
            session = new_session(client, place, mcpServers=[odd(place, "asks")])
            assert prompt(client, session) == "end_turn"
    assert len(client.asked) == 1
    assert told in json.dumps(server.requests[-1].input[-1])


@pytest.mark.parametrize(
    "servers",
    [
        [{"type": "sse", "name": "x", "url": "http://127.0.0.1:1", "headers": []}],
        [{"name": "x"}],
        [{"name": "x", "command": "y", "args": [], "env": {"A": "b"}}],
        ["x"],
        {"x": {}},
        "x",
    ],
)
def test_a_server_that_cannot_be_used_is_refused(
    place: Workplace, servers: Any
) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            with pytest.raises(Refused, match="-32602"):
                new_session(client, place, mcpServers=servers)
            assert new_session(client, place, mcpServers=None)


def test_a_missing_key_is_said(place: Workplace) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        with editor(place, env={"MOCK_KEY": ""}) as client:
            with pytest.raises(Refused, match=r"-32000: .*MOCK_KEY"):
                new_session(client, place)
            with pytest.raises(Refused, match=r"-32000: .*MOCK_KEY"):
                client.request("authenticate", methodId="api-key")
            with pytest.raises(Refused, match="-32602"):
                client.request("authenticate", methodId="login")
        with editor(place) as client:
            client.request("authenticate", methodId="api-key")
            client.request("logout")


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (b"sk-typed-1234\n", 0, b"API key saved."),
        (b"\n", 1, b"Error: no API key was given"),
        (b"\x04", 1, b"Error: no API key was given"),
        (b"two words\n", 1, b"Error: This is no API key"),
        (b"\x03", 130, b""),
    ],
)
def test_a_key_is_asked_for_at_a_terminal_that_the_client_opens(
    place: Workplace, typed: bytes, code: int, said: bytes
) -> None:
    (place.home / "config.toml").write_text("", encoding="utf-8")
    ours, theirs = os.openpty()
    program = start_codex_py(
        ["acp", "login"],
        place.cwd,
        environment(place.home),
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        terminal=True,
    )
    os.close(theirs)
    with program:
        shown = b""
        while b"API key" not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, typed)
        # Linux reports the end of a terminal as an error.
        with suppress(OSError):
            while more := os.read(ours, 1024):
                shown += more
        assert program.wait(60) == code
    os.close(ours)
    assert said in shown
    assert b"Traceback" not in shown
    assert b"sk-typed" not in shown
    if code == 0:
        stored = json.loads((place.home / "auth.json").read_text(encoding="utf-8"))
        assert stored["OPENAI_API_KEY"] == "sk-typed-1234"


def test_further_folders_of_a_session_may_be_written(
    place: Workplace, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, "-s", "workspace-write") as client:
            session = new_session(client, place, additionalDirectories=[str(other)])
            for name, value in (("mode", "read-only"), ("mode", "ask")):
                params = {"sessionId": session, "configId": name, "value": value}
                client.request("session/set_config_option", **params)
            prompt(client, session)
            for folders in (["other"], [3], "x"):
                with pytest.raises(Refused, match="-32602"):
                    new_session(client, place, additionalDirectories=folders)
    (file,) = place.rollouts()
    assert f'"writable_roots":["{place.cwd}","{other}"]' in file.read_text(
        encoding="utf-8"
    )
