"""`--oss`: which server on this machine is asked, and for which model."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from codex_py.testing import ev_completed, ev_created, ev_message
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

DONE = [ev_created(), *ev_message("Done."), ev_completed()]
NOBODY = {"CODEX_OSS_BASE_URL": "http://127.0.0.1:1/v1"}
"""Nothing answers where Ollama and LM Studio are looked for."""


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where connections are accepted and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def run(
    place: Workplace, *args: str, env: dict[str, str] = NOBODY, **urls: str
) -> Outcome:
    tables = (
        f'{name} = {{ base_url = "{url}", wire_api = "chat" }}'
        for name, url in urls.items()
    )
    text = "\n".join(["[model_providers]", *tables])
    (place.home / "config.toml").write_text(text, encoding="utf-8")
    return place.rerun("--oss", *args, "hi", env=env)


def test_the_first_server_that_answers_serves_the_first_model_that_can_chat(
    place: Workplace, silent: str
) -> None:
    with ScriptedServer([DONE], models=["nomic-embed-text", "qwen3:8b"]) as server:
        outcome = run(place, llamacpp=silent, vllm=server.base_url)
    assert outcome.messages == ["Done."]
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body["model"] == "qwen3:8b"


def test_the_model_that_codex_takes_is_preferred(place: Workplace) -> None:
    with ScriptedServer([DONE], models=["other", "gpt-oss:20b"]) as server:
        run(place, env={"CODEX_OSS_PORT": str(server.port)})
    assert server.requests[0].body["model"] == "gpt-oss:20b"


@pytest.mark.parametrize(
    "args", [["--local-provider", "vllm", "-m", "a/b"], ["-m", "vllm/a/b"]]
)
def test_a_named_server_and_a_named_model_are_not_looked_for(
    place: Workplace, args: list[str]
) -> None:
    with ScriptedServer([DONE]) as server:
        assert run(place, *args, vllm=server.base_url).messages == ["Done."]
    assert server.requests[0].body["model"] == "a/b"


def test_the_configuration_may_name_the_server(place: Workplace) -> None:
    with ScriptedServer([DONE], models=["m"]) as server:
        run(place, "-c", "oss_provider=llamacpp", llamacpp=server.base_url)
    assert server.requests[0].body["model"] == "m"


def test_a_missing_server_is_told_in_one_sentence(place: Workplace) -> None:
    outcome = run(place, "--local-provider", "vllm", vllm="http://127.0.0.1:1/v1")
    assert (outcome.code, outcome.events) == (69, [])
    assert outcome.err.splitlines() == [
        "Error: no model server was found on this machine: vLLM does not answer at http://127.0.0.1:1"
        " (Connection refused); start it with `vllm serve MODEL`"
    ]


def test_a_server_of_something_else_is_passed_over(place: Workplace) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{site.server_port}"
        with ScriptedServer([DONE], models=["m"]) as server:
            outcome = run(place, llamacpp=f"{address}/v1", vllm=server.base_url)
            alone = run(place, "--local-provider", "llamacpp", llamacpp=f"{address}/v1")
        site.shutdown()
    assert outcome.messages == ["Done."]
    assert f"what answers at {address} is no llama.cpp (status 501)" in alone.err
