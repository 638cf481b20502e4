"""Tests `frontends/tui/screen.py`."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any, Self

import pytest

from codex_py.frontends.tui.output import Frame, reflows
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(388)"}, False),
        ({"TERM": "screen", "STY": "1.a"}, False),
        (
            {
                "TERM": "tmux-256color",
                "TMUX": "/tmp/t,1,0",
                "XTERM_VERSION": "XTerm(388)",
            },
            True,
        ),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True),
        ({"TERM": "xterm-kitty"}, True),
    ],
)
def test_it_is_known_which_terminals_lay_lines_out_anew(
    environment: dict[str, str], expected: bool
) -> None:
    assert reflows(environment) is expected


@pytest.mark.parametrize(("columns", "rows"), [(100, 3), (50, 4), (40, 5), (10, 15)])
def test_rows_that_are_laid_out_anew_are_counted(columns: int, rows: int) -> None:
    assert Frame([0, 100, 37, 40, 90], (4, 3)).rows_above(columns) == rows


def test_rows_that_went_off_the_top_of_a_low_screen_are_found_again() -> None:
    frame = Frame([0, 100, 37, 40, 90], (4, 3))
    assert frame.out_of_reach(100, 24) == []
    low = frame.out_of_reach(50, 3)
    assert low == [0, 50]
    assert Frame([10, 10], (0, 1), left=low).rows_above(100) == 3


class Tmux:
    """The program in a window of tmux, which lays lines out anew."""

    def __init__(self, place: Workplace, server: ScriptedServer, *args: str) -> None:
        self._place = place
        place.configure(server)
        trust = f'projects."{place.cwd}".trust_level="trusted"'
        command = shlex.join([sys.executable, "-m", "codex_py", "-c", trust, *args])
        self.call("new-session", "-d", "-x", "80", "-y", "24", command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call("kill-server")

    def call(self, *words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-L", f"codex-py-{os.getpid()}", *words]
        variables = environment(
            self._place.home, {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        )
        return subprocess.run(
            command,
            env=variables,
            cwd=self._place.cwd,
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout

    def resize(self, columns: int, rows: int) -> None:
        self.call("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def text(self) -> str:
        """The scrollback and the screen."""
        lines = self.call("capture-pane", "-p", "-J", "-S", "-").split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def wait_for(self, text: str, *, without: str = "\0") -> None:
        deadline = time.monotonic() + 30
        while text not in (now := self.text) or without in now:
            assert time.monotonic() < deadline, now


needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@needs_tmux
def test_new_sizes_while_text_streams_leave_no_row_too_many_and_none_too_few(
    place: Workplace,
) -> None:
    words = "has words enough to be wrapped at the edge of most terminals, and then some more."
    text = "\n\n".join(f"Part {n} {words}" for n in range(15))
    sizes = [(60, 24), (100, 24), (50, 20), (120, 40), (80, 12)]
    head, part, *streamed = ev_message(text, pieces=len(sizes) + 1)
    pauses = [Pause() for _ in sizes]
    stream: list[Any] = [ev_created(), head, part]
    for delta, pause in zip(streamed, pauses, strict=False):
        stream += [delta, pause]
    stream += [*streamed[len(sizes) :], ev_completed()]
    typed = ""
    with ScriptedServer([stream]) as server, Tmux(place, server, "Go") as window:
        for (columns, rows), pause in zip(sizes, pauses, strict=True):
            assert pause.reached.wait(30)
            window.wait_for("Working")
            window.resize(columns, rows)
            # A key that comes behind the signal of the new size is shown in a frame of that size.
            window.call("send-keys", "x")
            typed += "x"
            window.wait_for(f"\u203a {typed}\n")
            pause.until.set()
        window.wait_for("Part 14", without="Working")
        answer = window.text.partition("Part 0")[2].partition("\u203a x")[0]
    # A turn of some seconds says how long it took.
    answer = re.sub(r"\n\s*Worked for [^\n]+\s*$", "", answer)
    parts = f"Part 0{answer}".rstrip().split("\n\n")
    assert [" ".join(each.split()) for each in parts] == text.split("\n\n")
    # A row too many.
    assert not [part for part in parts if part.startswith("\n")]


@needs_tmux
def test_a_frame_that_was_too_high_for_a_low_screen_leaves_no_row_when_it_is_high_again(
    place: Workplace,
) -> None:
    text = "\n\n".join(f"Part {n}, with words enough to be wrapped." for n in range(9))
    run = ev_function_call("call_1", "exec_command", {"cmd": "seq 30; sleep 600"})
    replies = [[*ev_message(text), ev_completed()], [*run, ev_completed()]]
    free = ("-s", "danger-full-access", "-a", "never")
    with ScriptedServer(replies) as server, Tmux(place, server, *free, "Go") as window:
        window.wait_for("Worked for")
        window.call("send-keys", "Run it.", "Enter")
        window.wait_for("    30\n")
        for typed, size in enumerate(((30, 8), (80, 24), (40, 9), (80, 24)), 1):
            window.resize(*size)
            window.call("send-keys", "x")
            below = (
                "\n\n  gpt-5.5 · ~/work" if size == (80, 24) else "\n  gpt-5.5 · work"
            )
            window.wait_for(f"\u203a {'x' * typed}{below}")
        above, _, frame = window.text.partition("\u203a Run it.")
    rows = [line for line in frame.strip().split("\n") if line]
    assert [row.partition(" ·")[0].strip() for row in rows[:6]] == [
        *("• Running seq 30; sleep 600", "└ 26", "27", "28", "29", "30")
    ]
    assert len(rows) == 9
    assert above.count("Part 8") == 1
