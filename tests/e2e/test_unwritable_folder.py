"""`workspace-write` in a folder that the user cannot write to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_message
from codex_py.testing.events import ev_created
from tests.support.privileges import heed_permissions, needs_permissions
from tests.support.program import Outcome, Workplace, jsonl
from tests.support.server import ScriptedServer

pytestmark = needs_permissions
DONE = [ev_created(), *ev_message("done"), ev_completed()]


@pytest.fixture
def read_only(place: Workplace) -> Iterator[Workplace]:
    place.cwd.chmod(0o555)
    yield place
    place.cwd.chmod(0o755)


def run(place: Workplace, server: ScriptedServer, *args: str) -> Outcome:
    place.configure(server)
    program = place.start(*args, "go", limit=heed_permissions)
    out, err = program.communicate(timeout=60)
    return Outcome(program.returncode, jsonl(out), err.decode())


def test_a_session_that_could_run_no_command_does_not_begin(
    read_only: Workplace,
) -> None:
    with ScriptedServer() as server:
        outcome = run(read_only, server, "-s", "workspace-write")
        assert not server.requests
    assert outcome.code == 6
    assert f"{read_only.cwd} cannot be written to (Permission denied)" in outcome.err
    assert "use `-s read-only`" in outcome.err
    assert not read_only.rollouts()


def test_a_further_folder_is_named_too(place: Workplace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o555)
    with ScriptedServer() as server:
        outcome = run(place, server, "-s", "workspace-write", "--add-dir", str(other))
        assert not server.requests
    assert outcome.code == 6
    assert f"{other} cannot be written to" in outcome.err


@pytest.mark.parametrize("mode", ["read-only", "danger-full-access"])
def test_the_other_modes_need_no_writable_folder(
    read_only: Workplace, mode: str
) -> None:
    with ScriptedServer([DONE]) as server:
        outcome = run(read_only, server, "-s", mode)
    assert outcome.code == 0
    assert "cannot be written" not in outcome.err
