"""The real program in a window that it outgrows, and killed there."""

import json
import signal
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from codex_py.instructions import instruction_text
from codex_py.protocol.prompts import SUMMARY_OPENING
from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_function_call,
    ev_message,
)
from codex_py.testing.reply import Pause
from codex_py.testing.server import Script
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

WINDOW = 20_000
"""Tokens. Base prompt and tools take 6,000."""
CALLS = 12
ASKED = instruction_text("compact/prompt.md").encode()[:60]
FLAGS = ("-c", f"model_context_window={WINDOW}")
TOO_LONG = Reply(
    status=400,
    body=b'{"error":{"code":"context_length_exceeded","message":"too long"}}',
)
NOTE = [*ev_message("the note"), ev_completed()]


class SmallServer(ScriptedServer):
    """Refuses what does not fit the window. Each turn makes some calls."""

    def __init__(self, summary: Script, calls: int = CALLS) -> None:
        super().__init__(check_prefix=False)
        self._summary = summary
        self._numbers = count()
        self._calls_left = calls
        self.refused = 0
        self.add(*[self._answer] * 100)

    def _answer(self, request: RecordedRequest) -> Script:
        tokens = len(request.raw) // 4
        if tokens > WINDOW:
            self.refused += 1
            return TOO_LONG
        if ASKED in request.raw:
            return self._summary
        usage = ev_completed(input_tokens=tokens, output_tokens=0)
        if self._calls_left == 0:
            return [*ev_message("done"), usage]
        self._calls_left -= 1
        call_id = f"c{next(self._numbers)}"
        return [*ev_function_call(call_id, "exec_command", {"cmd": "seq 3000"}), usage]


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def is_compacted(line: bytes) -> bool:
    return json.loads(line)["type"] == "compacted"


SUMMARIES: dict[str, Script] = {
    "given": NOTE,
    "refused": Reply(status=400, body=b'{"error":{"message":"no"}}'),
    "failed": Reply(status=500, body=b""),
    "broken off": Reply(events=[*ev_message("the no")], cut=True),
    "too long": TOO_LONG,
}


KEPT: dict[str, Callable[[bytes], bytes]] = {
    "half of the line": lambda line: line[: len(line) // 2],
    "all but its end": lambda line: line[:-1],
    "the line": lambda line: line,
}


@pytest.mark.parametrize("summary", SUMMARIES)
def test_a_turn_that_outgrows_the_window_ends_well(
    place: Workplace, summary: str
) -> None:
    with SmallServer(SUMMARIES[summary]) as server:
        outcome = place.run(server, *FLAGS, "the task")
        # With a model of a smaller window, the session goes on.
        resumed = place.rerun(
            "-c", f"model_context_window={WINDOW * 2 // 3}", "resume", "--last", "go on"
        )
    assert (outcome.code, outcome.messages[-1:]) == (0, ["done"])
    assert (resumed.code, resumed.messages[-1:]) == (0, ["done"])
    (path,) = place.rollouts()
    assert sum(map(is_compacted, lines(path))) >= 2
    assert b"the task" in server.requests[-1].raw
    warned = [item for item in outcome.items if item["type"] == "error"]
    assert bool(warned) == (summary != "given")


def test_it_may_be_killed_while_it_is_compacted(place: Workplace) -> None:
    pause = Pause()
    with SmallServer([*ev_message("the no"), pause]) as server:
        place.configure(server)
        quiet = subprocess.DEVNULL
        with place.start(*FLAGS, "the task", stdout=quiet, stderr=quiet) as program:
            assert pause.reached.wait(120)
            program.send_signal(signal.SIGKILL)
        pause.until.set()
        resumed = place.rerun(*FLAGS, "resume", "--last", "go on")
    assert (resumed.code, resumed.messages[-1:]) == (0, ["done"])


@pytest.mark.parametrize("summary", ["given", "refused"])
@pytest.mark.parametrize("kept", KEPT)
def test_it_may_be_killed_while_the_compaction_is_written(
    place: Workplace, summary: str, kept: str
) -> None:
    with SmallServer(SUMMARIES[summary], calls=6) as server:
        assert place.run(server, *FLAGS, "the task").code == 0
        (path,) = place.rollouts()
        written = lines(path)
        index = next(n for n, line in enumerate(written) if is_compacted(line))
        path.write_bytes(b"".join(written[:index]) + KEPT[kept](written[index]))
        resumed = place.rerun(*FLAGS, "resume", "--last", "go on")
        first = server.requests[-1]
    assert (resumed.code, resumed.messages[-1:]) == (0, ["done"])
    assert b"the task" in first.raw
    # It was compacted before, or is now.
    assert SUMMARY_OPENING.encode() in first.raw
