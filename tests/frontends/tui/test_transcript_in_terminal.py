"""A conversation in the real program, as its screen shows it."""

import re
from pathlib import Path

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
    ev_text_deltas,
)
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer
from tests.support.snapshots import check_snapshot

PATCH = (
    "*** Begin Patch\n*** Add File: a.py\n+import os\n+print(os.environ)\n*** End Patch"
)
PLAN = {
    "plan": [
        {"step": "Look around", "status": "completed"},
        {"step": "Write the file", "status": "in_progress"},
    ]
}
ANSWER = """\
The file **`a.py`** prints the environment, sorted by nothing at all; say so if you want it in order.

1. run it
2. read it

```python
import os
print(os.environ)  # all of it
```
"""
PROMPT = "Print the environment."


def conversation(program: PtyProgram) -> str:
    """What has been said when the program has ended, without what depends on the time."""
    lines = program.scrollback
    start = lines.index(f"\u203a {PROMPT}")
    ends = ("Token usage:", "To continue")
    end = next(n for n, line in enumerate(lines) if line.startswith(ends))
    kept = [line for line in lines[start:end] if not line.startswith("  Worked for")]
    return re.sub(r"(<|\b)[\d.]+s\b", "0s", "\n".join(kept).rstrip()) + "\n"


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_turn_looks_as_it_did(start: Start, columns: int) -> None:
    fails = {"cmd": "seq 20; exit 3"}
    replies = [
        [
            *ev_reasoning("**Looking around**\n\nFirst I want to see what there is."),
            *ev_function_call("call_1", "update_plan", PLAN, index=1),
            *ev_function_call("call_2", "exec_command", {"cmd": "ls"}, index=2),
            ev_completed(),
        ],
        [*ev_function_call("call_3", "exec_command", fails), ev_completed()],
        [*ev_custom_tool_call("call_4", "apply_patch", PATCH), ev_completed()],
        [*ev_message(ANSWER, pieces=9), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(
            server, "-s", "danger-full-access", PROMPT, columns=columns, rows=40
        )
        program.wait_for("# all of it")
        leave(program)
    snapshot = Path(__file__).parent / "snapshots" / f"turn_{columns}.txt"
    check_snapshot(snapshot, conversation(program))


def test_an_answer_before_an_interruption_stays(start: Start) -> None:
    hold = Pause()
    with ScriptedServer(
        [[ev_created(), *ev_text_deltas(["Half an ", "ans"]), hold]]
    ) as server:
        program = start(server, PROMPT)
        program.wait_for("Half an ans")
        program.press("esc")
        program.wait_for("Conversation interrupted")
        assert "• Half an ans" in program.lines


def test_a_resumed_conversation_is_shown_again(start: Start) -> None:
    with ScriptedServer([[*ev_message("It is **done**."), ev_completed()]]) as server:
        first = start(server, PROMPT)
        first.wait_for("It is done.")
        leave(first)
        second = start(server, "resume", "--last")
        second.wait_for("It is done.")
        second.wait_for(IDLE)
        shown = second.lines
        assert shown[shown.index(f"\u203a {PROMPT}") + 2] == "• It is done."


def test_a_resumed_conversation_looks_as_it_did(start: Start, place: Workplace) -> None:
    (place.cwd / "gone.txt").write_text("one\ntwo\n", encoding="utf-8")
    (place.cwd / "kept.txt").write_text(
        "".join(f"{n}\n" for n in range(50)), encoding="utf-8"
    )
    patch = (
        "*** Begin Patch\n*** Delete File: gone.txt\n"
        "*** Update File: kept.txt\n@@\n 40\n-41\n+forty-one\n*** End Patch"
    )
    replies = [
        [
            *ev_function_call("call_1", "exec_command", {"cmd": "seq 20; exit 3"}),
            ev_completed(),
        ],
        [
            *ev_function_call("call_2", "exec_command", {"cmd": "sleep 2"}),
            ev_completed(),
        ],
        [*ev_custom_tool_call("call_3", "apply_patch", patch), ev_completed()],
        [*ev_message("It is **done**."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        first = start(server, "-s", "danger-full-access", PROMPT, rows=50)
        first.wait_for("Worked for")
        leave(first)
        second = start(server, "resume", "--last", rows=50)
        second.wait_for("Worked for")
        second.wait_for(IDLE)
        leave(second)
    assert "42" in conversation(first)
    assert "-one" in conversation(first).replace(" ", "")
    assert conversation(second) == conversation(first)


def test_a_dumb_terminal_without_unicode_shows_the_same_in_ascii(start: Start) -> None:
    replies = [[*ev_message("It is **done** \u2013 all of it… ✔"), ev_completed()]]
    with ScriptedServer(replies) as server:
        program = start(server, PROMPT, TERM="dumb", LC_ALL="en_US.ISO-8859-1")
        program.wait_for("* It is done - all of it~ x")
        assert f"> {PROMPT}" in program.lines
        assert b"\x1b[>" not in program.raw
