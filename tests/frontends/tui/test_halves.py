"""The first frames of the terminal import nothing that only later ones need.

Tests `frontends/tui/start.py` and `frontends/tui/terminal_run.py`.
"""

import subprocess
import sys

import pytest

HEAVY = (
    "rich",
    "httpx",
    "pydantic",
    "codex_py.protocol.events",
    "codex_py.core",
    "codex_py.frontends.tui.session_half",
)


@pytest.mark.parametrize(
    ("module", "without"),
    [
        (
            "start",
            (
                *HEAVY,
                "asyncio",
                "prompt_toolkit",
                "codex_py.frontends.tui.terminal_run",
            ),
        ),
        ("terminal_run", HEAVY),
    ],
)
def test_a_frame_loads_nothing_that_only_later_ones_need(
    module: str, without: tuple[str, ...]
) -> None:
    code = f"import sys, codex_py.frontends.tui.{module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert set(done.stdout.split()).isdisjoint(without)
