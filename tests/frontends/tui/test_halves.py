import subprocess
import sys

HEAVY = (
    "rich",
    "httpx",
    "pydantic",
    "codex_py.protocol.events",
    "codex_py.core",
    "codex_py.frontends.tui.loaded",
)


def test_the_first_frame_loads_nothing_of_the_other_half() -> None:
    code = "import sys, codex_py.frontends.tui.run; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert set(done.stdout.split()).isdisjoint(HEAVY)
