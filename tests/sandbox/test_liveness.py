"""What a command leaves behind, on every way to hold a command that this machine has."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from codex_py.process.sessions import ProcessSessions
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.sandbox.liveness import LivenessPipe
from tests.sandbox.local_backends import BACKENDS, workspace
from tests.support.lifeline import Lifeline

every_backend = pytest.mark.parametrize(
    "backend", BACKENDS, ids=lambda backend: backend.name
)

# Each child moves a folder of its own to a protected name as soon as nothing has that.
_PLANTERS = """
import os, sys, time
for number in range(60):
    os.makedirs(f"own{number}/hooks")
    if not os.fork():
        os.setsid()
        os.environ.clear()
        os.closerange(0, 3)
        while True:
            for name in (".codex", ".git"):
                try:
                    os.rename(f"own{number}", name)
                except OSError:
                    pass
print("up", flush=True)
if sys.argv[1:]:
    time.sleep(600)
"""


@every_backend
def test_processes_that_a_command_leaves_behind_die_with_it(
    backend: Backend, tmp_path: Path
) -> None:
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    with Lifeline(tmp_path) as line:
        script = f"{line.hold} (env -i setsid sleep 600 </dev/null >/dev/null 2>&1 &)"
        argv = sandbox.command(["/bin/sh", "-c", script], workspace(tmp_path), tmp_path)
        subprocess.run(argv, cwd=tmp_path, check=True)
        assert line.was_held()
        line.wait_until_dead()
    sandbox.release()


@every_backend
def test_processes_that_a_killed_command_leaves_behind_die_too(
    backend: Backend, tmp_path: Path
) -> None:
    async def run(line: Lifeline) -> None:
        sessions = ProcessSessions()
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        script = f"{line.hold} env -i setsid sh -c 'sleep 600' </dev/null >/dev/null 2>&1 & sleep 600"
        argv = sandbox.command(["/bin/sh", "-c", script], workspace(tmp_path), tmp_path)
        process = sessions.spawn(list(argv), cwd=tmp_path, environment=dict(os.environ))
        await asyncio.to_thread(line.wait_until_up)
        await process.stop()
        sandbox.release()
        await sessions.aclose()

    with Lifeline(tmp_path) as line:
        asyncio.run(run(line))
        line.wait_until_dead()


@pytest.mark.parametrize("end", ["exits", "is killed"])
@every_backend
def test_nothing_is_planted_as_a_command_ends(
    backend: Backend, tmp_path: Path, end: str
) -> None:
    if backend.name == "landlock":
        pytest.skip("it holds no names")
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    code = [os.path.realpath(sys.executable), "-I", "-S", "-c", _PLANTERS]
    words = [] if end == "exits" else ["stay"]

    async def run(line: Lifeline) -> None:
        held = ["/bin/sh", "-c", f'{line.hold} exec "$@"', "sh", *code, *words]
        sessions = ProcessSessions()
        up = asyncio.Event()
        process = sessions.spawn(
            list(sandbox.command(held, workspace(tmp_path), tmp_path)),
            cwd=tmp_path,
            environment=dict(os.environ),
            on_output=lambda _: up.set(),
        )
        async with asyncio.timeout(120):
            await up.wait()
            if words:
                await sessions.aclose()
            await process.finished.wait()
        sandbox.release()
        await sessions.aclose()

    with Lifeline(tmp_path) as line:
        asyncio.run(run(line))
        line.wait_until_dead()
    assert not (tmp_path / ".codex").exists()
    assert not (tmp_path / ".git").exists()


def test_everything_is_dead_where_nothing_was_started() -> None:
    liveness = LivenessPipe()
    assert liveness.wait(0)
    liveness.path()
    assert liveness.wait(0)
    assert liveness.wait(0)


def test_whoever_has_the_pipe_open_lives() -> None:
    liveness = LivenessPipe()
    with Path(liveness.path()).open("wb"):
        assert not liveness.wait(0)
        # The next commands have a pipe of their own.
        liveness.path()
        assert not liveness.wait(0)
    assert liveness.wait(0)


def test_the_first_process_of_a_namespace_is_waited_for() -> None:
    liveness = LivenessPipe()
    # This one is no first process: its number was given away again.
    Path(liveness.path()).write_text(
        f'{{"child-pid": {os.getpid()}}}', encoding="ascii"
    )
    assert liveness.wait(0)


def test_the_id_of_a_dead_first_process_may_be_that_of_a_thread_by_now() -> None:
    liveness = LivenessPipe()
    started, ended = threading.Event(), threading.Event()
    ids: list[int] = []

    def live() -> None:
        ids.append(threading.get_native_id())
        started.set()
        ended.wait(120)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        assert started.wait(120)
        Path(liveness.path()).write_text(f'{{"child-pid": {ids[0]}}}', encoding="ascii")
        assert liveness.wait(0)
    finally:
        ended.set()
        thread.join()


def test_no_number_of_commands_fills_the_pipe() -> None:
    liveness = LivenessPipe()
    for _ in range(5_000):
        descriptor = os.open(liveness.path(), os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, b'"child-pid": %d\n' % os.getpid())
        os.close(descriptor)
    assert liveness.wait(0)
