"""Gates that look at changes, in a home that cannot be written, or whose disk is full.

Tests `app/features/copies_place.py`.
"""

import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.hooks import DONE, command
from tests.support.program import Outcome, Workplace, jsonl
from tests.support.server import ScriptedServer

CHANGED = [command("echo new >made"), DONE]
GATES = {
    "require-change": ["--require-change"],
    "forbid-path": ["--forbid-path", "other/**"],
    "max-diff-lines": ["--max-diff-lines", "5"],
}


@pytest.fixture
def bad(place: Workplace) -> Workplace:
    """A place whose home takes nothing of ours."""
    (place.home / "codex-py").mkdir()
    (place.home / "codex-py" / "undo").touch()
    return place


def in_git(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)


def run(place: Workplace, script: list[Any], *options: str) -> tuple[Outcome, int]:
    with ScriptedServer(script) as server:
        outcome = place.run(server, *options, "go")
    return outcome, len(server.requests)


@pytest.mark.parametrize("name", GATES)
def test_a_gate_finds_what_was_changed_without_the_home(
    bad: Workplace, name: str
) -> None:
    in_git(bad.cwd)
    outcome, requests = run(bad, CHANGED, *GATES[name])
    assert (outcome.code, requests) == (0, 2), outcome
    (gate,) = outcome.events[-1]["gates"]
    assert gate["status"] == "passed"
    assert not [*(bad.cwd / ".git").glob("codex-py*")]


def test_a_gate_fails_without_the_home_as_with_it(bad: Workplace) -> None:
    in_git(bad.cwd)
    outcome, requests = run(bad, [DONE] * 2, "--require-change", "--verify-tries", "1")
    assert (outcome.code, requests) == (3, 2)
    (gate,) = outcome.events[-1]["gates"]
    assert gate["reason"] == "nothing was changed"


def test_a_command_cannot_change_what_is_compared(bad: Workplace) -> None:
    in_git(bad.cwd)
    script = [
        command("touch made; find .git/codex-py-copies* -delete; ls -d .git/codex-py*"),
        DONE,
    ]
    outcome, _ = run(bad, script, "-s", "workspace-write", "--require-change")
    assert outcome.code == 0, outcome.items
    assert ".git/codex-py-copies" in str(outcome.items)


@pytest.mark.parametrize("name", [*GATES, "require-evidence"])
def test_without_any_place_the_run_ends_before_its_first_request(
    bad: Workplace, name: str
) -> None:
    options = GATES.get(name, ["--require-evidence", "true"])
    outcome, requests = run(bad, [], *options)
    assert (outcome.code, requests) == (78, 0)
    text = f"{outcome.err}{outcome.events}"
    assert f"{bad.home}/codex-py/undo cannot be written: Not a directory" in text
    assert "Traceback" not in text


def limited(size: int) -> Callable[[], None]:
    def limit() -> None:
        # A write beyond it fails with EFBIG, as one on a full disk with ENOSPC.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("size", [20_000, 200_000])
def test_a_full_disk_asks_the_model_for_nothing(place: Workplace, size: int) -> None:
    in_git(place.cwd)
    (place.cwd / "large").write_bytes(bytes(range(256)) * 5_000)
    answer = [*ev_message("done"), ev_completed()]
    with ScriptedServer([command("echo >made"), answer], check_prefix=False) as server:
        place.configure(server)
        program = place.start("--require-change", "go", limit=limited(size))
        out, err = program.communicate(timeout=120)
    text = f"{out!r}{err!r}"
    assert "not accepted" not in str([request.input for request in server.requests])
    if size < 64 * 1024:
        assert (program.returncode, server.requests) == (78, [])
        assert "cannot be written: File too large" in text
    else:
        assert jsonl(out)[-1]["type"] == "turn.completed"
