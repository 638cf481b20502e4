"""Random keys against a server that asks, streams, fails and hangs: nothing crashes, nothing typed is lost, and
nothing typed counts as a yes."""

import random
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from codex_py.testing import (
    Pause,
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
    ev_text_deltas,
)
from codex_py.testing.script import Script
from tests.frontends.tui.terminals import Start
from tests.frontends.tui.test_lifecycle import assert_is_restored
from tests.support.program import Workplace
from tests.support.pty_program import KEYS, PtyProgram
from tests.support.searches import sample
from tests.support.server import ScriptedServer

SIZES = [(80, 24), (30, 8), (60, 20), (140, 45), (100, 12)]
SEEDS = range(20)
ALL_KEYS = 500
PING, PONG = "Are you there?", "I am here."

FIRST_LETTERS = "yapn12fv"
"""Of the words: with most of them an answer to some question begins."""
EDITING = [
    "left",
    "right",
    "up",
    "down",
    "backspace",
    "c-a",
    "c-e",
    "c-u",
    "c-k",
    "c-w",
    "c-y",
]
PANELS = ["esc", "tab", "shift-tab", "enter", "c-l", "c-o", "c-g", "f5", "c-b", "c-t"]
COMMANDS = [
    "/help",
    "/model",
    "/status",
    "/resume",
    "/permissions",
    "/diff",
    "/undo",
    "/ps",
    "/agents",
    "/theme",
    "/keymap",
    "/new",
    "/transcript",
    "/rewind",
    "/background",
    "/plan",
    "/pasted",
    "/findings",
    "/nonsense",
    "?",
]
HARMLESS = [
    "focus-in",
    "focus-out",
    "f5",
    "c-l",
    "\x1b[<0;4;4M",
    "\x1b]11;rgb:0000/0000/0000\x1b\\",
]
NOISE = [
    *HARMLESS,
    "\x1b[200~pasted y\ntext\x1b[201~",
    "\x1b[200~" + "line\n" * 40 + "\x1b[201~",
    "\x1bOP",
    "\x1b[27;5;13~",
    "\x1b[113;5u",
    "\x1b[6~",
    "\x1b[5~",
    "\xff",
    "\u4e2d\u6587 \U0001f469\u200d\U0001f4bb",
    "\x00",
    "\x1b[1;5D",
    "@",
    "!",
    "/",
]


OWN_KEYS = {
    "composer.submit": '["enter", "ctrl-s", "leader s"]',
    "composer.toggle_shortcuts": '"f1"',
    "global.copy": '"ctrl-o"',
    "global.open_transcript": '["f2", "leader t"]',
    "list.move_down": '["down", "j"]',
    "list.accept": '["enter", "ctrl-y"]',
    "approval.approve": '"ctrl-e"',
    "editor.move_line_end": '"alt-q"',
    "editor.yank": '"f5"',
    "pager.close": '"x"',
    "vim_normal.start_delete_operator": '"y"',
    "vim_normal.start_yank_operator": '"d"',
    "vim_operator.delete_line": '["d", "y"]',
    "vim_operator.yank_line": '"p"',
    "vim_normal.jump_top": '"1 2"',
}
OWN_OPTIONS = [
    part
    for name, keys in OWN_KEYS.items()
    for part in ("-c", f"tui.keymap.{name}={keys}")
]
VI = ["-c", "tui.vim_mode_default=true"]
VI_KEYS = [*"iaAdwcpgfu0$", "\x18", "\x13", "\x1bOP"]


class FickleModel:
    """A model that does something else each time, in an order of its own, until it is to be at peace."""

    def __init__(self, random: random.Random) -> None:
        self._random = random
        self._calls = 0
        self.is_at_peace = False
        self.only_asks = False

    def answer(self, request: RecordedRequest) -> Script:
        if PING in str(request.body["input"]):
            return [*ev_message(PONG), ev_completed()]
        self._calls += 1
        if self.is_at_peace:
            return [*ev_message("Done."), ev_completed()]
        name = f"call_{self._calls}"
        asking = {
            "cmd": f"touch ran-{self._calls}",
            "sandbox_permissions": "require_escalated",
        }
        asks = [*ev_function_call(name, "exec_command", asking), ev_completed()]
        deltas = [f"word {n}\n\n" if n % 7 == 0 else "some " for n in range(60)]
        streams = Reply(
            events=[ev_created(), *ev_text_deltas(deltas), ev_completed()],
            chunk_each=True,
            delay_s=0.002,
        )
        if self.only_asks:
            return asks
        fails = Reply(status=500, body=b'{"error": {"message": "Broken"}}')
        hangs = Reply(events=[ev_created(), Pause()])
        runs = [*ev_function_call(name, "exec_command", {"cmd": "ls"}), ev_completed()]
        return self._random.choice(
            [asks, asks, asks, streams, streams, fails, hangs, runs]
        )


def press(program: PtyProgram, key: str) -> None:
    if key in KEYS or (key.startswith("c-") and len(key) == 3):
        program.press(key)
    else:
        program.type(key)


def resize(program: PtyProgram, random: random.Random) -> None:
    program.resize(*random.choice(SIZES))


def open_question(program: PtyProgram, model: FickleModel) -> None:
    """Wait for a question, for as long as one may take to come up: it has the keyboard then."""
    model.only_asks = True
    for _ in range(20):
        program.read_for(0.2)
        if "Would you like" in program.text:
            break
    model.only_asks = False


@contextmanager
def fuzzed(
    start: Start, seed: int, *more: str
) -> Generator[tuple[PtyProgram, ScriptedServer, FickleModel]]:
    model = FickleModel(random.Random(seed))
    columns, rows = SIZES[seed % len(SIZES)]
    # Rewinding drops a part of the history.
    with ScriptedServer([model.answer] * ALL_KEYS, check_prefix=False) as server:
        options = ("-a", "on-request", "-s", "read-only", *more)
        provider = {"request_max_retries": 1, "stream_max_retries": 1}
        program = start(
            server,
            *options,
            columns=columns,
            rows=rows,
            provider=provider,
            EDITOR="true",
        )
        yield program, server, model
        assert b"Traceback" not in program.raw


def assert_answers(
    program: PtyProgram, model: FickleModel, *, drops: bool = False
) -> None:
    """Whatever is open, running or asked, the composer is there after some Esc, and what is sent is answered."""
    model.is_at_peace = True
    program.resize(80, 24)
    program.settle(0.3)
    for _ in range(30):
        program.press("esc")
        program.read_for(0.3)
        if program.title == "work" and not program.is_covered:
            break
    if drops:
        # What is written may be the beginning of a command, and vi may be in its normal mode.
        # There, the first Ctrl-C leaves the insert mode.
        for key in ("x", "c-c", "esc", "i", "x", "c-c", "c-c", "i"):
            press(program, key)
            program.read_for(0.3)
    program.type(f" {PING}")
    program.wait_for(PING)
    program.press("enter")
    program.wait_for(PONG)
    program.process.terminate()
    assert program.wait() == 143
    assert_is_restored(program)


@pytest.mark.parametrize("seed", sample(SEEDS))
def test_a_typed_word_is_neither_lost_nor_taken_for_an_answer(
    start: Start, place: Workplace, seed: int
) -> None:
    chance = random.Random(seed)
    words: list[str] = []
    with fuzzed(start, seed) as (program, server, model):
        program.type("Begin.\r")
        open_question(program, model)
        assert "Would you" in program.text
        pressed = 0
        while pressed < ALL_KEYS:
            kind, text = chance.random(), ""
            if kind < 0.8:
                words.append(f"{chance.choice(FIRST_LETTERS)}{len(words):03}z")
                text = words[-1] + chance.choice([" ", " ", "\r"])
                program.type(text)
                pressed += len(text)
            elif kind < 0.95:
                press(program, key := chance.choice([*HARMLESS, "esc"]))
                pressed += 1
                if key == "esc":
                    # With a letter close behind it, it is Alt and that letter.
                    program.read_for(0.6)
            else:
                resize(program, chance)
            if text.endswith("\r") and chance.random() < 0.2:
                open_question(program, model)
            elif chance.random() < 0.3:
                program.read_for(chance.choice([0.005, 0.02, 0.1]))
        assert_answers(program, model)
        told = " ".join(str(request.body["input"]) for request in server.requests)
    assert [word for word in words if word not in told] == []
    assert list(place.cwd.iterdir()) == []


@pytest.mark.parametrize("seed", sample(SEEDS))
def test_no_key_ends_or_blocks_the_terminal(start: Start, seed: int) -> None:
    chance = random.Random(seed)
    keys = [*EDITING, *PANELS, *NOISE, *FIRST_LETTERS, *VI_KEYS]
    options = [[], OWN_OPTIONS, VI, [*VI, *OWN_OPTIONS]][seed % 4]
    with fuzzed(start, seed, *options) as (program, _, model):
        program.wait_until(lambda: b"\x1b[?2026h" in program.raw)
        for number in range(ALL_KEYS):
            kind = chance.random()
            if kind < 0.05:
                program.type(f"{chance.choice(COMMANDS)}\r")
            elif kind < 0.1:
                program.type(f"prompt {number}\r")
            elif kind < 0.12:
                resize(program, chance)
            else:
                press(program, chance.choice(keys))
            if chance.random() < 0.2:
                program.read_for(chance.choice([0.005, 0.02, 0.1]))
        program.press("paste-end")
        assert_answers(program, model, drops=True)
