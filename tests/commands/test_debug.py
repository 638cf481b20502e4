"""Also tests `app/wrappers.py`."""

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


def wrappers(place: Workplace, config: str) -> dict[str, dict[str, str]]:
    """The names of each chain in their order, with what they do."""
    (place.home / "config.toml").write_text(config, encoding="utf-8")
    done = run_codex_py(["debug", "wrappers"], place.home, place.cwd)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    chains: dict[str, dict[str, str]] = {}
    for chain in done.stdout.decode().split("\n\n"):
        title, *lines = chain.splitlines()
        names = [line.split()[1] for line in lines[::2]]
        chains[title] = dict(zip(names, map(str.strip, lines[1::2]), strict=True))
    return chains


CALL = "A call of the model passes, in this order:"
APPROVAL = "A request for an approval passes, in this order:"
REQUEST = "A request to the model passes, in this order:"


def test_the_chain_around_a_call_is_printed_in_its_order(place: Workplace) -> None:
    before = files(place)
    chains = wrappers(place, "")
    (place.home / "config.toml").unlink()
    assert files(place) == before
    assert [*chains[CALL]] == [
        *("SessionTools.dispatch", "ToolRouter.dispatch", "CallQueue.turn"),
        "SessionTools.with_latest_settings",
        *("ToolChoices", "TurnChanges", "NestedAgentsMd", "PlanMode", "SubAgents"),
        "Tool",
    ]
    assert [*chains[APPROVAL]] == ["Approvals.ask"]
    assert [*chains[REQUEST]] == ["ToolChoices", "ModelChain", "HttpModelClient.stream"]


def test_features_that_the_configuration_asks_for_are_in_the_chains(
    place: Workplace,
) -> None:
    config = f"""
        log_file = "{place.home / "log"}"
        approvals_reviewer = "auto_review"
        [features]
        undo = false
        [budget]
        max_turns = 5
        [[hooks.PreToolUse]]
        hooks = [{{ type = "command", command = "touch ran" }}]
        [[hooks.SessionStart]]
        hooks = [{{ type = "command", command = "touch ran" }}]
        [mcp_servers.docs]
        command = "touch"
        args = ["ran"]
    """
    chains = wrappers(place, config)
    # The hooks are inside of the log, and outside of the features that a refused call must not reach.
    assert [*chains[CALL]][4:-1] == [
        *("DebugLog", "ToolChoices", "HooksFeature"),
        *("TurnChanges", "NestedAgentsMd", "PlanMode", "SubAgents"),
    ]
    assert [*chains[APPROVAL]][1:] == ["HooksFeature", "ApprovalReviewer"]
    assert {"McpFeature", "BudgetFeature"} <= {*chains[REQUEST]}
    assert all(what for chain in chains.values() for what in chain.values())
    assert not (place.cwd / "ran").exists()
    assert not (place.home / "sessions").exists()


def test_the_chain_of_a_wrong_configuration_is_its_error(place: Workplace) -> None:
    (place.home / "config.toml").write_text(
        'model_provider = "nowhere"', encoding="utf-8"
    )
    done = run_codex_py(["debug", "wrappers"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (78, b"")
    assert "nowhere" in done.stderr.decode()


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
