"""The table of docs/sessions.md that says what undo does with a change, tried cell by cell.

Tests `patch/undo/copies/run_times.py`.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import CodexError
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies import run_times
from codex_py.patch.undo.plan import EditedSince, plan_undo
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import Event, ItemStarted, TurnCompleted
from codex_py.testing import ev_completed, ev_custom_tool_call, ev_function_call
from tests.support.hooks import DONE, command, run
from tests.support.patching import enveloped, patch, tree
from tests.support.program import Workplace

DOCS = Path(__file__).parents[3] / "docs" / "sessions.md"
PATHS = {
    "text": "text",
    "new": "new",
    "deleted": "deleted",
    "mode": "mode",
    "link": "link",
    "submodule": "inner/file",
    "large": "large",
    "ignored file": "a.log",
    "ignored folder": "build",
}
ACT = """\
import os, sys
os.chdir(sys.argv[1])
for name in ("text", "new", "inner/file", "a.log"):
    open(name, "w").write("changed\\n")
os.unlink("deleted")
os.chmod("mode", 0o600)
os.unlink("link")
os.symlink("elsewhere", "link")
open("large", "w").truncate(12_000_000)
os.unlink("build/x")
"""
IDLE = "sh -c :"
"""Nobody can know that this changes nothing."""
PATCH = [
    *("*** Update File: text", "-old", "+changed", "*** Add File: new", "+changed"),
    *("*** Delete File: deleted", "*** Update File: inner/file", "-old", "+changed"),
    *("*** Update File: a.log", "-old", "+changed", "*** Delete File: build/x"),
]


def promised() -> Mapping[str, Mapping[str, str]]:
    """Rows of the table: by column, what becomes of a change."""
    lines = (
        DOCS.read_text(encoding="utf-8").partition("\n| who |")[2].partition("\n\n")[0]
    )
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")] for line in lines.splitlines()
    ]
    assert [cell for cell in head if cell] == list(PATHS)
    found = {row[1]: dict(zip(PATHS, row[2:], strict=False)) for row in rows}
    assert set(found) == set(ROWS)
    return found


@pytest.fixture(autouse=True)
def repository(place: Workplace) -> None:
    os.umask(0o022)
    root = place.cwd
    for folder in (root, root / "inner"):
        folder.mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (root / "build").mkdir()
    (root / ".gitignore").write_text("*.log\nbuild/\n", encoding="utf-8")
    for name in ("text", "deleted", "mode", "inner/file", "large", "a.log", "build/x"):
        (root / name).write_text("old\n", encoding="utf-8")
    (root / "link").symlink_to("text")
    (place.home / "act.py").write_text(ACT, encoding="utf-8")


class Turn:
    """One turn of a session, in which somebody changes a file of each kind."""

    def __init__(self, place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.monkeypatch = place, monkeypatch
        self.act_argv = [
            sys.executable,
            "-IS",
            str(place.home / "act.py"),
            str(place.cwd),
        ]
        self.act_line = shlex.join(self.act_argv)
        self.diff = ""

    def act(self) -> None:
        subprocess.run(self.act_argv, check=True)

    def run(
        self,
        *replies: Any,
        hooks: Mapping[str, Sequence[Any]] | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        sink: Callable[[Event], object] = lambda _: None,
    ) -> None:
        events = run(
            self.place, hooks or {}, [*replies, DONE], tools=tools, sink=sink
        ).events
        (end,) = [event for event in events if isinstance(event, TurnCompleted)]
        self.diff = end.diff or ""

    def after(self, work: Callable[[], object]) -> None:
        """Others do some work while the model thinks: the first call has ended, and the second has not begun."""

        stamp = self.place.cwd / "stamp"

        def reply(_: object) -> list[Any]:
            # The copy behind the first call.
            stores = self.place.home / "codex-py" / "undo"
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and all(
                path.stat().st_mtime <= stamp.stat().st_mtime
                for path in stores.glob("*/index")
            ):
                os.sched_yield()
            passed(self.place.cwd)
            work()
            passed(self.place.cwd)
            return command(IDLE, "c2")

        self.run(command("echo > stamp", "c1"), reply)

    def within(self, work: Callable[[], object]) -> None:
        """Others do some work while a command runs."""
        mark = self.place.home / "done"

        def watch(event: Event) -> None:
            if isinstance(event, ItemStarted) and isinstance(
                event.item, CommandExecution
            ):
                work()
                mark.touch()

        self.run(command(f"until [ -e {mark} ]; do sleep 0.01; done"), sink=watch)

    def another(self) -> TurnRecorder:
        return TurnRecorder(self.place.home, self.place.cwd, os.environ, "another")


def passed(root: Path) -> None:
    """Wait for the next step of the file system's clock."""
    clock = run_times.RunTimes(root)
    now = clock.now_ns()
    while clock.now_ns() == now:
        os.sched_yield()


def by_patch(turn: Turn) -> None:
    turn.run(
        [*ev_custom_tool_call("p", "apply_patch", enveloped(*PATCH)), ev_completed()]
    )


def by_function(turn: Turn) -> None:
    def change() -> str:
        """Change files."""
        turn.act()
        return "ok"

    turn.run([*ev_function_call("f", "change", {}), ev_completed()], tools=[change])


def in_a_long_command(turn: Turn) -> None:
    turn.monkeypatch.setattr(run_times, "_LONG_NS", 0)
    turn.within(turn.act)


def at_the_same_moment(turn: Turn) -> None:
    another = turn.another()

    def work() -> None:
        another.copy()
        another.begin_life()
        turn.act()
        another.end_life()
        another.end_turn(1, is_new=True)

    turn.within(work)


def beside_another_session(turn: Turn) -> None:
    another = turn.another()

    def work() -> None:
        another.copy()
        another.begin_life()
        turn.act()
        another.end_life()
        another.end_turn(1, is_new=True)

    turn.after(work)


def beside_an_apply(turn: Turn) -> None:
    turn.within(lambda: patch(Journal(turn.place.home, turn.place.cwd), *PATCH))


ROWS: Mapping[str, Callable[[Turn], None]] = {
    "patch": by_patch,
    "command": lambda turn: turn.run(command(turn.act_line)),
    "command, not the last call": lambda turn: turn.run(
        command(turn.act_line, "c1"), command(IDLE, "c2")
    ),
    "hook": lambda turn: turn.run(
        command(IDLE), hooks={"PostToolUse": [turn.act_line]}
    ),
    "Python function": by_function,
    "you, while the model thinks": lambda turn: turn.after(turn.act),
    "you, in a command of two seconds or more": in_a_long_command,
    "another session, at the same moment": at_the_same_moment,
    "another session, before or after": beside_another_session,
    "another `undo`, or `codex-py apply`": beside_an_apply,
}


@pytest.mark.parametrize("who", ROWS)
def test_undo_keeps_its_promise(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    turn = Turn(place, monkeypatch)
    # However slow this machine is.
    monkeypatch.setattr(run_times, "_LONG_NS", 1 << 60)
    before = tree(place.cwd)
    ROWS[who](turn)
    after = tree(place.cwd)
    found = outcomes(turn, before, after)
    assert {
        **found,
        **dict.fromkeys(c for c, p in promised()[who].items() if p == "-"),
    } == {
        column: None if promise == "-" else promise
        for column, promise in promised()[who].items()
    }


def outcomes(
    turn: Turn, before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, str | None]:
    """By column, what an undo does with the change, as it says and as it does."""
    place = turn.place
    journal = Journal(place.home, place.cwd)
    own = [
        number
        for number in journal.numbers()
        if (its := journal.read(number, with_contents=False).turn)
        and its.thread_id != "another"
    ]
    refused: list[str] = []
    if not own:
        return dict.fromkeys(PATHS, "left")
    try:
        plan = plan_undo(journal, own[0])
    except EditedSince as error:
        refused = [p for p in PATHS.values() if f"{place.cwd / p}" in str(error)]
        assert tree(place.cwd) == after
        plan = plan_undo(journal, own[0], force=True)
    except CodexError as error:
        # There are names alone.
        return {
            c: "named"
            if f"{place.cwd / p} " in str(error) or f"{place.cwd / p}," in str(error)
            else "left"
            for c, p in PATHS.items()
        }
    changed = {str(change.path.relative_to(place.cwd)) for change in plan.changes}
    changed |= {"build"} if "build/x" in changed else set()
    plan.commit()
    result = tree(place.cwd)
    found: dict[str, str | None] = {}
    for column, path in PATHS.items():
        if str(place.cwd / path) in plan.unkept:
            found[column] = "named"
        elif path in refused:
            found[column] = "refused"
        elif path not in changed:
            found[column] = "left"
            assert result.get(path) == after.get(path)
        else:
            is_asked = any(f"{place.cwd / path}" in doubt for doubt in plan.doubts)
            found[column] = "asked" if is_asked else "undone"
            assert result.get(path) == before.get(path)
    return found
