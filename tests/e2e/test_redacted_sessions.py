"""`history.redact`: what is kept has no keys, and what the model and the tools get is whole."""

import json
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import KEY, Workplace
from tests.support.server import ScriptedServer

TOKEN = "ghp_" + "a1B2" * 9
PRIVATE = "-----BEGIN PRIVATE KEY-----\\nMIIB\\nno end"
ON = ("-c", "history.redact=true")


def calling(command: str) -> list[dict[str, Any]]:
    return [
        *ev_function_call("call_1", "exec_command", {"cmd": command}),
        ev_completed(),
    ]


def answering(text: str) -> list[dict[str, Any]]:
    return [*ev_message(text), ev_completed()]


@pytest.mark.parametrize(
    "secret", [TOKEN, KEY], ids=["a known form", "a variable of the program"]
)
def test_a_key_is_masked_in_the_file_and_nowhere_in_this_run(
    place: Workplace, secret: str
) -> None:
    script = [calling(f"printf {secret} > it; cat it"), answering(f"It is {secret}.")]
    with ScriptedServer([*script, answering("more")], check_prefix=False) as server:
        outcome = place.run(server, *ON, "-s", "danger-full-access", f"Use {secret}")
        assert (place.cwd / "it").read_text(encoding="utf-8") == secret
        assert secret in server.requests[1].output("call_1")
        assert outcome.messages == [f"It is {secret}."]
        (file,) = place.rollouts()
        text = file.read_text(encoding="utf-8")
        assert secret not in text
        for line in text.splitlines():
            json.loads(line)
        resumed = place.rerun(*ON, "resume", "--last", "more")
    told = json.dumps(server.requests[2].input)
    assert (secret in told, "Use [redacted]" in told) == (False, True)
    assert [item["message"] for item in resumed.items if item["type"] == "error"] == [
        "Keys were masked when this session was kept: the model reads [redacted] in their place."
    ]


def test_a_key_without_an_end_leaves_the_line_whole(place: Workplace) -> None:
    with ScriptedServer(
        [calling(f"echo '{PRIVATE}'"), answering("done"), answering("x")],
        check_prefix=False,
    ) as server:
        place.run(server, *ON, "go")
        place.rerun("resume", "--last", "more")
    (file,) = place.rollouts()
    assert "MIIB" not in file.read_text(encoding="utf-8")
    assert "[redacted]" in server.requests[2].output("call_1")
    (call,) = [
        item for item in server.requests[2].input if item["type"] == "function_call"
    ]
    assert json.loads(call["arguments"]) == {"cmd": "echo '[redacted]"}


def test_without_the_setting_nothing_changes(place: Workplace) -> None:
    with ScriptedServer([answering(f"It is {TOKEN}.")]) as server:
        place.run(server, "go")
    (file,) = place.rollouts()
    assert TOKEN in file.read_text(encoding="utf-8")
