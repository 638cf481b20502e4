import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.model.catalog import catalog_models, model_info
from codex_py.testing import ev_completed, ev_message
from tests.support.codex import CODEX, needs_codex
from tests.support.program import KEY, Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

ARGS = ("-c", 'model="gpt-5.5"', "hello")


@pytest.fixture
def place(place: Workplace) -> Workplace:
    (place.cwd / "AGENTS.md").write_text("Be brief.", encoding="utf-8")
    return place


def debug(place: Workplace, *argv: str, env: Mapping[str, str] | None = None) -> Any:
    done = run_codex_py(["debug", *argv], place.home, place.cwd, env)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    assert KEY not in done.stdout.decode()
    return json.loads(done.stdout)


def files(place: Workplace) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in place.home.rglob("*") if path.is_file()}


def test_the_next_request_is_printed_and_not_sent(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("Hi"), ev_completed()]]) as server:
        place.configure(server)
        before = files(place)
        context = debug(place, "prompt-input")
        items = debug(place, "prompt-input", "hello")
        body = debug(place, "prompt-input", "--body", "hello")
        assert (len(server.requests), files(place)) == (0, before)
        place.rerun("-c", 'approval_policy="on-request"', "-s", "read-only", "hello")
        sent = server.requests[0].body
    assert [item["role"] for item in context] == ["developer", "user"]
    assert "Be brief." in json.dumps(context)
    assert items == [*context, items[-1]]
    assert items[-1]["content"] == [{"type": "input_text", "text": "hello"}]
    assert body["input"][-len(items) :] == items
    assert body.keys() == sent.keys()
    assert (body["model"], body["tools"]) == (sent["model"], sent["tools"])


def test_the_next_request_of_an_earlier_session_has_its_history(
    place: Workplace,
) -> None:
    with ScriptedServer([[*ev_message("Hi"), ev_completed()]]) as server:
        started = place.run(server, "first")
        before = files(place)
        items = debug(
            place, "prompt-input", "--resume", started.events[0]["thread_id"], "second"
        )
        assert files(place) == before
    texts = [part["text"] for item in items for part in item["content"]]
    assert [text for text in texts if text in {"first", "Hi", "second"}] == [
        "first",
        "Hi",
        "second",
    ]


def test_the_body_is_that_of_the_api_of_the_provider(place: Workplace) -> None:
    body = debug(
        place, "prompt-input", "-m", "anthropic/claude-opus-5-5", "--body", "hello"
    )
    assert body["messages"][-1]["content"][-1]["text"] == "hello"


def test_hooks_do_not_run(place: Workplace) -> None:
    hook = {"hooks": [{"type": "command", "command": "touch ran"}]}
    (place.home / "hooks.json").write_text(
        json.dumps({"hooks": {"SessionStart": [hook]}}), "utf-8"
    )
    debug(place, "prompt-input", "hello")
    assert not (place.cwd / "ran").exists()


def test_a_session_that_is_not_there_is_told(place: Workplace) -> None:
    done = run_codex_py(
        ["debug", "prompt-input", "--resume", "nope"], place.home, place.cwd
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == (
        b"Error: no session found with the id or name 'nope';"
        b" `codex-py sessions list --all` shows them\n"
    )


@needs_codex
def test_codex_prints_the_same_shape(place: Workplace) -> None:
    def shape(items: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
        return {
            (i["type"], i["role"], part["type"]) for i in items for part in i["content"]
        }

    done = subprocess.run(
        [str(CODEX), "debug", "prompt-input", *ARGS],
        env=environment(place.home),
        cwd=place.cwd,
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert shape(debug(place, "prompt-input", *ARGS)) == shape(json.loads(done.stdout))


def test_the_catalogue_reads_back_as_it_was(place: Workplace) -> None:
    models = debug(place, "models", "--bundled")
    assert [entry["slug"] for entry in models["models"]] == [
        model.slug for model in catalog_models()
    ]
    path = place.home / "models.json"
    path.write_text(json.dumps(models), encoding="utf-8")
    for slug in ("gpt-6", "gpt-6.1-terra", "gpt-5.5", "gpt-daybreak-red-latest"):
        assert model_info(slug, path) == model_info(slug)
    again = debug(place, "models", "-c", f"model_catalog_json={path}")
    assert [entry["slug"] for entry in again["models"]] == [
        model.slug for model in catalog_models()
    ]


@needs_codex
def test_codex_takes_the_catalogue(place: Workplace) -> None:
    path = place.home / "models.json"
    path.write_text(json.dumps(debug(place, "models")), encoding="utf-8")
    done = subprocess.run(
        [str(CODEX), "-c", f"model_catalog_json={path}", "debug", "models"],
        env=environment(place.home),
        cwd=place.cwd,
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert [entry["slug"] for entry in json.loads(done.stdout)["models"]] == [
        model.slug for model in catalog_models()
    ]
