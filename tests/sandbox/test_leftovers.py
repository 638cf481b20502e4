"""What a command leaves behind finishes its output, on every way to hold commands that this machine has.

Tests `sandbox/child/leftovers.py`.
"""

import os
import subprocess
import time
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from tests.sandbox.local_backends import BACKENDS, run_in, workspace
from tests.support.lifeline import Lifeline

pytestmark = pytest.mark.parametrize(
    "backend", BACKENDS, ids=lambda backend: backend.name
)


def bash(backend: Backend, script: str, cwd: Path) -> tuple[int, str]:
    done = run_in(backend, ["/bin/bash", "-c", script], workspace(cwd), cwd)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("script", "code", "output", "kept"),
    [
        ("exec > >(tee -a kept) 2>&1; echo out; echo err >&2; exit 3", 3, "out\nerr\n", "out\nerr\n"),
        ("echo text | tee >(cat >kept); exit 4", 4, "text\n", "text\n"),
        ("echo text | tee >(sleep 0.1; sort >kept) >(sleep 0.1; cat >&2) >/dev/null", 0, "text\n", "text\n"),
        ("exec 2> >(tee kept >&2); echo text >&2; false", 1, "text\n", "text\n"),
        ("coproc { sleep 0.1; cat | tee kept >&2; }; echo text >&${COPROC[1]}", 0, "text\n", "text\n"),
        ("(sleep 0.1; echo late | tee kept) & echo early; exit 5", 5, "early\nlate\n", "late\n"),
        ("nohup sh -c 'sleep 0.1; echo late | tee kept' 2>/dev/null & exit 6", 6, "late\n", "late\n"),
        ("setsid sh -c 'sleep 0.1; echo late | tee kept' & exit 7", 7, "late\n", "late\n"),
        ("setsid sh -c '(trap \"\" HUP; sleep 0.1; echo late | tee kept) &' &", 0, "late\n", "late\n"),
        ("exec >/dev/null > >(sleep 0.1; cat >kept) 2>&1; echo text; kill -9 $$", 137, "", "text\n"),
        ("(for n in 1 2 3 4 5 6; do sleep 0.2; echo $n | tee -a kept; done) &", 0, *["1\n2\n3\n4\n5\n6\n"] * 2),
        ("(yes | head -n 200000 | cksum | tee kept) & kill $$", 143, *["2421413765 400000\n"] * 2),
    ],
)  # fmt: skip
def test_output_is_kept_whole_that_comes_just_after_the_end(
    backend: Backend, tmp_path: Path, script: str, code: int, output: str, kept: str
) -> None:
    ended, printed = bash(backend, script, tmp_path)
    assert (ended if ended >= 0 else 128 - ended, printed) == (code, output)
    assert (tmp_path / "kept").read_text(encoding="ascii") == kept


@pytest.mark.parametrize(
    "leftover",
    [
        "sleep 600",
        "sleep 600 >/dev/null 2>&1",
        "setsid nohup sleep 600",
        "(trap '' HUP INT TERM; sleep 600; sleep 600)",
        "yes",
        "(while :; do echo tick; sleep 0.05; done)",
        "(while :; do :; done)",
    ],
)
def test_processes_that_go_on_for_long_are_ended_soon(
    backend: Backend, tmp_path: Path, leftover: str
) -> None:
    with Lifeline(tmp_path) as line:
        script = f"{line.hold} {leftover} & exit 9"
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        argv = sandbox.command(
            ["/bin/bash", "-c", script], workspace(tmp_path), tmp_path
        )
        began_s = time.monotonic()
        done = subprocess.run(
            argv, cwd=tmp_path, stdout=subprocess.PIPE, check=False, timeout=120
        )
        took_s = time.monotonic() - began_s
        line.wait_until_dead()
        sandbox.release()
    assert done.returncode == 9
    # The bounds are 0.3 s for those that are quiet, and 2 s; this machine may be busy.
    assert took_s < 15


def test_a_command_that_leaves_nothing_behind_ends_at_once(
    backend: Backend, tmp_path: Path
) -> None:
    def least_s(script: str) -> float:
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        argv = sandbox.command(["/bin/sh", "-c", script], SandboxPolicy(), tmp_path)
        taken: list[float] = []
        for _ in range(5):
            began_s = time.monotonic()
            subprocess.run(argv, cwd=tmp_path, check=True)
            taken.append(time.monotonic() - began_s)
        sandbox.release()
        return min(taken)

    assert least_s("true & wait") < least_s("sleep 600 &")
