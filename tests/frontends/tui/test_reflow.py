import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

from codex_py.frontends.tui.output import Frame, reflows
from codex_py.testing import Pause, ev_completed, ev_created, ev_message
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(388)"}, False),
        ({"TERM": "screen", "STY": "1.a"}, False),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/t,1,0", "XTERM_VERSION": "XTerm(388)"}, True),
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
    assert Frame([0, 100, 37, 40], cursor=4).rows_above(columns) == rows


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux, which lays lines out anew")
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

    def tmux(*words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-L", f"codex-py-{os.getpid()}", *words]
        variables = environment(place.home, {"TERM": "xterm-256color", "LANG": "C.UTF-8"})
        return subprocess.run(
            command, env=variables, cwd=place.cwd, capture_output=True, encoding="utf-8", check=True
        ).stdout

    def shown() -> str:
        lines = tmux("capture-pane", "-p", "-J", "-S", "-").split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def wait_for(text: str, *, without: str = "\0") -> None:
        deadline = time.monotonic() + 30
        while text not in (now := shown()) or without in now:
            assert time.monotonic() < deadline, now

    with ScriptedServer([stream]) as server:
        place.configure(server)
        trust = f'projects."{place.cwd}".trust_level="trusted"'
        command = shlex.join([sys.executable, "-m", "codex_py", "-c", trust, "Go"])
        typed = ""
        tmux("new-session", "-d", "-x", "80", "-y", "24", command)
        try:
            for (columns, rows), pause in zip(sizes, pauses, strict=True):
                assert pause.reached.wait(30)
                wait_for("Working")
                tmux("resize-window", "-x", str(columns), "-y", str(rows))
                # A key that comes behind the signal of the new size is shown in a frame of that size.
                tmux("send-keys", "x")
                typed += "x"
                wait_for(f"\u203a {typed}\n")
                pause.until.set()
            wait_for("Part 14", without="Working")
            answer = shown().partition("Part 0")[2].partition("\u203a x")[0]
        finally:
            tmux("kill-server")
    # A turn of some seconds says how long it took.
    answer = re.sub(r"\n\s*Worked for [^\n]+\s*$", "", answer)
    parts = f"Part 0{answer}".rstrip().split("\n\n")
    assert [" ".join(each.split()) for each in parts] == text.split("\n\n")
    # A row too many.
    assert not [part for part in parts if part.startswith("\n")]
