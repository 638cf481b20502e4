"""The story of the demo: what the model does in it, recorded through the program itself."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from codex_py.frontends.demo.demo_session import (
    TAPE,
    demo_command,
    demo_environment,
    make_repository,
)
from codex_py.testing import (
    ScriptedServer,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.events import Event

TESTS = {"cmd": "python3 -m unittest", "login": False}

PATCH = """\
*** Begin Patch
*** Update File: basket.py
@@ def total(prices, discount=0):
     subtotal = sum(prices)
-    return subtotal - discount
+    return subtotal * (100 - discount) / 100
*** End Patch
"""


def plan(*statuses: str) -> dict[str, object]:
    steps = (
        "Find out which test fails, and why",
        "Fix the code",
        "Run the tests again",
    )
    return {
        "plan": [
            {"step": s, "status": status}
            for s, status in zip(steps, statuses, strict=True)
        ]
    }


def story() -> list[list[Event]]:
    """One list of events for each response."""
    look = {"cmd": "cat README.md basket.py test_basket.py", "login": False}
    return [
        [
            ev_created(),
            *ev_reasoning("**Looking at the code and its tests**"),
            *ev_message("I'll read the code and run the tests.", index=1, pieces=8),
            *ev_function_call(
                "call_plan",
                "update_plan",
                plan("in_progress", "pending", "pending"),
                index=2,
            ),
            *ev_function_call("call_read", "exec_command", look, index=3),
            *ev_function_call("call_test", "exec_command", TESTS, index=4),
            ev_completed(input_tokens=4180, cached=0, output_tokens=212),
        ],
        [
            ev_created(),
            *ev_message(
                "The discount is documented as a percentage, but `total` takes it off as an amount:"
                " 40 less 25 gives 15, where 25 % off is 30. I'll correct the formula.",
                pieces=24,
            ),
            *ev_custom_tool_call("call_patch", "apply_patch", PATCH, index=1),
            ev_completed(input_tokens=4733, cached=4096, output_tokens=141),
        ],
        [
            ev_created(),
            *ev_function_call("call_again", "exec_command", TESTS),
            *ev_function_call(
                "call_done",
                "update_plan",
                plan("completed", "completed", "completed"),
                index=1,
            ),
            ev_completed(input_tokens=4951, cached=4608, output_tokens=68),
        ],
        [
            ev_created(),
            *ev_message(
                "Fixed. `total` in `basket.py` now takes the discount as a percentage of the subtotal,"
                " as its docstring says. Both tests pass.",
                pieces=20,
            ),
            ev_completed(input_tokens=5102, cached=4864, output_tokens=37),
        ],
    ]


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="codex-py-record-") as folder,
        ScriptedServer(story()) as server,
    ):
        home = Path(folder) / "home"
        home.mkdir()
        home.joinpath("config.toml").write_text(server.config_toml(), encoding="utf-8")
        environment = {**demo_environment(home, os.environ), "MOCK_KEY": "none"}
        repository = make_repository(Path(folder) / "basket", environment)
        command = demo_command(repository, ["--record", str(TAPE)])
        program = [sys.executable, "-m", "codex_py", *command]
        done = subprocess.run(
            program, env=environment, stdin=subprocess.DEVNULL, check=False
        )
        # The tape should not tell where it was made.
        tape = TAPE.read_text(encoding="utf-8").replace(
            str(repository), "/home/demo/basket"
        )
        TAPE.write_text(tape, encoding="utf-8")
        TAPE.chmod(0o644)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
