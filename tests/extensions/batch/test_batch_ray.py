"""`codex-py batch --ray`: its errors, and what is left after kills, the latter with a Ray that is installed.

Tests `extensions/batch/ray_engine.py`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from codex_py.config.config import load_config
from codex_py.errors import CodexError
from codex_py.extensions.batch.ray_engine import RayEngine
from codex_py.extensions.batch.tasks import Task
from codex_py.testing import Pause
from tests.support.codex_process import start_codex_py
from tests.support.hooks import DONE
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

_HAS_RAY = find_spec("ray") is not None
_WORDS = (
    "batch",
    "tasks.jsonl",
    "-o",
    "out.jsonl",
    "--ray",
    "local",
    "--json",
    "--jobs",
    "2",
)
_OF_EXEC = ("--", "--skip-git-repo-check", "-s", "danger-full-access")


def write_tasks(place: Workplace) -> None:
    lines = [json.dumps({"id": name, "prompt": "go"}) for name in ("t0", "t1")]
    (place.cwd / "tasks.jsonl").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.skipif(_HAS_RAY, reason="Ray is installed")
def test_without_ray_the_error_says_how_to_install_it(place: Workplace) -> None:
    write_tasks(place)
    done = run_codex_py([*_WORDS, *_OF_EXEC], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr == b"Error: --ray needs Ray: pip install 'codex-py-agent[ray]'\n"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (
            RuntimeError(
                "Version mismatch:\n  Ray: 2.60.0\n  Python: 3.11.7\n  Ray: 2.59.0"
            ),
            78,
        ),
        (ConnectionError("nobody\n answers"), 69),
    ],
)
def test_a_cluster_that_cannot_be_used_is_a_sentence(
    error: Exception, exit_code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FakeRay(ModuleType):
        def init(self, **_: object) -> None:
            raise error

    monkeypatch.setitem(sys.modules, "ray", FakeRay("ray"))
    variables = environment(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    config = load_config(cwd=tmp_path, environment=variables)
    with pytest.raises(CodexError) as caught:
        RayEngine("auto", 0.25, (), 60.0, config, variables)
    assert caught.value.exit_code == exit_code
    assert " ".join(str(error).split()) in str(caught.value)


def use_fake_ray(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands in for Ray. Returns a list that gets the arguments of each attempt."""
    result = {"status": "done", "attempts": [{"status": "done"}]}
    ended = 0, "", {"result.jsonl": json.dumps(result).encode()}
    calls: list[Any] = []

    async def stream() -> AsyncIterator[Awaitable[Any]]:
        for value in (None, ended):
            if value is None:
                for _ in range(10):
                    await asyncio.sleep(0)
            got = asyncio.get_running_loop().create_future()
            got.set_result(value)
            yield got

    class FakeRay(ModuleType):
        exceptions = SimpleNamespace(RayError=KeyError)

        def init(self, **_: object) -> None: ...

        def remote(self, **_: object) -> Any:
            return self._function

        def _function(self, _: object) -> Any:
            return SimpleNamespace(options=self._options)

        def _options(self, **_: object) -> Any:
            return SimpleNamespace(remote=self._stream)

        def _stream(self, *given: object) -> AsyncIterator[Awaitable[Any]]:
            calls.append(given)
            return stream()

    monkeypatch.setitem(sys.modules, "ray", FakeRay("ray"))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return calls


def test_an_attempt_may_wait_for_its_turn_and_is_not_cancelled_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake_ray(monkeypatch)
    variables = environment(tmp_path)
    config = load_config(cwd=tmp_path, environment=variables)
    # With the patience for the node, no time at all.
    engine = RayEngine("auto", 0.25, (), -60.0, config, variables)
    record = asyncio.run(engine.run(Task(id="t", prompt="x"), tmp_path))
    assert record["status"] == "done"


@pytest.mark.parametrize("trusts_tasks", [True, False])
def test_a_node_trusts_the_row_as_far_as_the_driver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusts_tasks: bool
) -> None:
    calls = use_fake_ray(monkeypatch)
    variables = environment(tmp_path)
    config = load_config(cwd=tmp_path, environment=variables)
    engine = RayEngine(
        "auto", 0.25, (), 60.0, config, variables, trusts_tasks=trusts_tasks
    )
    task = Task(id="t", prompt="x", timeout=90)
    asyncio.run(engine.run(task.tightened(config.budget, 30.0), tmp_path))
    ((words, _, line, *_),) = calls
    assert ("--trust-tasks" in words) == trusts_tasks
    # Otherwise the node would hold the row to the limit of the batch, or to its own.
    assert "--timeout=30.0" in words
    assert json.loads(line) == {"id": "t", "prompt": "x", "timeout": 30.0}


def processes(place: Workplace, *words: bytes) -> Iterator[int]:
    """The running processes of this place whose command line has all these words."""
    home = f"CODEX_HOME={place.home}\0".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
            if (
                all(word in line for word in words)
                and home in (entry / "environ").read_bytes()
            ):
                yield int(entry.name)
        except OSError:
            pass


def wait_until_gone(place: Workplace, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while list(processes(place, b"codex_py\0exec\0")):
        assert time.monotonic() < deadline, "an agent runs on"
        time.sleep(0.01)


def start(place: Workplace) -> subprocess.Popen[bytes]:
    return start_codex_py(
        [*_WORDS, *_OF_EXEC], place.cwd, environment(place.home), real=True
    )


@pytest.mark.skipif(not _HAS_RAY, reason="Ray is not installed")
def test_a_killed_worker_or_driver_leaves_no_agent_and_no_task_without_a_result(
    place: Workplace,
) -> None:
    write_tasks(place)
    pauses = [Pause() for _ in range(5)]
    with ScriptedServer(
        [[pause, *DONE] for pause in pauses], check_prefix=False
    ) as server:
        place.configure(server)
        with start(place) as driver:
            for pause in pauses[:2]:
                assert pause.reached.wait(120)
            worker = next(processes(place, b"ray::t0"))
            before = set(processes(place, b"codex_py\0exec\0"))
            assert len(before) == 2
            os.kill(worker, signal.SIGKILL)
            assert pauses[2].reached.wait(120)
            after = set(processes(place, b"codex_py\0exec\0"))
            assert len(after) == 2
            assert len(before & after) == 1
            driver.kill()
        wait_until_gone(place, 1.0)
        assert (place.cwd / "out.jsonl").read_bytes() == b""
        for pause in pauses:
            pause.until.set()
        with start(place) as driver:
            out, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0
    events = [json.loads(line) for line in out.splitlines()]
    assert events[-1]["statuses"] == {"done": 2}
    lines = (place.cwd / "out.jsonl").read_text(encoding="utf-8").splitlines()
    results = {each["id"]: each for each in map(json.loads, lines)}
    assert {name: each["status"] for name, each in results.items()} == {
        "t0": "done",
        "t1": "done",
    }
    assert len(lines) == 2
    assert (place.cwd / results["t0"]["artefacts"] / "events.jsonl").stat().st_size > 0
