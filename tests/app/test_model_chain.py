"""What happens if a provider fails or refuses something in the middle of a turn, from outside.

Tests `app/features/recovery.py`.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from codex_py.app.user_programs import secret_names
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.errors import ConfigError
from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.events import ev_created
from tests.support.images import PNG
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer
from tests.support.text_calls import call_text, text_tag
from tests.support.wires import AnyWire

PLAIN = ("responses", "chat", "anthropic", "text")

DONE = [ev_created(), *ev_message("done"), ev_completed()]
UNKNOWN_MODEL = "house-model"


def call(command: str, call_id: str = "c1", *before: Any) -> list[Any]:
    number = 1 if before else 0
    return [
        ev_created(),
        *before,
        *ev_function_call(call_id, "exec_command", {"cmd": command}, index=number),
        ev_completed(),
    ]


def failure(
    status: int, message: str = "no", headers: Any = None, **error: Any
) -> Reply:
    body = json.dumps({"error": {"message": message, **error}}).encode()
    return Reply(status=status, body=body, headers=headers or {})


def known_warnings(wires: AnyWire) -> list[str]:
    return [text for text in wires.warnings if "Model metadata" not in text]


def to(*wires: str) -> dict[str, Any]:
    return {
        "model_fallbacks": [{"provider": wire, "model": f"{wire}-b"} for wire in wires]
    }


@pytest.mark.parametrize(
    ("first", "second"), [(a, b) for a in PLAIN for b in PLAIN if a != b], ids="-".join
)
def test_another_provider_goes_on_in_the_middle_of_a_turn(
    place: Workplace, first: str, second: str
) -> None:
    with AnyWire(place) as wires:
        wires.servers[second].add(call("echo two >> log", "c2"), DONE)
        thinks = ev_reasoning("I think") if first != "text" else []
        calls = call("echo one >> log", "c1", *thinks)
        wires.prompt(first, "go", calls, failure(503, "down"), flags=to(second))
    # The servers have refused what the services would refuse.
    assert (place.cwd / "log").read_text(encoding="utf-8") == "one\ntwo\n"
    (warning,) = known_warnings(wires)
    assert warning.startswith(f"provider {first} failed: ")
    assert warning.endswith(f"; going on with {second}/{second}-b")
    assert wires.last["type"] == "turn.completed"
    assert (wires.last["provider"], wires.last["model"]) == (second, f"{second}-b")
    assert {r.fields["model"] for r in wires.servers[second].requests} == {
        f"{second}-b"
    }


@pytest.mark.parametrize(
    "reply",
    [
        failure(503, "down"),
        failure(429, "slow down"),
        failure(429, "no money", code="insufficient_quota"),
        failure(402, "no money"),
        failure(401, "bad key"),
        failure(413, "too large"),
        failure(400, "maximum context length is 10 tokens"),
        Reply(events=[ev_created()]),
    ],
    ids=lambda reply: f"{reply.status}",
)
def test_every_failure_of_a_provider_asks_the_next_one(
    place: Workplace, reply: Reply
) -> None:
    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE)
        # The window of the second model is larger.
        flags = {"model_fallbacks": ["chat/gpt-4.1"]}
        wires.prompt("responses", "go", reply, flags=flags)
    assert (wires.last["type"], wires.last["provider"]) == ("turn.completed", "chat")


@pytest.mark.parametrize("reply", [failure(400, "bad"), failure(404, "no such model")])
def test_a_wrong_request_is_no_reason_to_ask_another(
    place: Workplace, reply: Reply
) -> None:
    with AnyWire(place) as wires:
        wires.prompt("responses", "go", reply, flags=to("chat"))
    assert wires.last["type"] == "turn.failed"
    assert wires.servers["chat"].requests == []


def test_nothing_is_asked_of_a_fallback_while_none_is_needed(place: Workplace) -> None:
    with AnyWire(place) as wires:
        wires.prompt("responses", "go", DONE, flags=to("chat"))
    assert wires.servers["chat"].requests == []
    assert (wires.last["provider"], wires.last["model"]) == ("responses", "gpt-5.5")


def test_without_fallbacks_the_model_is_not_named(place: Workplace) -> None:
    with AnyWire(place) as wires:
        wires.prompt("responses", "go", DONE)
    assert "provider" not in wires.last
    assert "model" not in wires.last


def test_a_call_of_a_broken_response_does_not_run_again(place: Workplace) -> None:
    broken = Reply(events=call("echo one >> log")[:-1])
    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE)
        wires.prompt("responses", "go", broken, flags=to("chat"))
    assert (place.cwd / "log").read_text(encoding="utf-8") == "one\n"
    roles = [
        message["role"]
        for message in wires.servers["chat"].requests[0].fields["messages"]
    ]
    assert roles[-2:] == ["assistant", "tool"]


def test_a_fallback_without_its_key_is_skipped_with_a_warning(place: Workplace) -> None:
    with AnyWire(place) as wires:
        wires.servers["anthropic"].add(DONE)
        providers = {"chat": {"env_key": "NO_SUCH_KEY"}}
        flags = {**to("chat", "anthropic"), "model_providers": providers}
        wires.prompt("responses", "go", failure(503, "down"), flags=flags)
    skipped, switched = known_warnings(wires)
    assert skipped == (
        "chat/chat-b cannot go on: Missing environment variable: `NO_SUCH_KEY`. It holds the key of the"
        " provider `chat` (command line); `codex-py doctor` checks the setup."
    )
    assert switched.endswith("going on with anthropic/anthropic-b")


def test_commands_do_not_see_the_key_of_a_fallback(place: Workplace) -> None:
    flags = {"model_fallbacks": ["deepseek/deepseek-chat"]}
    config = load_config(
        cwd=place.cwd, environment=environment(place.home), flags=flags
    )
    assert "DEEPSEEK_API_KEY" in secret_names(config)


def test_a_first_provider_without_a_key_has_a_fallback_too(place: Workplace) -> None:
    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE)
        providers = {"responses": {"env_key": "NO_SUCH_KEY"}}
        wires.prompt(
            "responses", "go", flags={**to("chat"), "model_providers": providers}
        )
    assert wires.last["provider"] == "chat"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("nosuch/m", "model_fallbacks: Model provider `nosuch` not found"),
        ("chat", "model_fallbacks: 'chat' names no provider or no model"),
        ({"provider": "chat"}, 'names no provider or no model; write "provider/model"'),
    ],
)
def test_a_wrong_fallback_stops_the_start(
    place: Workplace, entry: Any, message: str
) -> None:
    with (
        AnyWire(place) as wires,
        pytest.raises(ConfigError, match="model_fallbacks") as caught,
    ):
        wires.prompt("responses", "go", flags={"model_fallbacks": [entry]})
    assert message in str(caught.value)


def test_the_default_model_may_have_a_fallback_that_does_not_serve_it(
    place: Workplace,
) -> None:
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    with (
        ScriptedServer([failure(401, "bad key")]) as first,
        ScriptedServer([DONE]) as second,
    ):
        (place.home / "config.toml").write_text(
            f'model_fallbacks = ["anthropic/claude-sonnet-4-5"]\n'
            f'openai_base_url = "{first.base_url}"\n'
            f'[model_providers.anthropic]\nbase_url = "{second.base_url}"\n',
            encoding="utf-8",
        )
        outcome = place.rerun("go", env=keys)
    assert outcome.messages == ["done"]
    assert second.requests[0].body["model"] == "claude-sonnet-4-5"


def test_if_every_provider_fails_the_last_failure_ends_the_turn(
    place: Workplace,
) -> None:
    with AnyWire(place) as wires:
        wires.servers["chat"].add(failure(401, "bad key"))
        wires.prompt("responses", "go", failure(503, "down"), flags=to("chat"))
    assert wires.last["type"] == "turn.failed"
    assert wires.last["error"]["http_status"] == 401


def test_the_first_provider_is_tried_again_when_it_said(place: Workplace) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("one")
        await session.run_turn("two")

    away = failure(503, "down", {"retry-after-ms": "1"})
    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE)
        wires.session("responses", work, away, DONE, flags=to("chat"))
    ends = [event for event in wires.events if event["type"] == "turn.completed"]
    assert [end["provider"] for end in ends] == ["chat", "responses"]
    assert wires.warnings[-1] == "trying responses/gpt-5.5 again"


def test_after_a_failed_trial_the_first_provider_is_left_alone(
    place: Workplace,
) -> None:
    async def work(session: Session) -> None:
        for prompt in ("one", "two", "three"):
            await session.run_turn(prompt)

    away = failure(503, "down", {"retry-after-ms": "1"})
    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE, DONE, DONE)
        wires.session("responses", work, away, away, flags=to("chat"))
    assert len(wires.servers["responses"].requests) == 2
    assert wires.last["provider"] == "chat"


def test_a_model_that_the_user_chooses_is_tried_at_once(place: Workplace) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("one")
        session.change(replace(session.settings.choices, model="gpt-5.4"))
        await session.run_turn("two")

    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE)
        wires.session("responses", work, failure(503, "down"), DONE, flags=to("chat"))
    assert (wires.last["provider"], wires.last["model"]) == ("responses", "gpt-5.4")


def test_a_trial_of_the_first_provider_spends_no_retries(place: Workplace) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("one")
        await session.run_turn("two")

    with AnyWire(place) as wires:
        flags = {
            **to("chat"),
            "model_providers": {"responses": {"stream_max_retries": 1}},
        }
        wires.servers["chat"].add(DONE, DONE)
        away = failure(503, "down", {"retry-after-ms": "1"})
        wires.session("responses", work, away, away, away, flags=flags)
    assert len(wires.servers["responses"].requests) == 3
    assert wires.last["provider"] == "chat"


def test_the_next_one_must_take_the_images_of_the_history(place: Workplace) -> None:
    image = place.cwd / "dot.png"
    image.write_bytes(PNG)
    with AnyWire(place) as wires:
        wires.servers["anthropic"].add(DONE)
        providers = {"chat": {"profile": {"text_content_only": True}}}
        flags = {**to("chat", "anthropic"), "model_providers": providers}
        wires.session(
            "responses",
            lambda session: session.run_turn("look", images=[image]),
            failure(503, "down"),
            flags=flags,
        )
    assert known_warnings(wires)[0] == "chat/chat-b cannot go on: it takes no images"
    assert wires.last["provider"] == "anthropic"


def test_the_next_one_must_have_room_for_the_conversation(place: Workplace) -> None:
    catalogue = place.home / "models.json"
    models = [{"slug": "chat-b", "context_window": 1000}, {"slug": "anthropic-b"}]
    catalogue.write_text(json.dumps({"models": models}), encoding="utf-8")
    with AnyWire(place) as wires:
        wires.servers["anthropic"].add(DONE)
        flags = {**to("chat", "anthropic"), "model_catalog_json": str(catalogue)}
        wires.prompt("responses", "go " * 3000, failure(503, "down"), flags=flags)
    assert "its context window takes 950 tokens" in known_warnings(wires)[0]
    assert wires.last["provider"] == "anthropic"


def test_a_fallback_whose_window_nobody_knows_is_asked_if_the_words_say_what_fits_into_the_first(
    place: Workplace,
) -> None:
    too_long = failure(400, "This model's maximum context length is 32768 tokens.")
    long = {"cmd": "seq 1 20000", "max_output_tokens": 9000}
    calls = [
        ev_created(),
        *ev_function_call("c1", "exec_command", long),
        ev_completed(),
    ]
    summary = [ev_created(), *ev_message("the summary"), ev_completed()]
    with AnyWire(place, check_prefix=False) as wires:
        wires.servers["anthropic"].add(summary, DONE)
        flags = {"model": UNKNOWN_MODEL, **to("anthropic")}
        wires.prompt("chat", "go", calls, *[too_long] * 8, flags=flags)
    assert wires.last["type"] == "turn.completed"
    assert wires.last["provider"] == "anthropic"
    assert len(wires.servers["chat"].requests) <= 8


def test_a_smaller_fallback_compacts_before_it_is_asked_too_much(
    place: Workplace,
) -> None:
    catalogue = place.home / "models.json"
    models = [{"slug": "chat-b", "context_window": 20_000}]
    catalogue.write_text(json.dumps({"models": models}), encoding="utf-8")
    long = [ev_created(), *ev_message("words " * 14_000), ev_completed()]

    async def work(session: Session) -> None:
        await session.run_turn("one")
        await session.run_turn("two")

    with AnyWire(place, check_prefix=False) as wires:
        summary = [ev_created(), *ev_message("the summary"), ev_completed()]
        wires.servers["chat"].add(long, summary, DONE)
        flags = {**to("chat"), "model_catalog_json": str(catalogue)}
        wires.session("responses", work, failure(503, "down"), flags=flags)
    assert wires.last["type"] == "turn.completed"
    assert "the summary" in str(wires.servers["chat"].requests[-1].fields["messages"])


def test_a_compaction_goes_on_with_another_provider(place: Workplace) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("one")
        (await session.compact()).raise_for_error()

    with AnyWire(place) as wires:
        wires.servers["chat"].add(
            [ev_created(), *ev_message("the summary"), ev_completed()]
        )
        wires.session("responses", work, DONE, failure(503, "down"), flags=to("chat"))
    assert wires.last["provider"] == "chat"


def test_tools_that_were_offered_stay_offered_in_the_form_of_the_next_model(
    place: Workplace,
) -> None:
    with AnyWire(place) as wires:
        wires.servers["chat"].add(DONE)
        flags = {
            "model_fallbacks": ["chat/gpt-5.1"],
            "tools": {"update_plan": {"enabled": False}},
        }
        wires.prompt("responses", "go", failure(503), flags=flags)
    tools = [
        tool["function"]["name"]
        for tool in wires.servers["chat"].requests[0].fields["tools"]
    ]
    assert "shell" in tools
    assert {"exec_command", "update_plan"}.isdisjoint(tools)


@pytest.mark.parametrize("wire", ["responses", "chat", "anthropic"])
def test_a_server_that_refuses_tools_gets_calls_as_text(
    place: Workplace, wire: str
) -> None:
    message = "this model does not support tools"
    with AnyWire(place, check_prefix=False) as wires:

        def written(request: RecordedRequest) -> list[Any]:
            text = call_text(
                "exec_command", '{"cmd": "echo one >> log"}', text_tag(request)
            )
            return [ev_created(), *ev_message(text), ev_completed()]

        flags = {"model": UNKNOWN_MODEL}
        wires.prompt(wire, "go", failure(400, message), written, DONE, flags=flags)
    assert wires.last["type"] == "turn.completed"
    assert (place.cwd / "log").read_text(encoding="utf-8") == "one\n"
    assert [bool(r.fields.get("tools")) for r in wires.requests] == [True, False, False]
    (warning,) = known_warnings(wires)
    assert warning.startswith(
        f"provider {wire} refuses tools: calls are written as text"
    )


def test_a_known_model_of_the_responses_api_does_not_write_its_calls(
    place: Workplace,
) -> None:
    with AnyWire(place) as wires:
        wires.prompt("responses", "go", failure(400, "tools are not supported"))
    assert wires.last["type"] == "turn.failed"
    assert len(wires.requests) == 1


@pytest.mark.parametrize(
    ("wire", "status", "message", "field"),
    [
        ("responses", 400, "Unsupported parameter: 'reasoning.effort'", "reasoning"),
        ("responses", 400, "Unknown parameter: 'include'.", "include"),
        (
            "responses",
            400,
            "'text.verbosity' is not supported with this model.",
            "text",
        ),
        (
            "responses",
            400,
            "prompt_cache_key: Extra inputs are not permitted",
            "prompt_cache_key",
        ),
        (
            "chat",
            422,
            '[{"type":"extra_forbidden","loc":["body","stream_options"]}]',
            "stream_options",
        ),
        (
            "responses",
            400,
            "Unrecognized request argument supplied: parallel_tool_calls",
            "parallel_tool_calls",
        ),
        ("anthropic", 400, "tool_choice: unexpected property", "tool_choice"),
    ],
)
def test_a_field_that_a_server_refuses_is_left_out_from_then_on(
    place: Workplace, wire: str, status: int, message: str, field: str
) -> None:
    with AnyWire(place) as wires:
        wires.prompt(wire, "go", failure(status, message), call("true"), DONE)
    assert wires.last["type"] == "turn.completed"
    assert [field in request.fields for request in wires.requests] == [
        True,
        False,
        False,
    ]
    (warning,) = known_warnings(wires)
    assert f"provider {wire} refuses `" in warning
    assert "which is left out from now on" in warning


def test_a_field_that_is_refused_twice_fails_the_turn(place: Workplace) -> None:
    refusal = failure(400, "Unsupported parameter: 'reasoning.effort'")
    with AnyWire(place) as wires:
        wires.prompt("responses", "go", refusal, refusal)
    assert wires.last["type"] == "turn.failed"
    assert len(wires.requests) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        failure(400, "cannot be decrypted", code="invalid_encrypted_content"),
        failure(400, "Encrypted content could not be verified."),
    ],
    ids=["code", "words"],
)
def test_reasoning_that_a_server_cannot_decrypt_is_left_out(
    place: Workplace, refusal: Reply
) -> None:
    thinks = call("true", "c1", *ev_reasoning("I think"))
    again = call("true", "c2", *ev_reasoning("I think again", encrypted="new"))
    with AnyWire(place, check_prefix=False) as wires:
        wires.prompt("responses", "go", thinks, refusal, again, DONE)
    last = wires.requests[-1].input
    assert [
        item.get("encrypted_content") for item in last if item["type"] == "reasoning"
    ] == ["new"]
    ids = {
        item["call_id"]: item.get("id")
        for item in last
        if item["type"] == "function_call"
    }
    assert ids == {"c1": None, "c2": "fc_c2"}
    assert wires.last["type"] == "turn.completed"


def test_text_tools_of_a_fallback_explain_format_mistakes(place: Workplace) -> None:
    wrong = [ev_created(), *ev_message("<tool>\nls\n</tool>"), ev_completed()]
    with AnyWire(place) as wires:
        wires.servers["text"].add(wrong, wrong, wrong)
        wires.prompt("responses", "go", failure(503, "down"), flags=to("text"))
    assert wires.last["type"] == "turn.failed"
    assert wires.last["error"]["code"] == "tool_format"
    assert len(wires.servers["text"].requests) == 3
