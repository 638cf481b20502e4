"""Tests `app/providers/first_answer.py`, `commands/providers/providers_command.py` and
`commands/providers/trial.py`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Reply,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

NOBODY = {"CODEX_OSS_BASE_URL": "http://127.0.0.1:1/v1"}
ADDRESSES = """\
[model_providers.llamacpp]
base_url = "http://127.0.0.1:1/v1"
[model_providers.vllm]
base_url = "{vllm}"
"""
CALL = [*ev_function_call("c1", "weather", {"city": "Oslo"}), ev_completed()]
NO_CALL = [*ev_message("No."), ev_completed()]
FINE = [
    [*ev_message("one two three"), ev_completed()],
    CALL,
    [*CALL[:-1], *ev_function_call("c2", "weather", {"city": "Rome"}), ev_completed()],
    [*ev_custom_tool_call("c1", "note", "hello"), ev_completed()],
    CALL,
    [*ev_message("Red."), ev_completed()],
    [*ev_reasoning("Hm."), *ev_message("391"), ev_completed()],
]


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    home, cwd = tmp_path / "home" / ".codex", tmp_path / "cwd"
    home.mkdir(parents=True)
    cwd.mkdir()
    return Workplace(home, cwd)


def command(place: Workplace, *args: str, **env: str) -> tuple[int, str, str]:
    done = run_codex_py(list(args), place.home, place.cwd, {**NOBODY, **env})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def findings_of(place: Workplace, *args: str) -> dict[str, tuple[bool | None, str]]:
    code, out, _ = command(place, "providers", "test", "mock", "--json", *args)
    report = json.loads(out)
    assert (code, report["provider"], report["model"]) == (0, "mock", "gpt-5.5")
    return {
        each["ability"]: (each["works"], each["note"]) for each in report["findings"]
    }


def server(script: Sequence[Any], *, text_tools: bool = False) -> ScriptedServer:
    return ScriptedServer(script, check_prefix=False, text_tools=text_tools)


def test_the_list_says_which_keys_are_set_and_which_servers_answer(
    place: Workplace,
) -> None:
    with ScriptedServer(models=["m"]) as vllm:
        text = ADDRESSES.format(vllm=vllm.base_url)
        (place.home / "config.toml").write_text(text, encoding="utf-8")
        code, out, _ = command(place, "providers", "list", "--json", GROQ_API_KEY="k")
        _, table, _ = command(place, "providers", "list")
    rows = {row["id"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["groq"] == {
        "id": "groq",
        "name": "Groq",
        "wire_api": "chat",
        "base_url": "https://api.groq.com/openai/v1",
        "key": "GROQ_API_KEY",
        "has_key": True,
        "answers": None,
        "problem": None,
    }
    assert (rows["xai"]["has_key"], rows["openai"]["has_key"]) == (False, False)
    assert "set AZURE_OPENAI_ENDPOINT" in rows["azure"]["problem"]
    answers = [
        rows[name]["answers"] for name in ("ollama", "lmstudio", "llamacpp", "vllm")
    ]
    assert answers == [False, False, False, True]
    assert f"{vllm.base_url} (answers)" in table
    assert "GROQ_API_KEY not set" in table


@pytest.mark.parametrize("wire_api", ["responses", "chat", "anthropic"])
def test_a_test_says_what_works(place: Workplace, wire_api: str) -> None:
    with server(FINE) as mock:
        place.configure(mock, wire_api=wire_api)
        findings = findings_of(place)
    assert [*findings] == [
        *("streaming", "tools", "parallel calls", "freeform tools", "tool_choice"),
        *("images", "reasoning"),
    ]
    assert {works for works, _ in findings.values()} == {True}
    assert len(mock.requests) == 7


def test_abilities_that_do_not_work_are_reported_and_later_sessions_do_without(
    place: Workplace,
) -> None:
    script = [
        FINE[0],
        NO_CALL,
        NO_CALL,
        Reply(status=503, body=b'{"error": "busy"}'),
        NO_CALL,
    ]
    with server(script) as mock:
        place.configure(mock, wire_api="chat")
        code, out, _ = command(place, "providers", "test", "mock")
    assert code == 0
    assert "  tools       no   the model did not call the tool" in out
    assert "  images      no   the model did not see what is in the image" in out
    assert f"go by that from now on: {place.home}/codex-py/providers.json" in out
    with server([NO_CALL, NO_CALL], text_tools=True) as mock:
        known = json.loads((place.home / "codex-py/providers.json").read_text("utf-8"))
        known["mock"]["gpt-5.5"]["base_url"] = mock.base_url
        (place.home / "codex-py/providers.json").write_text(
            json.dumps(known), encoding="utf-8"
        )
        outcome = place.run(mock, wire_api="chat")
        place.run(mock, "-m", "other", "go", wire_api="chat")
    assert outcome.messages == ["No."]
    warnings = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert any("'gpt-5.5' could not call tools when" in text for text in warnings)
    # It was not tried with another model.
    assert ["tools" in request.fields for request in mock.requests] == [
        False,
        True,
        False,
    ]


def test_a_server_that_refuses_tools_is_tried_with_calls_as_text(
    place: Workplace,
) -> None:
    fine = [FINE[0], FINE[5], FINE[6], CALL]
    with server(fine, text_tools=True) as mock:
        place.configure(mock, wire_api="chat")
        findings = findings_of(place)
    works, note = findings["tools"]
    assert (works, ": 'gpt-5.5' does not support tools, url: http" in note) == (
        False,
        True,
    )
    assert findings["text tools"] == (True, "")


def test_a_refusal_that_does_not_speak_of_tools_says_nothing_about_them(
    place: Workplace,
) -> None:
    refusal = Reply(status=400, body=b'{"error": {"message": "top_k is too large"}}')
    with server([FINE[0], refusal, FINE[5], FINE[6]]) as mock:
        place.configure(mock, wire_api="chat")
        findings = findings_of(place)
    works, note = findings["tools"]
    assert (works, "top_k is too large" in note) == (None, True)
    assert "text tools" not in findings
    known = json.loads((place.home / "codex-py/providers.json").read_text("utf-8"))
    assert "tools" not in known["mock"]["gpt-5.5"]["works"]


@pytest.mark.parametrize(
    ("reply", "code", "sentence", "advice"),
    [
        (
            Reply(status=401, body=b'{"error": {"message": "bad key"}}'),
            77,
            "bad key",
            "Look at the key in the variable `MOCK_KEY`.",
        ),
        (
            Reply(body=b"<html>Hello", headers={"content-type": "text/html"}),
            1,
            "web page",
            "look at `base_url` and `wire_api`",
        ),
        (Reply(status=404, body=b"<html>"), 1, "404", "which usually ends in /v1"),
    ],
)
def test_a_provider_that_answers_nothing_gets_one_sentence_and_an_advice(
    place: Workplace, reply: Reply, code: int, sentence: str, advice: str
) -> None:
    with server([reply, reply]) as mock:
        place.configure(mock, wire_api="chat")
        found, out, err = command(place, "providers", "test", "mock")
        _, report, _ = command(place, "providers", "test", "mock", "--json")
    assert (found, out) == (code, "")
    error = err.splitlines()[0]
    assert error.startswith("Error: ")
    assert sentence in error
    assert advice in err
    assert sentence in json.loads(report)["error"]["message"]
    assert not (place.home / "codex-py" / "providers.json").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["test", "anthropic"],
            77,
            "Missing environment variable: `ANTHROPIC_API_KEY`.",
        ),
        (["test", "nope"], 78, "Model provider `nope` not found"),
        (["test"], 2, "say which provider: codex-py providers test NAME"),
        (["test", "lmstudio"], 69, "LM Studio does not answer at http://127.0.0.1:1"),
        (["test", "openrouter"], 78, "say which model to try:"),
        (["nope"], 2, "unknown command `providers nope`. Use one of list, test."),
        (
            ["--json", "list"],
            2,
            "say what to do: codex-py providers COMMAND, one of list, test",
        ),
    ],
)
def test_mistakes_get_one_sentence(
    place: Workplace, words: list[str], code: int, message: str
) -> None:
    found, out, err = command(place, "providers", *words)
    assert (found, out) == (code, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_the_models_are_listed_with_what_the_user_set_over_it(place: Workplace) -> None:
    text = '[model_prices."gpt-5.5"]\noutput = 1\n[model_prices.mine]\ninput = 2\noutput = 3\n'
    (place.home / "config.toml").write_text(text, encoding="utf-8")
    code, out, _ = command(place, "models", "list", "--json")
    _, table, _ = command(place, "models", "list")
    rows = {row["id"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["claude-opus-4-5"] == {
        "id": "claude-opus-4-5",
        "provider": "anthropic",
        "context_window": 200_000,
        "max_output_tokens": 64_000,
        "tools": "functions",
        "images": True,
        "reasoning": "medium",
        "prices": {"input": 5, "cached_input": 0.5, "output": 25},
        "date": "2026-11-20",
    }
    assert rows["gpt-5.5"]["prices"] == {"input": 5, "cached_input": 0.5, "output": 1}
    assert rows["mine"]["prices"] == {"input": 2, "cached_input": 2, "output": 3}
    assert (rows["gpt-5.5"]["date"], rows["gpt-6.1-sol"]["date"]) == (
        "config",
        "2026-11-20",
    )
    assert table.splitlines()[0].split()[:3] == ["MODEL", "WINDOW", "OUTPUT"]


def test_secrets_in_an_address_are_not_shown(place: Workplace) -> None:
    text = (
        '[model_providers.x]\nbase_url = "http://me:secret@127.0.0.1:1/v1?key=secret"\n'
        'wire_api = "chat"\n'
    )
    (place.home / "config.toml").write_text(text, encoding="utf-8")
    for arguments in (["list"], ["list", "--json"], ["test", "x", "--model", "m"]):
        shown = "".join(command(place, "providers", *arguments)[1:])
        assert "http://127.0.0.1:1/v1" in shown
        assert "secret" not in shown


@pytest.mark.parametrize(
    ("wire_api", "name"),
    [
        ("responses", "max_output_tokens"),
        ("chat", "max_completion_tokens"),
        ("anthropic", "max_tokens"),
    ],
)
def test_each_request_has_a_small_limit(
    place: Workplace, wire_api: str, name: str
) -> None:
    with server(FINE) as mock:
        place.configure(mock, wire_api=wire_api)
        findings_of(place)
    assert {request.fields[name] for request in mock.requests} == {1_500}


def test_a_limit_that_is_refused_is_left_out(place: Workplace) -> None:
    refusal = Reply(
        status=400,
        body=b'{"error": {"message": "max_completion_tokens is not supported"}}',
    )
    with server(
        [refusal, FINE[0], *[each for reply in FINE[1:] for each in (refusal, reply)]]
    ) as mock:
        place.configure(mock, wire_api="chat")
        findings = findings_of(place)
    assert findings["streaming"][0] is True
    assert "max_completion_tokens" not in mock.requests[1].fields


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=503, body=b'{"error": {"message": "Loading model", "code": 503}}'),
        Reply(status=500, body=b'{"error": "model is loading, please wait"}'),
        Reply(status=429, headers={"retry-after": "1"}, body=b"{}"),
        Reply(status=503, body=b"no healthy upstream"),
        Reply(status=502, body=b""),
        Reply(status=529, body=b'{"error": {"type": "overloaded_error"}}'),
    ],
)
def test_a_server_that_refuses_for_a_while_is_asked_again(
    place: Workplace, refusal: Reply
) -> None:
    with server([refusal, refusal, *FINE]) as mock:
        place.configure(mock, wire_api="chat")
        findings = findings_of(place)
    assert findings["streaming"][0] is True


def test_an_answer_beyond_the_limit_is_cut_off_and_no_failure(place: Workplace) -> None:
    text: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": "one two "}}]}
    ] * 3
    end: dict[str, Any] = {
        "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]
    }
    body = (
        "".join(f"data: {json.dumps(each)}\n\n" for each in (*text, end))
        + "data: [DONE]\n\n"
    )
    long = Reply(body=body.encode(), headers={"content-type": "text/event-stream"})
    with server([long, long, *FINE[5:7], *FINE]) as mock:
        place.configure(mock, wire_api="chat")
        findings = findings_of(place)
    assert findings["streaming"] == (True, "cut off after 1500 tokens")
    assert findings["tools"] == (None, "the answer was longer than 1500 tokens")
