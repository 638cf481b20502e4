"""Agents that a process forks which has the program loaded.

Tests `process/forked.py` and `cli/fork_server.py`.
"""

import asyncio
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.exec_process import (
    FORK_SERVER,
    ExecInvocation,
    ExecResult,
    run_exec,
)
from codex_py.process import forked
from codex_py.process.child import Child
from codex_py.process.forked import ForkServer
from codex_py.process.guardian import Guardian
from codex_py.testing import Pause
from tests.support.hooks import DONE, command
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")

OPTIONS = ("--skip-git-repo-check", "-s", "danger-full-access")
FACTS = r"""
python3 - $PPID <<'END'
import json, os, sys
agent = int(sys.argv[1])
def of(name): return open(f"/proc/{agent}/{name}").read()
fields = dict(line.split(":\t") for line in of("status").splitlines() if ":\t" in line)
links = [os.readlink(f"/proc/{agent}/fd/{fd}") for fd in os.listdir(f"/proc/{agent}/fd")]
print(json.dumps({
    "pid": agent, "parent": int(fields["PPid"]), "umask": fields["Umask"],
    "group": os.getpgid(agent), "session": os.getsid(agent), "blocked": fields["SigBlk"],
    "cwd": os.readlink(f"/proc/{agent}/cwd"), "sockets": sum("socket" in each for each in links),
    "changed": os.environ.get("PYDANTIC_DISABLE_PLUGINS"),
    "files": sorted(each for each in links if each.startswith("/") and "/dev/" not in each),
}))
END
"""


class Forks:
    """A server that is ready, and the runs that it makes."""

    def __init__(self, place: Workplace) -> None:
        self.place = place
        self.guardian = Guardian()
        self.environment = environment(place.home)
        self.server = ForkServer(FORK_SERVER, self.guardian, self.environment)
        deadline = time.monotonic() + 60
        while not self.server.is_ready:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    @property
    def server_id(self) -> int:
        server = self.server._child  # pyright: ignore[reportPrivateUsage]
        assert server is not None
        return server.id

    def spawn(self, *args: str, **options: Any) -> Child | None:
        null = os.open(os.devnull, os.O_RDWR)
        streams = (null, null, null)
        given: dict[str, Any] = {
            "cwd": self.place.cwd,
            "environment": self.environment,
            "streams": streams,
        }
        try:
            return self.server.spawn(args, **{**given, **options})
        finally:
            os.close(null)

    async def run(self, name: str, timeout_s: float | None = 60) -> ExecResult:
        """Run an agent whose files are in the folder `name`."""
        folder = self.place.home / name
        folder.mkdir()
        made = ExecInvocation(
            OPTIONS, name, self.place.cwd, self.environment, timeout_s=timeout_s
        )
        return await run_exec(made, self.guardian, folder, forks=self.server)

    def run_all(self, *names: str) -> Sequence[ExecResult]:
        async def main() -> Sequence[ExecResult]:
            return await asyncio.gather(*map(self.run, names))

        return asyncio.run(main())


@pytest.fixture
def forks(place: Workplace) -> Generator[Forks]:
    made = Forks(place)
    try:
        yield made
    finally:
        made.server.close()
        made.guardian.close()


def outputs(server: ScriptedServer) -> list[Any]:
    """The outputs of the commands, as JSON."""
    found: list[Any] = []
    for request in server.requests:
        last = request.input[-1]
        if last["type"] == "function_call_output":
            found.append(json.loads(re.findall(r"\{.*\}", last["output"])[0]))
    return found


def test_a_fork_shares_nothing_of_a_run_with_another(forks: Forks) -> None:
    before = os.umask(0o027)
    try:
        with ScriptedServer([command(FACTS), DONE] * 2) as server:
            forks.place.configure(server)
            one, other = (forks.run_all(name)[0] for name in ("one", "other"))
            facts = outputs(server)
    finally:
        os.umask(before)
    assert (one.exit_code, other.exit_code) == (0, 0)
    assert one.thread_id != other.thread_id
    for found, name in zip(facts, ("one", "other"), strict=True):
        assert found["pid"] == found["group"] == found["session"] != forks.server_id
        assert found["parent"] == os.getpid()
        assert found["umask"] == "0027"
        assert int(found["blocked"], 16) == 0
        assert found["changed"] is None
        assert found["cwd"] == str(forks.place.cwd)
        # Those to the model and of the event loop.
        assert found["sockets"] <= 4
        folder = forks.place.home / name
        assert {str(folder / "events.jsonl"), str(folder / "stderr")} < {
            *found["files"]
        }
        assert not any("/other/" in file for file in found["files"] if name == "one")
    assert facts[0]["pid"] != facts[1]["pid"]


def test_a_fork_loads_next_to_nothing(place: Workplace, tmp_path: Path) -> None:
    with (
        loud_imports(place) as forks,
        ScriptedServer([command("true"), DONE]) as server,
    ):
        place.configure(server)
        assert forks.run_all("one")[0].exit_code == 0
    text = (place.home / "one/stderr").read_text("utf-8")
    loaded = re.findall(r"^import time:.*\| +(codex_py\S*)$", text, re.MULTILINE)
    assert len(loaded) <= 3, loaded
    assert "import time" in text


@contextmanager
def loud_imports(place: Workplace) -> Generator[Forks]:
    """Forks that print what they import."""
    with pytest.MonkeyPatch.context() as patch:
        here = sys.modules[__name__]
        loud = {**environment(place.home), "PYTHONPROFILEIMPORTTIME": "1"}

        def loud_environment(_: Path) -> dict[str, str]:
            return loud

        patch.setattr(here, "environment", loud_environment)
        made = Forks(place)
    try:
        yield made
    finally:
        made.server.close()
        made.guardian.close()


def test_exit_codes_and_signals_are_those_of_a_process(forks: Forks) -> None:
    with ScriptedServer([DONE]) as server:
        forks.place.configure(server)
        good, bad = forks.run_all("one")[0], forks.spawn("exec", "--no-such-option")
    assert (good.exit_code, good.last_message) == (0, "done")
    assert bad is not None
    assert bad.process.wait() == 2
    assert bad.process.wait() == 2


def test_a_run_that_is_killed_takes_no_other_along(forks: Forks) -> None:
    pause = Pause()
    with ScriptedServer([command("kill -9 $PPID"), [pause, *DONE]]) as server:
        forks.place.configure(server)

        async def main() -> tuple[ExecResult, ExecResult]:
            killed = await forks.run("killed")
            other = asyncio.create_task(forks.run("other"))
            await asyncio.to_thread(pause.reached.wait, 60)
            pause.until.set()
            return killed, await other

        killed, other = asyncio.run(main())
    assert (killed.exit_code, killed.signal) == (None, signal.SIGKILL)
    assert (other.exit_code, other.last_message) == (0, "done")
    assert forks.server.is_ready


def test_a_server_that_is_killed_takes_no_run_along(forks: Forks) -> None:
    pause = Pause()
    with ScriptedServer([[pause, *DONE], DONE]) as server:
        forks.place.configure(server)

        async def main() -> tuple[ExecResult, ExecResult]:
            forked_one = asyncio.create_task(forks.run("forked"))
            await asyncio.to_thread(pause.reached.wait, 60)
            os.kill(forks.server_id, signal.SIGKILL)
            started_anew = await forks.run("anew")
            pause.until.set()
            return await forked_one, started_anew

        results = asyncio.run(main())
    assert [result.exit_code for result in results] == [0, 0]
    assert not forks.server.is_ready
    assert forks.spawn("--version") is None


def test_a_server_that_does_not_answer_runs_nothing_later(
    forks: Forks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forked, "_TIMEOUT_S", 0.2)
    server = forks.server_id
    os.kill(server, signal.SIGSTOP)
    with (tmp_path / "out").open("w+b") as out:
        streams = (0, out.fileno(), out.fileno())
        assert forks.spawn("--version", streams=streams) is None
        assert out.read() == b""
    assert not Path(f"/proc/{server}").exists()
    assert not forks.server.is_ready


def test_a_fork_without_its_request_ends_by_itself(forks: Forks) -> None:
    """As if the starter had given up when the fork was already made."""
    with pytest.MonkeyPatch.context() as patch:

        def broken_off(_: object) -> str:
            return '{"args": ["--version"]'

        patch.setattr(json, "dumps", broken_off)
        child = forks.spawn("--version")
    assert child is not None
    assert child.process.wait() == 137


def test_other_variables_need_a_process_of_their_own(forks: Forks) -> None:
    other = {**forks.environment, "MORE": "1"}
    assert forks.spawn("--version", environment=other) is None
    assert forks.spawn("--version") is not None


def test_a_signal_that_the_driver_blocks_reaches_a_fork(place: Workplace) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        forks = Forks(place)
        with ScriptedServer([command(FACTS), DONE]) as server:
            place.configure(server)
            assert forks.run_all("one")[0].exit_code == 0
            [facts] = outputs(server)
        forks.server.close()
        forks.guardian.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert int(facts["blocked"], 16) == 0


def test_what_cannot_be_started_is_left_to_an_ordinary_start(
    forks: Forks, tmp_path: Path
) -> None:
    """The ordinary start raises an error."""
    assert forks.spawn("--version", cwd=tmp_path / "gone") is None
    (tmp_path / "file").touch(mode=0o777)
    assert forks.spawn("--version", cwd=tmp_path / "file") is None
    assert forks.spawn("--version\0") is None
    assert forks.spawn("--version") is not None


def test_a_relative_folder_is_one_of_the_driver(
    forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be another one in the folder of the server, which is the root."""
    (forks.place.cwd / "tmp").mkdir()
    monkeypatch.chdir(forks.place.cwd)
    with ScriptedServer([command(FACTS), DONE]) as server:
        forks.place.configure(server)
        forks.place = Workplace(forks.place.home, Path("tmp"))
        assert forks.run_all("one")[0].exit_code == 0
        [facts] = outputs(server)
    assert facts["cwd"] == str(Path.cwd() / "tmp")


def test_a_fork_does_not_change_the_umask_of_other_threads(
    forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "umask")
    child = forks.spawn("--version")
    assert child is not None
    assert child.process.wait() == 0


def test_two_threads_can_wait_for_a_fork(forks: Forks) -> None:
    """As where the system has no descriptors of processes."""
    child = forks.spawn("exec", "--no-such-option")
    assert child is not None
    with ThreadPoolExecutor(4) as threads:
        codes = [threads.submit(child.process.wait) for _ in range(4)]
    assert [code.result() for code in codes] == [2] * 4


def test_no_descriptor_is_left_for_a_server(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socketpair", refuse)
    guardian = Guardian()
    server = ForkServer(FORK_SERVER, guardian, environment(place.home))
    assert not server.is_ready
    server.close()
    guardian.close()


def test_a_system_without_forks_starts_no_server(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "_MACHINES", {"riscv64"})
    guardian = Guardian()
    server = ForkServer(FORK_SERVER, guardian, environment(place.home))
    assert not server.is_ready
    server.close()
    guardian.close()


_STATE = """
import asyncio, json, logging, os, random, ssl, tempfile, threading, uuid
from codex_py.cli import fork_server
from codex_py.protocol.ids import new_call_id

def state():
    with threading.Lock(), logging._lock:
        asyncio.run(asyncio.sleep(0))
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    return {
        "pid": os.getpid(),
        "random": random.random(),
        "openssl": ssl.RAND_bytes(16).hex(),
        "name": next(tempfile._get_candidate_names()),
        "uuid": uuid.uuid4().hex,
        "call": new_call_id(),
        "main": threading.current_thread() is threading.main_thread(),
    }

state()
for _ in range(3):
    if fork_server._fork_sibling() == 0:
        print(json.dumps(state()), flush=True)
        os._exit(0)
"""


def test_forks_differ_in_all_that_is_random_and_can_use_threads_and_locks() -> None:
    """Also OpenSSL, which makes the keys of connections."""
    done = subprocess.run(
        [sys.executable, "-c", _STATE], capture_output=True, check=True, timeout=60
    )
    states = [json.loads(line) for line in done.stdout.splitlines()]
    for each in states:
        os.waitpid(each["pid"], 0)
    assert len(states) == 3
    assert all(each["main"] for each in states)
    for name in ("pid", "random", "openssl", "name", "uuid", "call"):
        assert len({each[name] for each in states}) == 3, name


_PARENT = """
import asyncio, os, sys, time
from pathlib import Path
from codex_py.app.exec_process import FORK_SERVER, ExecInvocation, run_exec
from codex_py.process.forked import ForkServer
from codex_py.process.guardian import Guardian
home, cwd, *options = sys.argv[1:]
command = ExecInvocation(options, "go", Path(cwd), dict(os.environ))
guardian = Guardian()
forks = ForkServer(FORK_SERVER, guardian, command.environment)
while not forks.is_ready:
    time.sleep(0.01)
asyncio.run(run_exec(command, guardian, Path(home), forks=forks))
"""


@pytest.mark.parametrize("without_guardian", [False, True])
def test_a_killed_parent_takes_forks_and_their_commands_along(
    place: Workplace, tmp_path: Path, without_guardian: bool
) -> None:
    with (
        Lifeline(tmp_path) as line,
        ScriptedServer([command(line.hold + "sleep 60")]) as server,
    ):
        place.configure(server)
        parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT, place.home, place.cwd, *OPTIONS],
            env=environment(place.home),
        )
        try:
            line.wait_until_up()
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
            guardian, forking, agent = map(int, children.read_text("utf-8").split())
            if without_guardian:
                os.kill(guardian, signal.SIGKILL)
        finally:
            parent.kill()
            parent.wait()
        line.wait_until_dead()
    deadline = time.monotonic() + 30
    while any(is_running(each) for each in (forking, agent)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """False for a process that has ended, whether it was reaped or not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("stdin", [b"", None])
def test_a_user_who_starts_the_process_that_forks_is_told(
    place: Workplace, stdin: bytes | None
) -> None:
    done = subprocess.run(
        FORK_SERVER,
        input=stdin,
        env=environment(place.home),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Error: --fork-server is for `codex-py batch`")
    assert done.stderr.count(b"\n") == 1
