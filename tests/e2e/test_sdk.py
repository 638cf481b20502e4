"""The TypeScript SDK of Codex, unmodified, drives this program.

The SDK is what the variable `CODEX_SDK_DIR` points to: a folder in which `npm install @openai/codex-sdk`
was run. Without it, or without node, these tests are skipped.
"""

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Reply,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from tests.support.program import KEY, Workplace, environment
from tests.support.server import ScriptedServer

# Read now: the tests themselves run without the settings of whoever started them.
_SDK_DIR = os.environ.get("CODEX_SDK_DIR")
_DRIVER = Path(__file__).with_name("sdk_driver.mjs")
_PROGRAM = Path(sysconfig.get_path("scripts"), "codex-py")
_DEADLINE_S = 120.0
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)
_ONE_RESPONSE = {
    "input_tokens": 100,
    "cached_input_tokens": 50,
    "cache_write_input_tokens": 0,
    "output_tokens": 20,
    "reasoning_output_tokens": 5,
}


@pytest.fixture
def sdk_dir() -> Path:
    if _SDK_DIR is None:
        pytest.skip("CODEX_SDK_DIR is not set")
    if shutil.which("node") is None:
        pytest.skip("there is no node on PATH")
    if not _PROGRAM.exists():
        pytest.skip(f"{_PROGRAM} is not installed")
    return Path(_SDK_DIR)


class Sdk:
    """Runs turns through the SDK, in the folder of a `Workplace`."""

    def __init__(self, folder: Path, place: Workplace) -> None:
        self._folder = folder
        self._place = place
        self.thread = {
            "workingDirectory": str(place.cwd),
            "skipGitRepoCheck": True,
            "sandboxMode": "danger-full-access",
        }

    def run(self, *turns: dict[str, Any], **codex: Any) -> list[dict[str, Any]]:
        """One result for each turn, see `sdk_driver.mjs`; the first starts a thread if it says nothing.

        `codex`: options of `Codex`, beside the program and its environment.
        """
        first, *rest = turns
        if "thread" not in first and "resume" not in first:
            first = {"thread": self.thread, **first}
        options = {
            "codexPathOverride": str(_PROGRAM),
            "env": environment(self._place.home),
            **codex,
        }
        done = subprocess.run(
            ["node", str(_DRIVER), str(self._folder)],
            cwd=self._place.home,
            input=json.dumps({"codex": options, "turns": [first, *rest]}),
            capture_output=True,
            encoding="utf-8",
            timeout=_DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def sdk(sdk_dir: Path, place: Workplace) -> Sdk:
    return Sdk(sdk_dir, place)


def says(text: str) -> list[dict[str, Any]]:
    return [ev_created(), *ev_message(text), ev_completed()]


def calls(*events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [ev_created(), *(event for item in events for event in item), ev_completed()]


def command(call_id: str, line: str, index: int) -> list[dict[str, Any]]:
    return ev_function_call(call_id, "exec_command", {"cmd": line}, index=index)


def sent_text(item: dict[str, Any]) -> str:
    return "".join(part["text"] for part in item["content"])


def turn_context(place: Workplace) -> dict[str, Any]:
    """What the session file says that the turn ran with."""
    (path,) = place.rollouts()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return next(line["payload"] for line in lines if line["type"] == "turn_context")


def test_streams_every_kind_of_item(sdk: Sdk, place: Workplace) -> None:
    (place.cwd / "a.txt").write_text("one\n", encoding="utf-8")
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: b.txt\n+b\n"
        "*** End Patch"
    )
    plan = {
        "plan": [
            {"step": "a", "status": "completed"},
            {"step": "b", "status": "pending"},
        ]
    }
    script = [
        calls(
            ev_reasoning("**Thinking**"),
            command("c1", "while [ ! -e go ]; do sleep 0.01; done; echo slow", 1),
            command("c2", "echo bad >&2; touch go; exit 3", 2),
        ),
        calls(
            ev_custom_tool_call("p1", "apply_patch", patch),
            ev_function_call("u1", "update_plan", plan, index=1),
        ),
        says("Done."),
    ]
    with ScriptedServer(script) as server:
        place.configure(server)
        (result,) = sdk.run({"input": "do it"})

    slow = "/bin/bash -lc 'while [ ! -e go ]; do sleep 0.01; done; echo slow'"
    bad = "/bin/bash -lc 'echo bad >&2; touch go; exit 3'"
    changes = [
        {"path": str(place.cwd / "a.txt"), "kind": "update"},
        {"path": str(place.cwd / "b.txt"), "kind": "add"},
    ]
    todo = [{"text": "a", "completed": True}, {"text": "b", "completed": False}]

    def item(event: str, number: int, **fields: Any) -> dict[str, Any]:
        return {"type": f"item.{event}", "item": {"id": f"item_{number}", **fields}}

    def ran(
        event: str, number: int, line: str, output: str, code: int | None
    ) -> dict[str, Any]:
        status = "in_progress" if code is None else "failed" if code else "completed"
        facts = {"aggregated_output": output, "exit_code": code, "status": status}
        return item(event, number, type="command_execution", command=line, **facts)

    events = result["events"]
    # The first cannot end before the second has run; which end is seen first is open.
    events[5:7] = sorted(events[5:7], key=lambda event: event["item"]["id"])
    # A field of ours, which the SDK hands on.
    assert events[-1].pop("diff").startswith("diff --git a/")
    assert events == [
        {"type": "thread.started", "thread_id": result["threadId"]},
        {"type": "turn.started"},
        item("completed", 0, type="reasoning", text="**Thinking**"),
        ran("started", 1, slow, "", None),
        ran("started", 2, bad, "", None),
        ran("completed", 1, slow, "slow\n", 0),
        ran("completed", 2, bad, "bad\n", 3),
        item("started", 3, type="file_change", changes=changes, status="in_progress"),
        item("completed", 3, type="file_change", changes=changes, status="completed"),
        item("started", 4, type="todo_list", items=todo),
        item("completed", 5, type="agent_message", text="Done."),
        item("completed", 4, type="todo_list", items=todo),
        {
            "type": "turn.completed",
            "usage": {name: 3 * tokens for name, tokens in _ONE_RESPONSE.items()},
        },
    ]
    assert "error" not in result
    assert server.requests[0].headers["originator"] == "codex_sdk_ts"


def test_a_thread_goes_on_with_what_was_said(sdk: Sdk, place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two"), says("three")]) as server:
        place.configure(server)
        first, second = sdk.run(
            {"input": "first", "run": True}, {"input": "second", "run": True}
        )
        thread_id = first["threadId"]
        (third,) = sdk.run(
            {"resume": thread_id, "thread": sdk.thread, "input": "third", "run": True}
        )

    assert [second["threadId"], third["threadId"]] == [thread_id, thread_id]
    assert third["turn"] == {
        "items": [{"id": "item_0", "type": "agent_message", "text": "three"}],
        "finalResponse": "three",
        "usage": {name: 3 * tokens for name, tokens in _ONE_RESPONSE.items()},
    }
    talk = [sent_text(item) for item in server.requests[2].input[3:]]
    assert talk == ["first", "one", "second", "two", "third"]
    assert len(place.rollouts()) == 1


def test_the_output_schema_is_sent_for_its_turn_alone(
    sdk: Sdk, place: Workplace
) -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    }
    with ScriptedServer([says('{"ok":true}'), says("free")]) as server:
        place.configure(server)
        first, _ = sdk.run(
            {"input": "go", "options": {"outputSchema": schema}, "run": True},
            {"input": "and now", "run": True},
        )
    assert first["turn"]["finalResponse"] == '{"ok":true}'
    formats = [request.body["text"].get("format") for request in server.requests]
    assert formats == [
        {
            "type": "json_schema",
            "strict": True,
            "name": "codex_output_schema",
            "schema": schema,
        },
        None,
    ]


def test_images_go_before_the_text(sdk: Sdk, place: Workplace) -> None:
    image = place.cwd / "a.png"
    image.write_bytes(_PNG)
    parts = [
        {"type": "text", "text": "what is"},
        {"type": "local_image", "path": str(image)},
        {"type": "text", "text": "this?"},
    ]
    with ScriptedServer([says("A dot."), says("Still a dot.")]) as server:
        place.configure(server)
        # On a thread that goes on, the SDK puts `--image` behind `resume ID`.
        sdk.run({"input": parts}, {"input": parts})
    for request in server.requests:
        content = request.input[-1]["content"]
        assert [part["type"] for part in content] == [
            "input_text",
            "input_image",
            "input_text",
            "input_text",
        ]
        assert content[1]["image_url"].startswith("data:image/png;base64,")
        assert content[-1]["text"] == "what is\n\nthis?"


def test_an_aborted_turn_leaves_no_process_and_can_be_gone_on_with(
    sdk: Sdk, place: Workplace
) -> None:
    script = [calls(command("c1", "echo $$ > pid; exec sleep 600", 0)), says("Fine.")]
    with ScriptedServer(script) as server:
        place.configure(server)
        aborted, after = sdk.run(
            {"input": "go", "abortOn": "item.started"}, {"input": "go on", "run": True}
        )
    assert aborted["error"]["name"] == "AbortError"
    # A `turn.failed` would make it an error like any other for `Thread.run`.
    assert [event["type"] for event in aborted["events"]][-2:] == [
        "item.completed",
        "error",
    ]
    assert aborted["events"][-1]["code"] == "aborted"
    pid = place.cwd / "pid"
    if pid.exists():  # the command may have been stopped before it came to that
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text(encoding="ascii")), 0)
    assert after["threadId"] == aborted["threadId"]
    assert after["turn"]["finalResponse"] == "Fine."


def test_an_aborted_run_is_an_abort_error(sdk: Sdk, place: Workplace) -> None:
    begun = place.cwd / "begun"
    with ScriptedServer(
        [calls(command("c1", "touch begun; exec sleep 600", 0))]
    ) as server:
        place.configure(server)
        (aborted,) = sdk.run({"input": "go", "run": True, "abortOnFile": str(begun)})
    assert aborted["error"]["name"] == "AbortError"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            Reply(status=400, body=b'{"error":{"message":"No such model: gpt-5.5"}}'),
            "unexpected status 400 Bad Request: No such model: gpt-5.5, url: http://127.0.0.1:",
        ),
        ([ev_created(), ev_failed("invalid_prompt", "Not this.")], "Not this."),
    ],
)
def test_a_failed_turn_says_why(
    sdk: Sdk, place: Workplace, reply: Any, message: str
) -> None:
    with ScriptedServer([reply, reply]) as server:
        place.configure(server)
        whole, streamed = sdk.run(
            {"input": "go", "run": True}, {"thread": sdk.thread, "input": "go"}
        )
    assert whole["error"]["name"] == "Error"
    failure = streamed["events"][-1]
    assert failure["type"] == "turn.failed"
    for error in (whole["error"], failure["error"]):
        assert error["message"].startswith(message)
    # The SDK quotes standard error as well, which holds nothing beside the notice that it began with.
    assert streamed["error"]["message"].startswith("Codex Exec exited with code 1: ")


def test_a_failure_before_the_turn_reaches_the_caller(
    sdk: Sdk, place: Workplace
) -> None:
    with ScriptedServer() as server:
        place.configure(server)
        (result,) = sdk.run(
            {"thread": {"workingDirectory": str(place.cwd)}, "input": "go"}
        )
    assert result["threadId"] is None
    assert result["events"] == []
    assert result["error"]["message"].endswith(
        "Not inside a trusted directory and --skip-git-repo-check was not specified."
        " To use this folder: git init, or `codex-py exec --trust`.\n"
    )


def test_base_url_and_key_are_those_of_the_built_in_provider(
    sdk: Sdk, place: Workplace
) -> None:
    thread = {**sdk.thread, "model": "gpt-5.5"}
    with ScriptedServer([says("Hello.")]) as server:
        (result,) = sdk.run(
            {"thread": thread, "input": "hi", "run": True},
            baseUrl=server.base_url,
            apiKey="sk-sdk",
        )
    assert result["turn"]["finalResponse"] == "Hello."
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == "Bearer sk-sdk"


def test_without_env_the_environment_is_that_of_the_caller(
    sdk: Sdk, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(place.home).items():
        monkeypatch.setenv(name, value)
    with ScriptedServer([says("Hello.")]) as server:
        place.configure(server)
        sdk.run({"input": "hi"}, env=None)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_config_overrides_of_both_kinds_arrive(sdk: Sdk, place: Workplace) -> None:
    with ScriptedServer([says("Hello.")]) as server:
        place.configure(server)
        sdk.run(
            {"input": "hi"},
            config={
                "model_verbosity": "high",
                "developer_instructions": 'Say "please".\nAlways.',
                "tools": {"update_plan": {"enabled": False}},
                "model_providers": {"mock": {"http_headers": {"x-team": "blue"}}},
            },
            configOverrides=["model_reasoning_summary=detailed"],
        )
    (request,) = server.requests
    body = request.body
    assert body["text"] == {"verbosity": "high"}
    assert body["reasoning"]["summary"] == "detailed"
    assert body["input"][1]["content"][0]["text"] == 'Say "please".\nAlways.'
    assert "update_plan" not in [tool.get("name") for tool in body["tools"]]
    assert request.headers["x-team"] == "blue"


def test_thread_options_arrive(sdk: Sdk, place: Workplace) -> None:
    extra = place.home.parent / "extra"
    extra.mkdir()
    thread = {
        **sdk.thread,
        "model": "gpt-5.6-sol",
        "threadSource": "ci",
        "sandboxMode": "workspace-write",
        "additionalDirectories": [str(extra), "/opt"],
        "modelReasoningEffort": "high",
        "webSearchMode": "live",
        "networkAccessEnabled": True,
        "approvalPolicy": "on-request",
    }
    with ScriptedServer([says("Hello.")]) as server:
        place.configure(server)
        sdk.run(
            {
                "thread": thread,
                "input": "hi",
                "options": {"cyberAccessProgram": "standard"},
            }
        )
    body = server.requests[0].body
    assert (body["model"], body["reasoning"]) == ("gpt-5.6-sol", {"effort": "high"})
    search = next(tool for tool in body["tools"] if tool["type"] == "web_search")
    assert search["external_web_access"] is True
    context = turn_context(place)
    # `exec` never asks, whatever is configured.
    assert context["approval_policy"] == "never"
    assert context["sandbox_policy"] == {
        "type": "workspace-write",
        "writable_roots": [str(place.cwd), str(extra), "/opt"],
        "network_access": True,
        "exclude_tmpdir_env_var": False,
        "exclude_slash_tmp": False,
    }


@pytest.mark.parametrize("policy", ["never", "on-request", "on-failure", "untrusted"])
def test_every_approval_policy_of_the_sdk_runs(
    sdk: Sdk, place: Workplace, policy: str
) -> None:
    with ScriptedServer([says("Hello.")]) as server:
        place.configure(server)
        (result,) = sdk.run(
            {
                "thread": {**sdk.thread, "approvalPolicy": policy},
                "input": "hi",
                "run": True,
            }
        )
    assert result["turn"]["finalResponse"] == "Hello."


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({"webSearchMode": "disabled"}, None),
        ({"webSearchMode": "cached"}, False),
        ({"webSearchEnabled": True}, True),
        ({"webSearchEnabled": False}, None),
    ],
)
def test_web_search_is_offered_as_asked(
    sdk: Sdk, place: Workplace, options: dict[str, Any], offered: bool | None
) -> None:
    with ScriptedServer([says("Hello.")]) as server:
        place.configure(server)
        sdk.run({"thread": {**sdk.thread, **options}, "input": "hi"})
    searches = [
        t for t in server.requests[0].body["tools"] if t["type"] == "web_search"
    ]
    access = [tool["external_web_access"] for tool in searches]
    assert access == ([] if offered is None else [offered])
