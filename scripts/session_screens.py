"""One session in a real terminal, by this program and by the released Codex where `CODEX_BINARY` names it, stage by
stage: the same answers from the same server."""

import json
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyte

from codex_py.testing import (
    Pause,
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.script import Script
from tests.frontends.tui.situations import ANSWER
from tests.support.codex import CODEX
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

ROWS = 34
_PARSER = """\
class Parser:
    def number(self, token):
        value = float(token.text)
        return value
"""
_PATCH = """\
*** Begin Patch
*** Update File: src/parser.py
@@
     def number(self, token):
-        value = float(token.text)
+        value = float(token.text.replace("_", ""))
         return value
*** Add File: tests/test_parser.py
+def test_underscores_are_left_out():
+    assert Parser("1_000").parse() == 1000.0
*** End Patch
"""
_CHECK = "for n in 1 2 3; do printf 'case %s \\033[32mPASS\\033[0m\\n' $n; sleep 1; done; sleep 4"


def answer(request: RecordedRequest) -> Script:
    """By how far its conversation is. Codex asks for a title too, beside the first answer."""
    said = json.dumps(request.body["input"])
    if "Do not answer the request" in said:
        return [*ev_message("Underscores in numbers"), ev_completed()]
    if "Go on." in said:
        return Reply(events=[ev_created(), Pause()])
    return _answers()[said.count('_output", ')]


def _answers() -> list[Script]:
    asks = {
        "cmd": "pip install --upgrade requests",
        "sandbox_permissions": "require_escalated",
        "justification": "Do you want me to install the newest requests?",
    }
    thought = ev_reasoning("**Inspecting the parser**\n\nIt reads numbers with `float`.")
    return [
        [*thought, *ev_function_call("call_1", "exec_command", {"cmd": _CHECK}), ev_completed()],
        [*ev_custom_tool_call("call_2", "apply_patch", _PATCH), ev_completed()],
        [*ev_function_call("call_3", "exec_command", asks), ev_completed()],
        Reply(events=[ev_created(), *ev_message(ANSWER), ev_completed()]),
    ]


def session_screens(columns: int) -> Generator[tuple[str, pyte.Screen]]:
    """The name of each stage, and the screen at that time: all of this program, then all of Codex."""
    for name in ("codex-py", "codex"):
        if name == "codex" and CODEX is None:
            continue
        with _program(name, columns) as program:
            for stage, reach in STAGES.items():
                reach(program)
                program.read_for(0.5)
                yield stage, program.screen


def _start(program: PtyProgram) -> None:
    program.wait_until(lambda: "gpt-5.5" in program.text or "Meet" in program.text)
    program.read_for(1.5)
    if "Use existing model" in program.text:
        program.press("down", "enter")
        program.read_for(1.5)


def _running(program: PtyProgram) -> None:
    program.type("Let the parser read 1_000.")
    program.read_for(0.3)
    program.press("enter")
    program.read_for(2.5)


def _question(program: PtyProgram) -> None:
    program.wait_until(lambda: "1. Yes" in program.text)
    while "pip install" not in program.text.partition("1. Yes")[0].rpartition("Would you")[2]:
        # Codex asks for more where its sandbox does not work.
        program.type("y")
        program.read_for(2)
        program.wait_until(lambda: "1. Yes" in program.text)


def _answered(program: PtyProgram) -> None:
    program.type("y")
    program.wait_until(lambda: "documentation" in program.text)
    program.read_for(1.0)


def _menu(program: PtyProgram) -> None:
    program.type("/")


def _waiting(program: PtyProgram) -> None:
    program.press("backspace")
    program.type("Go on.")
    program.read_for(0.3)
    program.press("enter")
    program.read_for(3)


STAGES: dict[str, Callable[[PtyProgram], None]] = {
    "1 start": _start,
    "2 running": _running,
    "3 question": _question,
    "4 answered": _answered,
    "5 menu": _menu,
    "6 waiting": _waiting,
}


@contextmanager
def _program(name: str, columns: int) -> Generator[PtyProgram]:
    with (
        TemporaryDirectory() as folder,
        ScriptedServer([answer] * 99, check_calls=False, check_prefix=False) as server,
    ):
        home, repo = Path(folder, ".codex"), Path(folder, "repo")
        (repo / "src").mkdir(parents=True)
        (repo / "src/parser.py").write_text(_PARSER, encoding="utf-8")
        home.mkdir()
        trust = f'[projects."{repo}"]\ntrust_level = "trusted"\n'
        config = f"{server.config_toml()}\n[analytics]\nenabled = false\n{trust}"
        (home / "config.toml").write_text(config, encoding="utf-8")
        programs = Path(folder, "bin")
        programs.mkdir()
        for fake in ("pip", "pip3"):
            (programs / fake).write_text("#!/bin/sh\necho Installed\n", encoding="utf-8")
            (programs / fake).chmod(0o755)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": folder,
            "CODEX_HOME": str(home),
            "MOCK_KEY": "key",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }
        argv = [CODEX or "", "-c", "check_for_update_on_startup=false"]
        if name == "codex-py":
            argv = [str(Path(sys.executable).with_name("codex-py"))]
        with PtyProgram(argv, repo, environment, columns=columns, rows=ROWS) as program:
            program.background = "rgb:1111/1313/1717"
            yield program
