"""A run that is a fork of a loaded program is like one that is a process of its own."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.codex_process import start_codex_py
from tests.support.fork_server import CLONE
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.skipif(CLONE is None, reason="runs are not forked here")
# The process that runs the program, and the environment that a command of the model gets.
_SHOW = r"""
read -r stat <"/proc/$PROGRAM/stat"; set -- $stat
echo "parent $4, group $5, session $6, terminal $7"
readlink "/proc/$PROGRAM/cwd" "/proc/$PROGRAM/exe"
grep -E 'Uid|Umask|SigBlk|SigIgn|SigCgt|Seccomp:' "/proc/$PROGRAM/status"
cat "/proc/$PROGRAM/limits"
for fd in 0 1 2; do echo "$fd $(readlink /proc/$PROGRAM/fd/$fd | tr -d 0-9)"; done
ls "/proc/$PROGRAM/fd" | wc -l
env | grep -Ev '_PROCESS=|_ID=|PROGRAM='
"""


def _shown(place: Workplace, *, real: bool) -> str:
    script = place.home / "show"
    script.write_text(_SHOW, encoding="utf-8")
    ready, answer = place.home / "pid", place.home / "shown"
    for fifo in (ready, answer):
        fifo.unlink(missing_ok=True)
    os.mkfifo(ready)
    command = f"PROGRAM=$(cat {ready}) sh {script} >{answer}"
    call = ev_function_call("c1", "exec_command", {"cmd": command})
    replies = [[*call, ev_completed()], [*ev_message("done"), ev_completed()]]
    with ScriptedServer(replies) as server:
        place.configure(server)
        program = place.start(real=real)
        with program:
            ready.write_text(f"{program.pid}\n", encoding="ascii")
            assert program.wait(120) == 0
    return answer.read_text("utf-8")


def test_a_command_finds_the_same_around_it(place: Workplace) -> None:
    before = os.umask(0o027)
    try:
        forked, real = (_shown(place, real=real) for real in (False, True))
    finally:
        os.umask(before)
    assert forked.splitlines() == real.splitlines()
    assert (
        f"parent {os.getpid()}, group {os.getpgrp()}, session {os.getsid(0)}" in forked
    )
    assert "Umask:\t0027" in forked


def test_the_end_of_the_run_is_known(place: Workplace) -> None:
    def run(*args: str) -> "subprocess.Popen[bytes]":
        return start_codex_py(
            args, place.cwd, environment(place.home), stderr=subprocess.STDOUT
        )

    with run("--help") as program:
        out, err = program.communicate(timeout=120)
        assert (program.returncode, out.startswith(b"A streaming"), err) == (
            0,
            True,
            None,
        )
    with run("exec", "--nonsense") as program:
        assert b"--nonsense" in program.communicate(timeout=120)[0]
        assert program.returncode == 2
    with ScriptedServer([[]]) as server:
        place.configure(server)
        for number in (signal.SIGKILL, signal.SIGSEGV):
            with run("exec", "--skip-git-repo-check", "go") as program:
                program.send_signal(number)
                assert program.wait(120) == -number


def test_runs_do_not_share_what_is_random(place: Workplace) -> None:
    ids: set[Any] = set()
    for _ in range(3):
        with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
            ids.add(place.run(server).events[0]["thread_id"])
    assert len(ids) == 3


@pytest.mark.parametrize("variable", ["PYTHONPATH", "LC_ALL"])
def test_a_run_with_variables_of_the_interpreter_is_no_fork(
    place: Workplace, variable: str
) -> None:
    value = {"PYTHONPATH": str(place.cwd), "LC_ALL": "C.UTF-8"}[variable]
    variables = environment(place.home, {variable: value})
    with start_codex_py(["--help"], place.cwd, variables) as program:
        words = Path(f"/proc/{program.pid}/cmdline").read_text("utf-8")
        program.communicate(timeout=120)
    assert "fork_server" not in words
