"""The same `hooks.json` with Codex and with this program, each on the same script: what hooks read and what the model
gets."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_custom_tool_call, ev_function_call
from tests.support.codex import CODEX, needs_codex
from tests.support.hooks import DONE, command, configure, group, note, says, specific
from tests.support.mcp import ODD_SERVER
from tests.support.program import Workplace, environment, jsonl
from tests.support.server import ScriptedServer

pytestmark = needs_codex

_OPTIONS = (
    *("exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access"),
    "--dangerously-bypass-hook-trust",
)
_PATCH = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n"
_ALL = (
    *(
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PermissionRequest",
    ),
    *(
        "PreCompact",
        "PostCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    ),
    "Interrupt",
)


@dataclass(frozen=True)
class Seen:
    code: int
    ends: list[str]
    """The events that are not items."""
    texts: list[list[Any]]
    """For each request the messages and outputs from the first note or prompt on, without what differs by design."""
    given: dict[str, list[dict[str, Any]]]
    """For each event what `note` was given, without ids and paths of this run."""
    files: list[str]


def _run(
    program: Sequence[str],
    place: Workplace,
    hooks: Mapping[str, Sequence[Any]],
    replies: Sequence[Any],
    config: str = "",
    options: Sequence[str] = (),
) -> Seen:
    noted = {event: [*hooks.get(event, ()), note(event)] for event in _ALL}
    configure(place, noted)
    # Codex compacts, and offers other tools: prefixes differ.
    with ScriptedServer(replies, check_prefix=False) as server:
        text = server.config_toml(request_max_retries=0, stream_max_retries=0)
        own = "[analytics]\nenabled = false\n[skills.bundled]\nenabled = false\n"
        extra = own if program[0] == CODEX else ""
        path = place.home / "config.toml"
        path.write_text(text + extra + config, encoding="utf-8")
        done = subprocess.run(
            [*program, *_OPTIONS, *options, "go"],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    lines = [event["type"] for event in jsonl(done.stdout)]
    return Seen(
        done.returncode,
        [line for line in lines if not line.startswith("item.")],
        [_texts(request.input, place) for request in server.requests],
        {event: given for event in _ALL if (given := _given(place, event))},
        sorted(path.name for path in place.cwd.iterdir()),
    )


def _texts(items: Sequence[Mapping[str, Any]], place: Workplace) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item.get("type") == "message":
            parts = [part["text"] for part in item["content"] if "text" in part]
            if item["role"] in {"user", "developer"}:
                found += [
                    (item["role"], part.replace(str(place.home), "HOME"))
                    for part in parts
                ]
        elif item["type"].endswith("_output"):
            output = item["output"]
            text = output if isinstance(output, str) else output[-1]["text"]
            text = text.removeprefix(
                "[ERROR:ApprovalDenied] "
            )  # which Codex does not have
            found.append(("output", text.rpartition("Output:\n")[2]))
    openings = ("<", "# AGENTS.md", "You are ")
    return [
        f for f in found if f[1].startswith("<hook") or not f[1].startswith(openings)
    ]


def _given(place: Workplace, event: str) -> list[dict[str, Any]]:
    path = place.home / f"{event}.log"
    if not path.exists():
        return []
    given = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for fields in given:
        for name in ("session_id", "turn_id", "transcript_path", "cwd"):
            if name in fields:
                fields[name] = type(fields[name]).__name__
        response = fields.get("tool_response")
        if isinstance(response, str) and "Exit code" in response:
            fields["tool_response"] = "the whole output of the patch"
    return given


def _patch(call_id: str = "c1") -> list[Any]:
    return [*ev_custom_tool_call(call_id, "apply_patch", _PATCH), ev_completed()]


def _mcp_call() -> list[Any]:
    call = ev_function_call("c1", "echo", {"text": "hi"}, namespace="mcp__odd")
    return [*call, ev_completed()]


_REWRITE = specific(
    "PreToolUse",
    permissionDecision="allow",
    updatedInput={"command": "echo rewritten; touch b"},
)
_ONCE = "grep -q 'active\":true' || { echo 'a <b> & \"c\"' >&2; exit 2; }"
_MCP_HOOK = {
    "type": "mcp_tool",
    "server": "odd",
    "tool": "echo",
    "input": {
        "decision": "block",
        "reason": "not ${tool_input.command} (${tool_name})",
    },
}
_CASES: Mapping[str, tuple[Mapping[str, Sequence[Any]], Sequence[Any]]] = {
    "nothing": ({}, [command("echo hi; exit 3"), DONE]),
    "deny by exit": (
        {"PreToolUse": ["echo ' no ' >&2; exit 2"]},
        [command("touch made"), DONE],
    ),
    "deny by JSON": (
        {"PreToolUse": [says({"decision": "block", "reason": "no"})]},
        [command("touch made"), DONE],
    ),
    "deny a patch": (
        {"PreToolUse": [group("echo no >&2; exit 2", "Edit")]},
        [_patch(), DONE],
    ),
    "deny, and context": (
        {
            "PreToolUse": [
                specific("PreToolUse", additionalContext="context"),
                specific(
                    "PreToolUse",
                    permissionDecision="deny",
                    permissionDecisionReason="no",
                ),
            ]
        },
        [command("touch made"), DONE],
    ),
    "no decision": (
        {
            "PreToolUse": [
                "exit 2",
                "exit 1",
                "echo text",
                "echo {",
                specific("PreToolUse", permissionDecision="ask"),
                says({"continue": False}),
            ]
        },
        [command("touch made"), DONE],
    ),
    "other names": (
        {
            "PreToolUse": [
                group("echo no >&2; exit 2", name)
                for name in ("ash", "bash", "exec_command", "Task")
            ]
        },
        [command("touch made"), DONE],
    ),
    "a regular expression": (
        {"PreToolUse": [group("echo no >&2; exit 2", "^Ba")]},
        [command("touch made"), DONE],
    ),
    "rewrite": ({"PreToolUse": [_REWRITE]}, [command("touch a"), DONE]),
    "replace the output": (
        {
            "PostToolUse": [
                says({"decision": "block", "reason": "instead"}),
                specific("PostToolUse", additionalContext="and this"),
            ]
        },
        [command("echo hi"), DONE],
    ),
    "context": (
        {
            "SessionStart": [
                "echo plain",
                specific("SessionStart", additionalContext="second"),
            ],
            "UserPromptSubmit": ["sleep 0.3; echo slow", "echo quick"],
            "PreToolUse": [specific("PreToolUse", additionalContext="before")],
            "PostToolUse": [specific("PostToolUse", additionalContext="after")],
        },
        [command("echo hi"), DONE],
    ),
    "stop": (
        {"Stop": [_ONCE, "grep -q 'active\":true' || { echo 2 >&2; exit 2; }"]},
        [DONE, DONE],
    ),
    "stop stopped": (
        {"Stop": ["echo 2 >&2; exit 2", says({"continue": False})]},
        [DONE],
    ),
    "prompt refused": ({"UserPromptSubmit": ["echo no >&2; exit 2"]}, []),
    "prompt stopped": ({"UserPromptSubmit": [says({"continue": False})]}, []),
    "start stopped": ({"SessionStart": [says({"continue": False})]}, []),
    "start cannot refuse": ({"SessionStart": ["echo no >&2; exit 2"]}, [DONE]),
    "a patch": ({}, [_patch(), DONE]),
    "an MCP call": ({}, [_mcp_call(), DONE]),
    "deny an MCP call": (
        {"PreToolUse": [group("echo no >&2; exit 2", "mcp__odd__.*")]},
        [_mcp_call(), DONE],
    ),
    "rewrite an MCP call": (
        {
            "PreToolUse": [
                specific(
                    "PreToolUse",
                    permissionDecision="allow",
                    updatedInput={"text": "other"},
                )
            ]
        },
        [_mcp_call(), DONE],
    ),
    "a tool as the hook": ({"PreToolUse": [_MCP_HOOK]}, [command("touch made"), DONE]),
}


@pytest.mark.parametrize("case", _CASES)
def test_hooks_read_and_do_what_they_do_in_codex(tmp_path: Path, case: str) -> None:
    hooks, replies = _CASES[case]
    config = ""
    if "MCP" in case or "tool as the hook" in case:
        server = f"command = {sys.executable!r}\nargs = [{str(ODD_SERVER)!r}, 'odd']\n"
        config = f"[mcp_servers.odd]\n{server}"
    codex, own = [
        _run(program, place, hooks, replies, config)
        for program, place in _programs(tmp_path)
    ]
    if case in {"prompt refused", "prompt stopped", "start stopped"}:
        # A script could not tell it from an answer.
        assert (own.code, codex.code) == (3, 0)
        own = replace(own, code=0)
    assert own == codex


def test_hooks_read_of_a_compaction_what_they_read_in_codex(tmp_path: Path) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "echo hi"})
    replies = [[*call, ev_completed(input_tokens=10_000)], DONE, DONE]
    options = ("-c", "model_auto_compact_token_limit=5000")
    hooks = {"SessionStart": [group("echo compacted", "compact")]}
    codex, own = [
        _run(program, place, hooks, replies, options=options)
        for program, place in _programs(tmp_path)
    ]
    assert own.given == codex.given
    assert [
        sum(text == "compacted" for _, text in seen.texts[-1]) for seen in (own, codex)
    ] == [
        1,
        1,
    ]


def test_a_stopped_compaction_ends_the_program_as_in_codex(tmp_path: Path) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "echo hi"})
    replies = [[*call, ev_completed(input_tokens=10_000)], DONE]
    options = ("-c", "model_auto_compact_token_limit=5000")
    hooks = {"PreCompact": [says({"continue": False, "stopReason": "no"})]}
    codex, own = [
        _run(program, place, hooks, replies, options=options)
        for program, place in _programs(tmp_path)
    ]
    assert (own.code, own.texts) == (codex.code, codex.texts)
    # For Codex, the turn was interrupted. It prints no end of it.
    assert {**own.given, "Interrupt": codex.given["Interrupt"]} == codex.given
    assert own.ends == [*codex.ends, "error", "turn.failed"]


def _programs(folder: Path) -> Iterator[tuple[Sequence[str], Workplace]]:
    assert CODEX is not None
    for name, program in (
        ("codex", [CODEX]),
        ("own", [sys.executable, "-m", "codex_py"]),
    ):
        place = Workplace(folder / name / "home", folder / name / "work")
        place.home.mkdir(parents=True)
        place.cwd.mkdir()
        yield program, place
