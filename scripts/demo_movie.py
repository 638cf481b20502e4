"""Records the story of the demo in the terminal: the program and its commands run, a scripted server is the model.

The screens come with their times, for `scripts/animated_svg.py` to draw."""

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codex_py.frontends.demo.demo_session import PROMPT, make_repository
from codex_py.testing import (
    Reply,
    ScriptedServer,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.events import Event
from scripts.animated_svg import Frame, Row
from scripts.demo_story import PATCH, plan
from scripts.screen_colors import BACKGROUNDS, Look
from tests.support.pty_program import PtyProgram

DESCRIPTION = (
    "A session in the terminal: the agent reads the code, runs the tests, of which one fails, changes a"
    " line, and runs the tests again, which pass."
)
COLUMNS, ROWS = 84, 28
_KEY_S, _EVENT_S = 0.03, 0.045
_SETTLED_S = 0.02
"""A screen that changes again sooner than this is half drawn, and is left out."""
_LONGEST_S = 0.9
"""No screen is shown for longer, the last one apart. A machine that is busy makes longer pauses."""
_LAST_S = 3.0
_CLOCK = re.compile(r"\d\d:\d\d(?=\s*$)")
_GIT_CONFIG = "[init]\n\tdefaultBranch = main\n"
_TESTS = "python3 run_tests.py"
_RUNNER = '''\
"""Runs the tests, and prints each result when it is known."""

import sys
import time
import unittest


class Result(unittest.TestResult):
    def startTest(self, test):
        time.sleep(0.35)
        super().startTest(test)

    def addSuccess(self, test):
        print("\\033[32mpassed\\033[0m", test._testMethodName, flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        print("\\033[31mFAILED\\033[0m", f"{test._testMethodName}: {error[1]}", flush=True)


result = Result()
unittest.defaultTestLoader.discover(".").run(result)
sys.exit(not result.wasSuccessful())
'''
_TEST_FILE = """\
import unittest

from basket import total


class BasketTest(unittest.TestCase):
    def test_prices_add_up(self):
        self.assertEqual(total([2, 3, 5]), 10)

    def test_an_empty_basket_is_free(self):
        self.assertEqual(total([]), 0)

    def test_a_discount_is_a_percentage(self):
        self.assertEqual(total([10, 30], discount=25), 30)

    def test_no_discount_is_the_default(self):
        self.assertEqual(total([10, 30]), 40)
"""


def recorded_movie(look: Look) -> tuple[Sequence[Frame], float]:
    """Run the session in a terminal of that look. Returns the frames, and the second when they end."""
    with TemporaryDirectory() as folder, ScriptedServer(_story()) as server:
        home = Path(folder, ".codex")
        home.mkdir()
        Path(folder, ".gitconfig").write_text(_GIT_CONFIG, encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "CODEX_HOME": str(home),
            "MOCK_KEY": "key",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        repository = Path(folder, "basket")
        make_repository(repository, environment)
        (repository / "test_basket.py").write_text(_TEST_FILE, encoding="utf-8")
        (repository / "run_tests.py").write_text(_RUNNER, encoding="utf-8")
        trust = f'[projects."{repository}"]\ntrust_level = "trusted"\n'
        config = f"{server.config_toml()}\n{trust}"
        (home / "config.toml").write_text(config, encoding="utf-8")
        argv = [str(Path(sys.executable).with_name("codex-py"))]
        with _RecordedProgram(
            argv, repository, environment, columns=COLUMNS, rows=ROWS
        ) as program:
            program.background = BACKGROUNDS[look]
            program.wait_for("gpt-5.5")
            program.read_for(1.0)
            program.frames.clear()
            program.read_for(0.5)
            program.record()
            for key in PROMPT:
                program.type(key)
                program.read_for(_KEY_S)
            program.read_for(0.3)
            program.press("enter")
            program.wait_for("Worked for")
            program.read_for(0.5)
            frames = _edited(program.frames)
            return frames, frames[-1].at_s + _LAST_S


class _RecordedProgram(PtyProgram):
    """It keeps every screen."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        **size: Any,
    ) -> None:
        super().__init__(argv, cwd, environment, **size)
        self.frames: list[Frame] = []

    def record(self) -> None:
        lines = [self.screen.buffer[y] for y in range(ROWS)]
        rows = [[line[x] for x in range(COLUMNS)] for line in lines]
        cursor = self.screen.cursor
        if not cursor.hidden:
            under = rows[cursor.y][cursor.x]
            rows[cursor.y][cursor.x] = under._replace(reverse=not under.reverse)
        self.frames.append(Frame(time.monotonic(), tuple(map(tuple, rows))))

    def _read(self, timeout_s: float) -> bool:
        has_read = super()._read(timeout_s)
        if has_read:
            self.record()
        return has_read


def _edited(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Without half drawn screens, repeated ones and long pauses. The first one is at 0 seconds."""
    settled: list[Frame] = []
    for frame, following in zip(frames, [*frames[1:], None], strict=True):
        if following is not None and following.at_s - frame.at_s < _SETTLED_S:
            continue
        rows = tuple(map(_without_clock, frame.rows))
        if not settled or settled[-1].rows != rows:
            settled.append(Frame(frame.at_s, rows))
    edited: list[Frame] = []
    now_s = 0.0
    for frame, before in zip(settled, [settled[0], *settled], strict=False):
        now_s += min(frame.at_s - before.at_s, _LONGEST_S)
        edited.append(Frame(round(now_s, 2), frame.rows))
    return edited


def _without_clock(row: Row) -> Row:
    """The row with the time of day of every recording."""
    text = "".join(cell.data for cell in row)
    found = _CLOCK.search(text)
    if found is None:
        return row
    cells = list(row)
    for place, data in enumerate("09:41", found.start()):
        cells[place] = cells[place]._replace(data=data)
    return tuple(cells)


def _story() -> list[Reply]:
    """One reply for each request, at the speed of a live model."""
    return [
        _reply(
            *ev_reasoning("**Looking for the failing test**"),
            *ev_message("I'll read the code and run the tests.", index=1, pieces=8),
            *ev_function_call(
                "call_plan",
                "update_plan",
                plan("in_progress", "pending", "pending"),
                index=2,
            ),
            *_command("call_read", "cat basket.py", index=3),
            *_command("call_test", _TESTS, index=4),
            ev_completed(input_tokens=4180, cached=0, output_tokens=212),
        ),
        _reply(
            *ev_message(
                "The discount is documented as a percentage, but `total` takes it off as an"
                " amount: 40 less 25 gives 15, where 25 % off is 30.",
                pieces=20,
            ),
            *ev_custom_tool_call("call_patch", "apply_patch", PATCH, index=1),
            *ev_function_call(
                "call_fixed",
                "update_plan",
                plan("completed", "completed", "in_progress"),
                index=2,
            ),
            *_command("call_again", _TESTS, index=3),
            ev_completed(input_tokens=4733, cached=4096, output_tokens=141),
        ),
        _reply(
            *ev_function_call(
                "call_done", "update_plan", plan("completed", "completed", "completed")
            ),
            ev_completed(input_tokens=4951, cached=4608, output_tokens=68),
        ),
        _reply(
            *ev_message(
                "**Fixed.** `total` now takes the discount as a percentage of the subtotal, as its"
                " docstring says. All four tests pass.",
                pieces=16,
            ),
            ev_completed(input_tokens=5102, cached=4864, output_tokens=37),
        ),
    ]


def _reply(*events: Event) -> Reply:
    return Reply(events=[ev_created(), *events], chunk_each=True, delay_s=_EVENT_S)


def _command(call_id: str, command: str, index: int) -> list[Event]:
    arguments = {"cmd": command, "login": False}
    return ev_function_call(call_id, "exec_command", arguments, index=index)
