"""`codex-py acp` driven by the command-line client of others, where it is installed.

`ACP_PEERS` names a folder whose `node_modules` has `acpx`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


def acpx(place: Workplace, *args: str) -> str:
    """Run `acpx` with our agent; its standard output."""
    program = Path(
        os.environ.get("ACP_PEERS", "/nonexistent"), "node_modules/.bin/acpx"
    )
    if not program.exists():
        pytest.skip("ACP_PEERS has no acpx")
    agent = f"{sys.executable} -m codex_py acp -s danger-full-access"
    env = {**environment(place.home), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [str(program), "--agent", agent, "--approve-all", "--ttl", "1", *args],
        cwd=place.cwd,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_session_of_acpx_keeps_its_id(place: Workplace) -> None:
    """One process opens the session, and another one prompts it."""
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        made = acpx(place, "--format", "json", "sessions", "new")
        assert "done" in acpx(place, "prompt", "hi")
    (file,) = place.rollouts()
    thread_id = file.stem[-36:]
    assert thread_id in made
