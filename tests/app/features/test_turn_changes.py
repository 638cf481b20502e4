"""What a turn changed: in its last event, and in the journal.

Also tests `protocol/patched_file.py`.
"""

import asyncio
import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.features.turn_changes import TurnChanges
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import load_config
from codex_py.errors import ModelError
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.plan import plan_undo
from codex_py.protocol.events import Event, FilesPatched, TurnCompleted, TurnFailed
from codex_py.protocol.mcp import DecliningElicitor
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.tools import ToolCall
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.core.sessions import make_session
from tests.support.agents import AgentServer, waits
from tests.support.agents import calls as agent_calls
from tests.support.agents import says as agent_says
from tests.support.model import ScriptedModel, calls, completed, says
from tests.support.patching import enveloped
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


@pytest.mark.parametrize("override", ["features.undo=true", "features.undo=false"])
def test_the_last_event_of_a_turn_has_its_difference(tmp_path: Path, override: str):
    environment = {"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path)}
    config = load_config(cwd=tmp_path, overrides=[override], environment=environment)
    warnings: list[str] = []
    setup = SessionSetup(
        config, SessionOptions(), {}, None, DecliningElicitor(), warnings.append
    )
    patched = PatchedFile(tmp_path / "a", "update", None, b"1\n", b"2\n")
    events: list[Event] = []

    async def patch(_: ToolCall) -> str:
        session.emit(FilesPatched([patched]))
        return "ok"

    model = ScriptedModel(
        [says("no"), completed()],
        [calls("c1"), completed()],
        [says("done"), completed()],
        [calls("c2"), completed()],
        [ModelError("no more")],
        [says("no"), completed()],
    )
    session = make_session(
        model, features=[TurnChanges(setup)], tool=patch, sink=events.append
    )
    for prompt in ("nothing", "patch", "patch and fail", "nothing"):
        asyncio.run(session.run_turn(prompt))
    ends = [event for event in events if isinstance(event, TurnCompleted | TurnFailed)]
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    assert [(type(end), end.diff) for end in ends] == [
        (TurnCompleted, None),
        (TurnCompleted, diff),
        (TurnFailed, diff),
        (TurnCompleted, None),
    ]
    journal = Journal(config.home, tmp_path)
    kept = [
        journal.read(number, with_contents=False).turn for number in journal.numbers()
    ]
    assert [turn and turn.number for turn in kept] == (
        [] if override.endswith("false") else [3, 2]
    )


def turn(
    place: Workplace, *responses: list[dict[str, Any]], args: Sequence[str] = ("go",)
) -> str:
    """A turn of the real program; the diff of its last event."""
    with ScriptedServer([*responses, DONE]) as server:
        outcome = place.run(server, *args)
    assert outcome.code == 0
    return outcome.events[-1].get("diff", "")


def command(call_id: str, line: str) -> list[dict[str, Any]]:
    return [*ev_function_call(call_id, "exec_command", {"cmd": line}), ev_completed()]


def test_commands_and_patches_are_one_diff_and_one_entry(place: Workplace):
    (place.cwd / "a").write_text("1\n", encoding="utf-8")
    add = "*** Begin Patch\n*** {} File: a\n{}\n*** End Patch"
    first = add.format("Update", "-1\n+2")
    second = add.format("Update", "-3\n+4")
    outside = f"*** Begin Patch\n*** Add File: {place.cwd.parent}/b\n+b\n*** End Patch"

    def patch(call_id: str, text: str) -> list[dict[str, Any]]:
        return [
            *ev_function_call(call_id, "apply_patch", {"input": text}),
            ev_completed(),
        ]

    diff = turn(
        place,
        patch("c1", first),
        command("c2", "echo 3 >a; echo c >c"),
        patch("c3", second),
        patch("c4", outside),
    )
    assert diff == (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+4\n"
        "diff --git a/c b/c\nnew file mode 100644\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+c\n"
        f"diff --git a{place.cwd.parent}/b b{place.cwd.parent}/b\nnew file mode 100644\n"
        f"--- /dev/null\n+++ b{place.cwd.parent}/b\n@@ -0,0 +1 @@\n+b\n"
    )
    journal = Journal(place.home, place.cwd)
    found = journal.read(journal.numbers()[0]).turn
    assert found is not None
    assert (found.number, found.patches) == (1, (1, 2, 3))


def patched(call_id: str, *lines: str) -> list[dict[str, Any]]:
    patch = enveloped(*lines)
    return [*ev_function_call(call_id, "apply_patch", {"input": patch}), ev_completed()]


def test_a_file_that_a_patch_made_and_a_command_removed_is_no_change(place: Workplace):
    diff = turn(
        place,
        command("c1", "echo 1 >k"),
        patched("c2", "*** Add File: p", "+x"),
        command("c3", "cat p && rm p"),
        patched("c4", "*** Add File: q", "+x"),
        command("c5", "mv q r"),
    )
    assert [line for line in diff.splitlines() if line.startswith("+++")] == [
        "+++ b/k",
        "+++ b/r",
    ]
    journal = Journal(place.home, place.cwd)
    plan_undo(journal).commit()
    assert not any((place.cwd / name).exists() for name in "kpqr")


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: x\0y", "+z"),
        ("*** Delete File: x\0y",),
        ("*** Update File: x\0y", "@@", "-1", "+2"),
        ("*** Update File: a", "*** Move to: x\0y", "@@", "-1", "+2"),
        ("*** Add File: new", "+z", "*** Add File: x\0y", "+z"),
    ],
)
@pytest.mark.parametrize("switch", ["features.undo=true", "features.undo=false"])
def test_a_path_that_no_file_can_have_is_refused_as_a_patch_that_does_not_fit(
    place: Workplace, lines: Sequence[str], switch: str
):
    (place.cwd / "a").write_text("1\n", encoding="utf-8")
    with ScriptedServer([patched("c1", *lines), DONE]) as server:
        outcome = place.run(server, "-c", switch, "go")
    assert outcome.code == 0
    assert server.requests[-1].output("c1") == (
        "[ERROR:PatchFailed] apply_patch verification failed: "
        "path 'x\\x00y' has a NUL in it"
    )
    assert [path.name for path in place.cwd.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("line", "options"), [("ls -l", ()), ("touch b", ("-s", "read-only")), ("true", ())]
)
def test_a_turn_that_cannot_change_anything_is_not_copied(
    place: Workplace, line: str, options: Sequence[str]
):
    assert turn(place, command("c", line), args=(*options, "go")) == ""
    assert not (place.home / "codex-py" / "undo").exists()


def test_the_switch_turns_copies_off(place: Workplace):
    switch = ("-c", "features.undo=false")
    assert turn(place, command("c", "touch b"), args=(*switch, "go")) == ""
    assert not (place.home / "codex-py").exists()


def test_a_turn_whose_changes_can_no_longer_be_kept_ends_with_a_warning(
    place: Workplace,
):
    store = place.home / "codex-py/undo"
    with ScriptedServer(
        [command("c1", f"echo 1 >a; rm -r {store}; touch {store}"), DONE]
    ) as server:
        outcome = place.run(server)
    assert "What commands changed in this turn cannot be undone: " in str(
        outcome.items[-1]
    )
    assert outcome.code == 0


def test_an_empty_folder_named_like_a_repository_above_is_none(place: Workplace):
    (place.cwd.parent / ".git").mkdir()
    (place.cwd.parent / "elsewhere").touch()
    diff = turn(place, command("c", f"echo 1 >a; rm {place.cwd.parent}/elsewhere"))
    assert diff.count("diff --git") == 1


def test_a_resumed_session_counts_its_turns_on(place: Workplace):
    turn(place, command("c1", "echo 1 >a"))
    turn(place, args=("resume", "--last", "look"))
    turn(place, command("c2", "echo 2 >a"), args=("resume", "--last", "again"))
    journal = Journal(place.home, place.cwd)
    entries = [journal.read(number).turn for number in journal.numbers()]
    assert [found and found.number for found in entries] == [3, 1]


def test_the_commands_of_a_subagent_belong_to_the_turn(place: Workplace):
    with AgentServer(
        [agent_calls("spawn_agent", message="work"), waits(), agent_says("done")],
        [agent_calls("exec_command", cmd="echo c >c"), agent_says("child done")],
    ) as server:
        outcome = place.run(server)
    assert "+++ b/c" in outcome.events[-1]["diff"]
    assert len(Journal(place.home, place.cwd).numbers()) == 1


def test_a_turn_that_is_interrupted_is_kept_and_shown(place: Workplace):
    line = "echo 1 >a; touch ready; sleep 600"
    with ScriptedServer([command("c", line)]) as server:
        place.configure(server)
        with place.start(stderr=subprocess.DEVNULL) as program:
            wait = 'until [ -e "$1" ]; do sleep 0.02; done'
            ready = place.cwd / "ready"
            subprocess.run(["timeout", "30", "sh", "-c", wait, "sh", ready], check=True)
            program.send_signal(signal.SIGINT)
            out, _ = program.communicate(timeout=120)
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], "+++ b/a" in last["diff"]) == ("turn.failed", True)
    assert len(Journal(place.home, place.cwd).numbers()) == 1
    assert list((place.home / "codex-py" / "undo").glob("*/*.turn")) == []
