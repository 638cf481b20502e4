"""`exec fork`, as Codex 0.171 does it."""

import json
import os
import subprocess
from pathlib import Path

from codex_py.testing import ev_completed, ev_message
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

ANSWERS = [[*ev_message(text), ev_completed()] for text in ("one", "two", "three")]


def files(place: Workplace) -> set[Path]:
    return {*(place.home / "sessions").rglob("*.jsonl")}


def meta(path: Path) -> dict[str, object]:
    with path.open(encoding="utf-8") as lines:
        return json.loads(next(lines))["payload"]


def test_without_a_prompt_the_copy_is_made_and_nothing_is_sent(
    place: Workplace,
) -> None:
    with ScriptedServer(ANSWERS) as server:
        first = place.run(server, "first").events[0]["thread_id"]
        (original,) = files(place)
        before = original.read_bytes()
        fork = place.rerun("fork", first, stdin=b"not for us")
        assert (fork.code, fork.types, fork.err) == (0, ["thread.started"], "")
        (copy,) = files(place) - {original}
        assert meta(copy)["id"] == fork.events[0]["thread_id"] != first
        assert meta(copy)["forked_from_id"] == first
        assert len(server.requests) == 1
        assert place.rerun("resume", "--last", "second").events[0] == fork.events[0]
    assert (
        server.requests[1].input[: len(server.requests[0].input)]
        == server.requests[0].input
    )
    assert original.read_bytes() == before


def test_with_a_prompt_the_copy_goes_on(place: Workplace) -> None:
    with ScriptedServer(ANSWERS) as server:
        place.run(server, "first")
        fork = place.rerun("fork", "--last", "-", stdin=b"second")
        assert (fork.code, fork.messages) == (0, ["two"])
    assert "second" in json.dumps(server.requests[1].input[-1])


def test_text_mode_shows_where_the_copy_is(place: Workplace) -> None:
    with ScriptedServer(ANSWERS) as server:
        place.run(server, "first")
        args = ["exec", "--skip-git-repo-check", "fork", "--last"]
        done = run_codex_py(args, place.home, place.cwd)
    assert (done.returncode, done.stdout) == (0, b"")
    *_, last, rule = done.stderr.decode().splitlines()
    assert last.startswith("session id: ")
    assert rule == "--------"


@needs_codex
def test_codex_goes_on_with_a_copy(place: Workplace) -> None:
    assert CODEX is not None
    with ScriptedServer(ANSWERS, check_prefix=False) as server:
        first = place.run(server, "first").events[0]["thread_id"]
        fork = place.rerun("fork", first).events[0]["thread_id"]
        done = subprocess.run(
            [
                CODEX,
                "exec",
                "--skip-git-repo-check",
                "--json",
                "resume",
                fork,
                "second",
            ],
            cwd=place.cwd,
            env={**os.environ, **environment(place.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert f'"thread_id":"{fork}"'.encode() in done.stdout
    assert "first" in json.dumps(server.requests[1].input)
