"""Whatever becomes of a call, people and programs see it: live, as text, and when the session is read back."""

import resource
import signal
from typing import Any

import pytest

from codex_py.app.thread import thread_items
from codex_py.protocol.event_items import ThreadItem
from codex_py.rollout.reader import read_conversation
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.images import PNG
from tests.support.program import Workplace, jsonl, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
NO_FIT = "*** Begin Patch\n*** Update File: f\n@@\n-not there\n+new\n*** End Patch"
CALLS = [
    *ev_custom_tool_call("c0", "apply_patch", NO_FIT, index=0),
    *ev_function_call("c1", "exec_command", {"cmd": 5}, index=1),
    *ev_function_call("c2", "no_such_tool", {}, index=2),
    *ev_function_call("c2", "exec_command", {"cmd": "true"}, index=3),
    *ev_function_call("c4", "view_image", {"path": "none.png"}, index=4),
    *ev_function_call("c5", "view_image", {"path": "a.png"}, index=5),
    ev_completed(),
]


@pytest.fixture
def arranged(place: Workplace) -> Workplace:
    (place.cwd / "f").write_text("old\n", encoding="utf-8")
    (place.cwd / "a.png").write_bytes(PNG)
    return place


def test_every_call_that_fails_is_an_item_live_and_read_back(
    arranged: Workplace,
) -> None:
    with ScriptedServer([CALLS, DONE]) as server:
        outcome = arranged.run(server)
        answers = [
            item["output"] for item in server.requests[1].input if "output" in item
        ]
    assert outcome.code == 0
    started = {e["item"]["id"] for e in outcome.events if e["type"] == "item.started"}
    shown = sorted(outcome.items[:-1], key=lambda item: item["id"])
    patches = [item for item in shown if item["type"] == "file_change"]
    assert patches == [
        {
            "id": patches[0]["id"],
            "type": "file_change",
            "changes": [{"path": str(arranged.cwd / "f"), "kind": "update"}],
            "status": "failed",
            "error": {
                "code": "PatchFailed",
                "message": answers[0].removeprefix("[ERROR:PatchFailed] "),
            },
        }
    ]
    errors = [item for item in shown if item["type"] == "error"]
    assert {(item["tool"], item["call_id"], item["code"]) for item in errors} == {
        ("exec_command", "c1", "InvalidArgs"),
        ("no_such_tool", "c2", "UnknownTool"),
        ("exec_command", "c2", "InvalidArgs"),
    }
    images = [item for item in shown if item["type"] == "mcp_tool_call"]
    assert {(item["server"], item["tool"], item["status"]) for item in images} == {
        ("codex", "view_image", "failed"),
        ("codex", "view_image", "completed"),
    }
    assert {item["id"] for item in [*patches, *images]} <= started

    (path,) = arranged.rollouts()
    kinds = {item["type"] for item in shown}
    again = [
        item for item in thread_items(read_conversation(path)) if item.type in kinds
    ]
    assert sorted(map(facts, again)) == sorted(map(facts, shown))


def facts(item: ThreadItem | dict[str, Any]) -> tuple[str, ...]:
    """What has to be the same live and read back."""

    values: dict[str, Any] = item if isinstance(item, dict) else fields(item)
    names = ("type", "status", "tool", "call_id", "code", "message")
    error: dict[str, str] = values.get("error") or {}
    return (*(str(values.get(name)) for name in names), str(error.get("message")))


def fields(item: ThreadItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in ("type", *item.__dataclass_fields__)}


def test_text_mode_has_a_line_for_each(arranged: Workplace) -> None:
    with ScriptedServer([CALLS, DONE]) as server:
        arranged.configure(server)
        done = run_codex_py(
            ["exec", "--skip-git-repo-check", "-s", "danger-full-access", "go"],
            arranged.home,
            arranged.cwd,
        )
    err = done.stderr.decode()
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert (
        f"apply patch\npatch: failed\n{arranged.cwd}/f\napply_patch verification failed:"
        in err
    )
    for line in (
        "warning: exec_command failed: failed to parse function arguments: invalid value 5 for `cmd`",
        "warning: no_such_tool failed: unsupported call: no_such_tool\n",
        "warning: exec_command failed: duplicate call_id 'c2'",
        "mcp: codex/view_image (failed): unable to locate image at",
        "mcp: codex/view_image (completed)\n",
    ):
        assert line in err


def test_refused_calls_are_summed_up_with_the_option_that_allows_them(
    place: Workplace,
) -> None:
    add = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"
    refused = [
        *ev_custom_tool_call("c0", "apply_patch", add, index=0),
        *ev_custom_tool_call("c1", "apply_patch", add, index=1),
        ev_completed(),
    ]
    command = ["exec", "--skip-git-repo-check", "-s", "read-only", "go"]
    with ScriptedServer([refused, DONE, refused, DONE]) as server:
        place.configure(server)
        text = run_codex_py(command, place.home, place.cwd).stderr.decode()
        events = jsonl(run_codex_py([*command, "--json"], place.home, place.cwd).stdout)
    assert text.endswith(
        "\n2 calls were refused: the sandbox is read-only. To allow them: -s workspace-write\n"
    )
    assert events[-1]["denied"] == {"calls": 2, "allow": ["-s workspace-write"]}


def test_a_patch_that_the_disk_does_not_take_is_shown_with_the_reason(
    place: Workplace,
) -> None:
    def limit() -> None:
        # A write beyond it fails with EFBIG, as one on a full disk with ENOSPC.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    lines = f"+{'x' * 70}\n" * 1000
    patch = f"*** Begin Patch\n*** Add File: f\n{lines}*** End Patch"
    with ScriptedServer(
        [[*ev_custom_tool_call("c", "apply_patch", patch), ev_completed()], DONE]
    ) as server:
        place.configure(server)
        program = place.start("--ephemeral", "go", limit=limit)
        out, _ = program.communicate(timeout=120)
    assert b'"status":"failed","error":{"code":"EFBIG","message":"Failed to ' in out
    assert not (place.cwd / "f").exists()
