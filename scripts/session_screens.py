"""One session in a real terminal, by this program and by the released Codex where `CODEX_BINARY` names it, stage by
stage: the same answers from the same server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
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
from codex_py.testing.events import Event
from codex_py.testing.script import Script
from scripts.screen_colors import BACKGROUNDS, Look
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
_STEPS = "Read the parser", "Let it read underscores", "Write tests for what it refuses"
_TESTS = """\
#!/bin/sh
for name in empty numbers signs; do
    printf 'tests/test_%s.py \\033[32m...\\033[0m\\n' $name
    sleep 1
done
sleep 4
"""
_ANSWER = """\
## Numbers with underscores

The parser reads `1_000` as **1000**, as [the manual](https://example.com/numbers) says.

```python
def number(self, token: Token) -> float:
    return float(token.text.replace("_", ""))
```

| file | change |
|------|--------|
| `src/parser.py` | reads underscores in numbers, and says which number it was that it refused |
| `tests/test_parser.py` | new |

- [x] the parser and its tests
- [ ] the documentation
"""


_REPOSITORY = (
    "git init -q -b main && git add . && git init -q --bare ../numbers.git && "
    "git -c user.name=n -c user.email=e commit -qm First && git remote add origin ../numbers.git"
)


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
        "cmd": "git push origin HEAD:numbers",
        "sandbox_permissions": "require_escalated",
        "justification": "Do you want me to push the branch?",
    }
    thought = ev_reasoning(
        "**Inspecting the parser**\n\nIt reads numbers with `float`."
    )
    return [
        [*thought, *_plan(1), ev_completed()],
        [
            *ev_function_call(
                "call_1", "exec_command", {"cmd": "scripts/test -q tests/"}
            ),
            ev_completed(),
        ],
        [*ev_custom_tool_call("call_2", "apply_patch", _PATCH), ev_completed()],
        [*_plan(2), ev_completed()],
        [*ev_function_call("call_3", "exec_command", asks), ev_completed()],
        [*_plan(3), ev_completed()],
        [*ev_message(_ANSWER), ev_completed()],
    ]


def _plan(done: int) -> Sequence[Event]:
    status = ["completed"] * done + ["in_progress"] + ["pending"] * len(_STEPS)
    steps = [
        {"step": step, "status": each}
        for step, each in zip(_STEPS, status, strict=False)
    ]
    return ev_function_call(f"plan_{done}", "update_plan", {"plan": steps})


def session_screens(
    columns: int, *, alone: bool = False, look: Look = "dark"
) -> Generator[tuple[str, pyte.Screen]]:
    """The name of each stage, and the screen at that time: all of this program, then all of Codex.

    Args:
        alone: without Codex.
        look: of the terminal's background.
    """
    stages = ALONE if alone else STAGES
    for name in ("codex-py", "codex"):
        if name == "codex" and (alone or CODEX is None):
            continue
        with _program(name, columns, look) as program:
            for stage, reach in stages.items():
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
    while (
        "git push" not in program.text.partition("1. Yes")[0].rpartition("Would you")[2]
    ):
        # Codex asks for more where its sandbox does not work.
        program.type("y")
        program.read_for(2)
        program.wait_until(lambda: "1. Yes" in program.text)


def _answered(program: PtyProgram) -> None:
    program.type("y")
    program.wait_until(lambda: "documentation" in program.text)
    program.read_for(1.0)


def _going_back(program: PtyProgram) -> None:
    program.press("esc")
    program.wait_for("again to go back")
    program.press("esc")
    program.wait_for("Go back to a prompt")
    program.read_for(0.5)
    program.press("enter")
    program.wait_for_question("The conversation and the files")


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
ALONE: dict[str, Callable[[PtyProgram], None]] = {
    "1 start": _start,
    "2 running": _running,
    "3 question": _question,
    "4 answered": _answered,
    "5 going back": _going_back,
}
"""The stages without Codex."""


@contextmanager
def _program(name: str, columns: int, look: Look) -> Generator[PtyProgram]:
    with (
        TemporaryDirectory() as folder,
        ScriptedServer([answer] * 99, check_calls=False, check_prefix=False) as server,
    ):
        home, repo = Path(folder, ".codex"), Path(folder, "repo")
        (repo / "src").mkdir(parents=True)
        (repo / "src/parser.py").write_text(_PARSER, encoding="utf-8")
        (repo / "scripts").mkdir()
        (repo / "scripts/test").write_text(_TESTS, encoding="utf-8")
        (repo / "scripts/test").chmod(0o755)
        home.mkdir()
        trust = f'[projects."{repo}"]\ntrust_level = "trusted"\n'
        config = f"{server.config_toml()}\n[analytics]\nenabled = false\n{trust}"
        (home / "config.toml").write_text(config, encoding="utf-8")
        subprocess.run(_REPOSITORY, shell=True, check=True, cwd=repo)
        environment = {
            "PATH": os.environ["PATH"],
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
            program.background = BACKGROUNDS[look]
            yield program
