"""Undo of what a session did, whoever of it did it, and of nothing that others did."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.plan import plan_undo
from codex_py.protocol.events import TurnCompleted
from codex_py.testing import ev_completed, ev_custom_tool_call
from tests.support.hooks import DONE, command, group, run
from tests.support.patching import enveloped, tree
from tests.support.program import Workplace

FORMAT = "sed -i s/x=1/x\\ =\\ 1/ one.py two.py 2>&- || :"


@pytest.fixture(autouse=True)
def repository(place: Workplace) -> None:
    os.umask(0o022)
    (place.cwd / "one.py").write_text("x=0\n", encoding="utf-8")


def patch(call_id: str, *lines: str) -> list[dict[str, Any]]:
    return [
        *ev_custom_tool_call(call_id, "apply_patch", enveloped(*lines)),
        ev_completed(),
    ]


def diff_of(
    place: Workplace, replies: Sequence[Any], hooks: Mapping[str, Sequence[Any]]
) -> str:
    """Run a turn; the diff of its last event."""
    events = run(place, hooks, replies).events
    (end,) = [event for event in events if isinstance(event, TurnCompleted)]
    return end.diff or ""


def undo(cwd: Path, home: Path) -> Sequence[str]:
    """Undo the newest entry; the paths that were not brought back."""
    plan = plan_undo(Journal(home, cwd))
    plan.commit()
    return plan.unkept


UPDATE = patch("p1", "*** Update File: one.py", "-x=0", "+x=1")
ADD = patch("p2", "*** Add File: two.py", "+x=1")
COMMAND = command("echo more >> one.py; echo more > three", "c1")
WRITES = command("true", "c2")


@pytest.mark.parametrize(
    "replies",
    [[UPDATE], [UPDATE, ADD], [UPDATE, COMMAND], [COMMAND, ADD], [ADD, WRITES, UPDATE]],
)
@pytest.mark.parametrize(
    "hooks",
    [
        {"PostToolUse": [group(FORMAT, "apply_patch")]},
        {"PostToolUse": [FORMAT]},
        {"Stop": [FORMAT]},
        {"PreToolUse": ["echo pre > pre"], "PostToolUse": ["rm -f one.py"]},
        {"PostToolUse": ["echo other > two.py"]},
    ],
)
def test_changes_by_hooks_belong_to_the_turn(
    place: Workplace, replies: list[Any], hooks: Mapping[str, Sequence[Any]]
) -> None:
    before = tree(place.cwd)
    if "PostToolUse" in hooks and "rm" in str(hooks):
        replies = [reply for reply in replies if reply is not UPDATE] or [ADD]
    diff = diff_of(place, [*replies, DONE], hooks)
    after = tree(place.cwd)
    shown = {
        line for line in diff.splitlines() if line[:1] == "+" and line[:3] != "+++"
    }
    names = set(after) - set(before) | {
        name for name in after if after[name] != before.get(name)
    }
    for name in names:
        lines = after[name][1].decode().splitlines()
        assert {f"+{line}" for line in lines if line != "x=0"} <= shown
    assert len(shown) <= sum(len(after[name][1].splitlines()) for name in names)
    assert undo(place.cwd, place.home) == []
    assert tree(place.cwd) == before


def test_a_hook_that_writes_in_a_turn_that_only_reads_is_undone(
    place: Workplace,
) -> None:
    before = tree(place.cwd)
    hooks = {"PostToolUse": [group("echo seen > seen", "Bash")]}
    run(place, hooks, [command("ls"), DONE], flags={"sandbox_mode": "read-only"})
    assert "seen" in tree(place.cwd)
    undo(place.cwd, place.home)
    assert tree(place.cwd) == before
