"""The same conversation with the released Codex and with us: requests, outputs, items and session files."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from codex_py.testing import Reply
from tests.support.agents import AgentServer, Step, calls, says, texts, to_first, waits
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment, jsonl

pytestmark = needs_codex

OURS, THEIRS = [sys.executable, "-m", "codex_py"], [CODEX or ""]


def play(
    place: Workplace,
    program: list[str],
    parent: list[Step],
    child: list[Step],
    *overrides: str,
) -> tuple[AgentServer, list[dict[str, Any]]]:
    """The server after one `exec --json`, and its items, with ids by the order of their appearance."""
    home, cwd = place.home / program[-1].replace("/", "_"), place.cwd
    home.mkdir()
    server = AgentServer(parent, child, check_prefix=False, check_calls=False)
    with server:
        # No model of the catalogue: for those, Codex sends the tools behind a search.
        settings = server.config_toml(
            model="mystery", request_max_retries=0, stream_max_retries=0
        )
        settings = f"{settings}\n[analytics]\nenabled = false\n"
        (home / "config.toml").write_text(settings, encoding="utf-8")
        options = [word for each in overrides for word in ("-c", each)]
        done = subprocess.run(
            [*program, "exec", "--json", "--skip-git-repo-check", *options, "go"],
            cwd=cwd,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    names = {each: f"child {n}" for n, each in enumerate(server.ids)}
    out = done.stdout.decode()
    for agent_id, name in {
        jsonl(done.stdout)[0]["thread_id"]: "parent",
        **names,
    }.items():
        out = out.replace(agent_id, name)
    items = [
        {
            "event": event["type"],
            **{k: v for k, v in event["item"].items() if k != "id"},
        }
        for event in jsonl(out.encode())
        if event["type"].startswith("item.")
        and event["item"]["type"] == "collab_tool_call"
    ]
    return server, items


def outputs(server: AgentServer) -> dict[str, str]:
    """The outputs of the calls, with names in place of ids."""
    found: dict[str, str] = {}
    for item in server.of_parent()[-1].input:
        if item["type"] == "function_call_output":
            text = str(item["output"])
            for number, agent_id in enumerate(server.ids):
                text = text.replace(agent_id, f"child {number}")
            found[item["call_id"]] = text
    return found


def without(data: str, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in json.loads(data).items() if key not in keys}


FAILS = Reply(
    status=400, body=b'{"error":{"message":"no such thing","type":"invalid"}}'
)
CASES: dict[str, tuple[list[Step], list[Step]]] = {
    "answers": (
        [
            calls("spawn_agent", "c1", message="count"),
            waits("c2"),
            to_first("send_input", "c3", message="again"),
            waits("c4"),
            to_first("close_agent", "c5"),
            waits("c6"),
            to_first("close_agent", "c7"),
            says("done"),
        ],
        [says("three"), says("four")],
    ),
    "comes back": (
        [
            calls("spawn_agent", "c1", message="count"),
            waits("c2"),
            to_first("close_agent", "c3"),
            to_first("resume_agent", "c4", key="id"),
            to_first("send_input", "c5", message="again"),
            waits("c6"),
            says("done"),
        ],
        [says("three"), says("four")],
    ),
    "forks": (
        [
            calls("spawn_agent", "c1", message="count", fork_context=True),
            waits("c2"),
            says("done"),
        ],
        [says("three")],
    ),
    "is refused": (
        [
            calls("spawn_agent", "c1"),
            calls(
                "spawn_agent", "c2", message="x", items=[{"type": "text", "text": "y"}]
            ),
            calls("spawn_agent", "c3", message=""),
            calls("wait_agent", "c4", targets=[]),
            calls(
                "send_input",
                "c5",
                target="01a2031b-cc93-7552-8ee4-f9bd54d27f31",
                message="x",
            ),
            calls("close_agent", "c6", target="01a2031b-cc93-7552-8ee4-f9bd54d27f31"),
            calls("wait_agent", "c7", targets=["01a2031b-cc93-7552-8ee4-f9bd54d27f31"]),
            calls("spawn_agent", "c8", items=[]),
            says("done"),
        ],
        [],
    ),
    "meets the limit": (
        [
            calls("spawn_agent", "c1", message="one"),
            calls("spawn_agent", "c2", message="two"),
            waits("c3"),
            says("done"),
        ],
        [says("three")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_conversation_is_that_of_codex(place: Workplace, case: str) -> None:
    parent, child = CASES[case]
    limit = (
        "agents.max_threads=1" if case == "meets the limit" else "agents.max_threads=6"
    )
    ours, our_items = play(place, OURS, parent, child, limit)
    theirs, their_items = play(place, THEIRS, parent, child, limit)
    assert our_items == their_items
    our_outputs, their_outputs = outputs(ours), outputs(theirs)
    for call_id, text in their_outputs.items():
        if '"nickname"' in text or '"submission_id"' in text:
            # Ids and names are anybody's.
            mine = json.loads(our_outputs[call_id])
            assert list(mine) == list(json.loads(text))
        else:
            assert our_outputs[call_id] == text
    assert [_heard(request) for request in ours.of_children()] == [
        _heard(request) for request in theirs.of_children()
    ]


def _heard(request: Any) -> tuple[Any, ...]:
    """What a request of a child has in common with every program's."""
    said = [text for role, text in texts(request) if role == "user"]
    names = ("x-openai-subagent",)
    is_of_parent = (
        request.headers["session-id"] == request.headers["x-codex-parent-thread-id"]
        and request.body["prompt_cache_key"] == request.headers["session-id"]
    )
    own = [
        text
        for text in said
        if not text.startswith(("<environment_context>", "# AGENTS"))
    ]
    return own, [request.headers[name] for name in names], is_of_parent


def test_codex_resumes_a_session_of_ours_with_its_children(place: Workplace) -> None:
    script = (
        [calls("spawn_agent", message="count"), waits(), says("done")],
        [says("three")],
    )
    server = AgentServer(*script, check_prefix=False, check_calls=False)
    with server:
        outcome = place.run(server, "go")
        (child,) = server.ids
        place_file = place.home / "config.toml"
        settings = place_file.read_text(encoding="utf-8")
        place_file.write_text(
            f"{settings}\n[analytics]\nenabled = false\n", encoding="utf-8"
        )

        def codex(*words: str) -> list[dict[str, Any]]:
            command = [
                *THEIRS,
                "exec",
                "--json",
                "--skip-git-repo-check",
                "resume",
                *words,
                "on",
            ]
            done = subprocess.run(
                command,
                cwd=place.cwd,
                env=environment(place.home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=120,
                check=False,
            )
            return jsonl(done.stdout)

        # Codex counts the seconds of a file, and the next step of the parent may take less.
        (file,) = [path for path in place.rollouts() if child in path.name]
        os.utime(file, (time.time() - 60, time.time() - 60))
        last, by_hand = codex("--last"), codex(child)
    assert last[0]["thread_id"] == outcome.events[0]["thread_id"]
    assert by_hand[0]["thread_id"] == child
    said = [text for _, text in texts(server.requests[-1])]
    assert [text for text in said if text in {"count", "three", "on"}] == [
        "count",
        "three",
        "on",
    ]
