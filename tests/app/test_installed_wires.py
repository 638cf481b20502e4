"""Wires of installed packages, as `docs/extensions.md` shows one.

Tests `api/wires.py`.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest

from codex_py import (
    CodexError,
    SessionOptions,
    TurnResult,
    load_config,
    open_session,
)
from tests.support.packages import (
    EXAMPLE,
    install_package,
    shown_block,
    shown_points,
)
from tests.support.program import Workplace, environment
from tests.support.tcp_server import Handler, tcp_server

GROUP = "codex_py.wires"
WIRE = (EXAMPLE / "codex_py_ledger/wire.py").read_text(encoding="utf-8")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, "codex_py_plain", raising=False)
    return folder


def install(packages: Path, module: str) -> None:
    install_package(packages, "codex_py_plain", module, {GROUP: shown_points(GROUP)})


def turn(
    place: Workplace, address: str, wire: str = "plain", key: str = ""
) -> TurnResult:
    """Run a turn with a provider that speaks this wire. `key`: one more line of its table."""
    table = shown_block("[model_providers.mine]")
    table = table.replace("http://127.0.0.1:8000", address)
    table = table.replace('"plain"', f'"{wire}"')
    text = f'model = "m"\nmodel_provider = "mine"\n{table}{key}\n'
    text += "stream_max_retries = 0\n"
    (place.home / "config.toml").write_text(text, encoding="utf-8")

    async def main() -> TurnResult:
        variables = environment(place.home)
        config = load_config(cwd=place.cwd, environment=variables)
        opening = open_session(
            config, SessionOptions(), lambda _: None, environment=variables
        )
        async with opening as session:
            return await session.run_turn("say it")

    return asyncio.run(main())


def answers(*events: str) -> Handler:
    """A handler that sends events as a stream."""
    body = "".join(f"data: {event}\n\n" for event in events)
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"

    def handler(connection: socket.socket, _: bytes) -> None:
        connection.sendall((head + body).encode())

    return handler


def test_a_provider_speaks_the_wire_of_a_package(
    place: Workplace, packages: Path
) -> None:
    install(packages, WIRE)
    answer = answers('{"text": "it"}', '{"tokens": [3, 1]}')
    with tcp_server(answer) as (address, requests):
        assert turn(place, address).last_message == "it"
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /plain ")
    request = json.loads(body)
    assert request["model"] == "m"
    assert request["messages"][-1] == {"role": "user", "text": "say it"}


def test_a_stream_that_ends_early_fails_the_turn(
    place: Workplace, packages: Path
) -> None:
    install(packages, WIRE)
    with tcp_server(answers()) as (address, _):
        error = turn(place, address).error
    assert error is not None
    assert error.code == "disconnected"


def test_an_unknown_wire_is_a_mistake(place: Workplace, packages: Path) -> None:
    with pytest.raises(CodexError, match="'plain' is not supported; use one of") as it:
        turn(place, "http://127.0.0.1:9")
    assert it.value.exit_code == 78
    assert str(it.value).endswith("or install the package that adds it")


def test_a_misspelt_wire_is_told_with_those_of_packages(
    place: Workplace, packages: Path
) -> None:
    install(packages, WIRE)
    with pytest.raises(CodexError) as it:
        turn(place, "http://127.0.0.1:9", wire="plian")
    assert str(it.value).endswith(
        "'plian' is not supported; use one of responses, chat, anthropic, text, plain, or install"
        " the package that adds it; did you mean 'plain'?"
    )


@pytest.mark.parametrize(
    ("event", "code", "retryable"),
    [
        ('{"refused": "no such model"}', "refused", False),
        ('{"text": ', "bad_event", True),
        ('{"call": {"id": "c", "name": "n", "arguments": {}}}', "bad_event", True),
    ],
)
def test_a_failure_is_final_or_not(
    place: Workplace, packages: Path, event: str, code: str, retryable: bool
) -> None:
    install(packages, WIRE)
    with tcp_server(answers(event)) as (address, _):
        error = turn(place, address, key="request_max_retries = 0").error
    assert error is not None
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError"),
        ("other = 1\n", "AttributeError"),
        ("PlainWire = 3\n", "its entry point is a int, not a class"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_a_wire_that_cannot_be_used_is_named(
    place: Workplace, packages: Path, module: str, reason: str
) -> None:
    install(packages, module)
    with pytest.raises(CodexError) as raised:
        turn(place, "http://127.0.0.1:9")
    text = str(raised.value)
    assert "the wire 'plain' (codex_py_plain:PlainWire) cannot be used: " in text
    assert reason in text
    assert raised.value.exit_code == 78


def test_its_module_is_not_imported_by_others(place: Workplace, packages: Path) -> None:
    install(packages, WIRE)
    with tcp_server(answers("{}")) as (address, _):
        turn(place, address, wire="chat")
    assert "codex_py_plain" not in sys.modules
