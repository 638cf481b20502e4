"""`--log`, through the real program.

Tests `app/features/debug_log.py`.
"""

import json
import stat
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_py.app.features.debug_log import DebugLog
from codex_py.config.declared.settings import Settings
from codex_py.protocol.network_report import NetworkReport
from codex_py.testing import ev_completed, ev_failed, ev_function_call, ev_message
from tests.support.program import KEY, Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


def calling(command: str) -> list[dict[str, Any]]:
    return [
        *ev_function_call("call_1", "exec_command", {"cmd": command}),
        ev_completed(),
    ]


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_requests_calls_events_and_failures_are_logged(place: Workplace) -> None:
    failure = ev_failed("invalid_prompt", "not with me")
    with ScriptedServer([calling("echo out"), [failure]]) as server:
        assert place.run(server, "--log", str(place.cwd / "log"), "go").code == 1
    log = place.cwd / "log"
    logged = lines(log)
    # The call runs as the answer still comes.
    assert Counter(line["what"] for line in logged if line["what"] != "event") == {
        "session": 1,
        "request": 2,
        "answer": 2,
        "answered": 1,
        "call": 1,
        "output": 1,
        "failure": 1,
    }
    assert logged[-1]["event"]["type"] == "turn.failed"
    (failed,) = [line for line in logged if line["what"] == "failure"]
    assert "not with me" in failed["message"]
    assert (logged[0]["model"], logged[0]["sandbox"]) == (
        "gpt-5.5",
        "danger-full-access",
    )
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_key_in_an_output_is_masked_and_a_long_text_is_cut(place: Workplace) -> None:
    with ScriptedServer([calling(f"echo {KEY}; seq 3000"), DONE]) as server:
        place.run(server, "--log", str(place.cwd / "log"), "go")
    text = (place.cwd / "log").read_text(encoding="utf-8")
    assert KEY not in text
    assert "[redacted]" in text
    assert "characters)" in text
    assert len(text) < 20_000


@pytest.mark.parametrize("path", ["missing/log", "."])
def test_a_log_that_cannot_be_written_stops_the_start(
    place: Workplace, path: str
) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        config = place.home / "config.toml"
        config.write_text(
            f"log_file = {json.dumps(path)}\n{config.read_text('utf-8')}",
            encoding="utf-8",
        )
        outcome = place.rerun("go")
    assert outcome.code == 78
    assert outcome.err.count("\n") == 1
    assert "the log" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_full_log_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = SimpleNamespace(settings=Settings({"log_file": str(log)}), home=tmp_path)
    setup: Any = SimpleNamespace(config=config, environment={}, network=NetworkReport())
    write = DebugLog(setup)._write  # pyright: ignore[reportPrivateUsage]
    for _ in range(6_000):
        write("thread", "event", text="x" * 3_000)
    assert lines(log)[-1] == {"what": "full"}
    assert 9_900_000 < log.stat().st_size < 10_000_100


def test_a_bug_of_the_networks_proxy_is_logged_with_its_trace(tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = SimpleNamespace(settings=Settings({"log_file": str(log)}), home=tmp_path)
    setup: Any = SimpleNamespace(config=config, environment={}, network=NetworkReport())
    DebugLog(setup)
    try:
        raise ZeroDivisionError("x" * 5_000)
    except ZeroDivisionError as error:
        setup.network.tell_bug(error)
    try:
        raise ZeroDivisionError("of ours")
    except ZeroDivisionError as error:
        setup.network.tell_bug(error)
    long, short = lines(log)
    assert long["what"] == short["what"] == "bug"
    assert len(long["trace"]) == 2_000
    assert short["error"] == "ZeroDivisionError('of ours')"
    assert "test_log.py" in short["trace"]
