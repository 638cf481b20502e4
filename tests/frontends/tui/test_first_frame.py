"""The frame that is drawn by hand, and the first one of prompt-toolkit in its place.

Also tests `frontends/tui/start.py`.
"""

import copy
import os
import re
import sys
from pathlib import Path
from typing import Any

import pyte
import pytest

from codex_py.frontends.tui.first_frame import PLACEHOLDER
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.frontends.tui.test_approval import says
from tests.frontends.tui.test_lifecycle import assert_is_restored
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

_FRAME = b"\x1b[?2026h"

_PROGRAM = """
import os, signal, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name == "prompt_toolkit":
            sys.meta_path.remove(self)
            {}
sys.meta_path.insert(0, Watch())
from codex_py.__main__ import main
main()
"""


def shown(
    raw: bytes, columns: int, rows: int
) -> tuple[list[list[Any]], tuple[int, int]]:
    """The cells of the screen with their styles, and the place of the cursor."""
    screen = pyte.Screen(columns, rows)
    # pyte knows nothing of dim text, and takes the private marks of some sequences for their end.
    raw = re.sub(
        rb"\x1b\[[<>][^a-z]*u|\x1b\[22;0t",
        b"",
        re.sub(rb"(?<=[\[;])2(?=[;m])", b"3", raw),
    )
    pyte.ByteStream(screen).feed(raw)
    cells = [[screen.buffer[y][x] for x in range(columns)] for y in range(rows)]
    return copy.deepcopy(cells), (screen.cursor.x, screen.cursor.y)


def start_with(
    start: Start,
    place: Workplace,
    size: tuple[int, int],
    settings: str = "",
    own: str = "",
    **variables: Any,
) -> PtyProgram:
    """The program, which has started and was left. `own`: styles of the user's."""
    (place.home / "codex-py").mkdir()
    (place.home / "codex-py" / "theme.toml").write_text(own, encoding="utf-8")
    columns, rows = size
    with ScriptedServer([]) as server:
        options = ["-c", settings] if settings else []
        program = start(server, *options, columns=columns, rows=rows, **variables)
        program.wait_for(IDLE)
        leave(program)
    return program


@pytest.mark.parametrize(
    ("size", "settings", "own", "variables"),
    [
        ((80, 24), "", "", {}),
        ((140, 50), "", "", {"NO_COLOR": "1"}),
        ((80, 24), "", "", {"LANG": "C", "TERM": "xterm"}),
        ((80, 24), 'tui.theme = "dark"', "", {"COLORTERM": "truecolor"}),
        ((80, 15), 'tui.theme = "light"', "", {"COLORTERM": "truecolor"}),
        ((80, 24), "tui.vim_mode_default = true", "", {}),
        ((40, 8), "", 'quiet = "bold underline bright_red on blue"', {"TERM": "xterm"}),
    ],
    ids=str,
)
def test_the_screen_stays_as_it_is_when_prompt_toolkit_takes_over(
    start: Start,
    place: Workplace,
    size: tuple[int, int],
    settings: str,
    own: str,
    variables: dict[str, Any],
) -> None:
    program = start_with(start, place, size, settings, own, **variables)
    by_hand, _, rest = program.raw.partition(_FRAME)
    first = by_hand + _FRAME + rest.partition(_FRAME)[0]
    cells, cursor = shown(by_hand, *size)
    assert PLACEHOLDER in "".join(cell.data for row in cells for cell in row)
    assert (cells, cursor) == shown(first, *size)


@pytest.mark.parametrize(
    ("size", "settings", "variables"),
    [
        ((30, 24), "", {}),
        ((80, 6), "", {}),
        ((80, 24), 'tui.theme = "dark"', {}),
        ((80, 24), "", {"TERM": "dumb"}),
    ],
    ids=str,
)
def test_text_that_prompt_toolkit_shows_otherwise_is_left_to_it(
    start: Start,
    place: Workplace,
    size: tuple[int, int],
    settings: str,
    variables: dict[str, Any],
) -> None:
    program = start_with(start, place, size, settings, **variables)
    before, _, _ = program.raw.partition(PLACEHOLDER.split()[0].encode())
    # It erases what is below before it draws.
    assert b"\x1b[J" in before
    assert program.raw.count(b"codex-py 0") == 1


def running(place: Workplace, then: str, *arguments: str) -> PtyProgram:
    """The program, which does this as it begins to load prompt-toolkit."""
    command = [sys.executable, "-c", _PROGRAM.format(then), *arguments]
    variables = environment(place.home, {"TERM": "xterm-256color", "LANG": "C.UTF-8"})
    return PtyProgram(command, place.cwd, variables)


@pytest.mark.parametrize(("name", "code"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_signal_that_comes_while_it_is_shown_ends_the_program(
    place: Workplace, name: str, code: int
) -> None:
    with running(place, f"os.kill(os.getpid(), signal.SIG{name})") as program:
        assert program.wait() == code
        assert_is_restored(program)
        assert PLACEHOLDER.encode() in program.raw
        assert PLACEHOLDER not in program.text


def test_a_mistake_that_comes_while_it_is_shown_is_told_on_a_whole_terminal(
    place: Workplace,
) -> None:
    with running(place, "raise ImportError('no such part')") as program:
        assert program.wait() == 1
        assert_is_restored(program)
        assert "/workTraceback (most" in "".join(program.scrollback)
        assert program.lines[-1] == "ImportError: no such part"


def test_a_line_that_is_typed_while_it_is_shown_is_sent(
    place: Workplace, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with ScriptedServer([says("Understood.")]) as server:
        place.configure(server)
        with running(
            place,
            f"open({str(gate)!r}).close()",
            "--sandbox",
            "danger-full-access",
            "-a",
            "never",
        ) as program:
            program.wait_for(PLACEHOLDER)
            program.type("typed early\r")
            gate.open("w", encoding="utf-8").close()
            program.wait_for("Understood.")
            assert "typed early" not in program.lines[0]
            leave(program)
    assert server.requests[0].body["input"][-1]["content"][0]["text"] == "typed early"
