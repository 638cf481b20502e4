"""What the patches of a turn came to, in its last event."""

import asyncio
from pathlib import Path

from codex_py.app.features.turn_diff import TurnDiff
from codex_py.errors import ModelError
from codex_py.protocol.events import Event, FilesPatched, TurnCompleted, TurnFailed
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.tools import ToolCall
from tests.core.sessions import make_session
from tests.support.model import ScriptedModel, calls, completed, says

ROOT = Path("/repo")
PATCHED = PatchedFile(ROOT / "a", "update", None, b"1\n", b"2\n", old_mode=None, new_mode=None)


def test_the_last_event_of_a_turn_has_its_difference():
    events: list[Event] = []

    async def patch(_: ToolCall) -> str:
        session.emit(FilesPatched([PATCHED]))
        return "ok"

    model = ScriptedModel(
        [says("no"), completed()],
        [calls("c1"), completed()],
        [says("done"), completed()],
        [calls("c2"), completed()],
        [ModelError("no more")],
        [says("no"), completed()],
    )
    session = make_session(model, features=[TurnDiff(ROOT)], tool=patch, sink=events.append)
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
