"""Failures that a server reports with status 200, in place of an answer, over every wire."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from codex_py.errors import ExitCode, ModelError, StreamError
from codex_py.model.auth import ProviderKey
from codex_py.model.client import HttpModelClient
from codex_py.model.providers import Provider
from codex_py.protocol.stream import Completed, ResponseEvent
from tests.model.transcripts import WIRES, make_wire, prompt

SSE = "text/event-stream"
JSON = "application/json"


def answer(wire: str, body: bytes | str, content_type: str) -> list[ResponseEvent]:
    """The events that come of one answer with status 200."""

    def serve(_: httpx.Request) -> httpx.Response:
        headers = {"content-type": content_type}
        content = body if isinstance(body, bytes) else body.encode()
        return httpx.Response(200, headers=headers, content=content)

    async def main() -> list[ResponseEvent]:
        client = HttpModelClient(
            provider=Provider(
                id="p", name="P", base_url="http://gateway/v1", wire_api=wire
            ),
            wire=make_wire(wire),
            http=httpx.AsyncClient(transport=httpx.MockTransport(serve)),
            key=ProviderKey("sk-secret-of-the-user", "environment variable K"),
            headers={},
        )
        try:
            async with client.stream(prompt("reported")) as events:
                return [event async for event in events]
        finally:
            await client.aclose()

    return asyncio.run(main())


def failure(wire: str, body: bytes | str, content_type: str = SSE) -> ModelError:
    with pytest.raises(ModelError) as caught:
        answer(wire, body, content_type)
    assert caught.value.retryable == isinstance(caught.value, StreamError)
    return caught.value


def reported(wire: str, report: Any, content_type: str) -> ModelError:
    text = json.dumps(report)
    return failure(
        wire, text if content_type == JSON else f"data: {text}\n\n", content_type
    )


RATE_LIMITS: list[Any] = [
    {"error": {"message": "slow down, say we", "code": 429}},
    {"error": {"message": "slow down, say we", "type": "rate_limit_error"}},
    {"message": "slow down, say we", "code": 429},
    {"message": "slow down, say we", "code": "429"},
    {"detail": "Rate limit exceeded: 5 per 1 minute"},
    {"detail": {"message": "Too many requests", "status": 429}},
    {"type": "rate_limit_error", "message": "slow down, say we"},
    {"object": "error", "message": "slow down, say we", "code": 429},
    {"object": "error", "type": "RateLimitError", "message": "Too many requests"},
    {"msg": "Too many requests"},
    {"errors": [{"message": "Too many requests"}]},
    {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}},
    [{"error": {"message": "slow down, say we", "code": 429}}],
]
TOO_LONG: list[Any] = [
    {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}},
    {"error": "prompt is too long: 9 tokens > 8 maximum"},
    {"detail": "This model's maximum context length is 8 tokens."},
    {"message": "This model's maximum context length is 8 tokens.", "code": 400},
    {"message": "Input is too long for requested model."},
    {"code": "context_length_exceeded", "message": "no room"},
    {"object": "error", "message": "maximum context length is 8 tokens", "code": 400},
]
REFUSED_KEYS: list[Any] = [
    {"error": {"message": "who are you?", "code": 401}},
    {"error": {"message": "who are you?", "type": "authentication_error"}},
    {"message": "who are you?", "code": 401},
    {"message": "who are you?", "status": 403},
    {"message": "who are you?", "status_code": 401},
    {"message": "who are you?", "statusCode": 401},
    {"detail": "Not authenticated"},
    {"detail": "Unauthorized"},
    {"message": "Invalid API key"},
    {"type": "authentication_error", "message": "who are you?"},
    {"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]},
    {"base_resp": {"status_code": 1004, "status_msg": "login fail: no API secret key"}},
]
UNCLEAR: list[Any] = [
    {"detail": "the pump is broken"},
    {"detail": [{"loc": ["body"], "msg": "the pump is broken"}]},
    {"message": "the pump is broken"},
    {"error_message": "the pump is broken", "request": 7},
    {"error": {"message": "the pump is broken"}},
    {"error": "the pump is broken"},
    {"type": "error", "message": "the pump is broken"},
    {"status": "error", "message": "the pump is broken", "code": 500},
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("content_type", [SSE, JSON])
@pytest.mark.parametrize("report", RATE_LIMITS)
def test_a_reported_rate_limit_is_waited_for(
    wire: str, content_type: str, report: Any
) -> None:
    error = reported(wire, report, content_type)
    assert error.retryable
    assert error.exit_code is ExitCode.TEMPORARY


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("content_type", [SSE, JSON])
@pytest.mark.parametrize("report", TOO_LONG)
def test_a_reported_lack_of_room_leads_to_a_compaction(
    wire: str, content_type: str, report: Any
) -> None:
    error = reported(wire, report, content_type)
    assert error.is_too_long
    assert not error.retryable


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("content_type", [SSE, JSON])
@pytest.mark.parametrize("report", REFUSED_KEYS)
def test_a_reported_refusal_of_the_key_is_final(
    wire: str, content_type: str, report: Any
) -> None:
    error = reported(wire, report, content_type)
    assert not error.retryable
    assert error.exit_code is ExitCode.AUTHENTICATION


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("content_type", [SSE, JSON])
@pytest.mark.parametrize("report", UNCLEAR)
def test_another_reported_failure_is_told_in_the_words_of_the_server(
    wire: str, content_type: str, report: Any
) -> None:
    error = reported(wire, report, content_type)
    assert "the pump is broken" in str(error)
    assert error.retryable
    assert error.exit_code is ExitCode.UNAVAILABLE


@pytest.mark.parametrize("wire", WIRES)
def test_a_delay_in_a_reported_failure_is_kept(wire: str) -> None:
    headers = {"Retry-After": "7"}
    report = {"message": "Too many requests", "code": 429, "headers": headers}
    error = reported(wire, report, SSE)
    assert isinstance(error, StreamError)
    assert error.retry_after_s == 7


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("body", "content_type", "what"),
    [
        ('{"id": "x", "object": "list"}', JSON, '{"id": "x", "object": "list"}'),
        ('{"status": "ok"}', JSON, '{"status": "ok"}'),
        ('{"model": "m", "done": false}\n{"done": true}', JSON, '"done": false'),
        ('{"text": "Too many requests"}', JSON, "Too many requests"),
        ("[1, 2]", JSON, "[1, 2]"),
        ("<html><title>Welcome</title></html>", "text/html", "Welcome"),
        ("<!doctype html><title>Welcome</title>", SSE, "Welcome"),
        ("\n <html><p>Hello</p></html>", "text/plain", "a web page"),
    ],
)
def test_a_body_that_is_no_answer_is_final_and_shown(
    wire: str, body: str, content_type: str, what: str
) -> None:
    error = failure(wire, body, content_type)
    assert (error.code, error.retryable) == ("not_a_stream", False)
    assert what in str(error)
    assert "look at `base_url` and `wire_api`" in str(error)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("upstream connect error or disconnect", "text/plain"),
        ("upstream connect error or disconnect", SSE),
        ("data: upstream connect error or disconnect\n\n", SSE),
        ('"upstream connect error or disconnect"', JSON),
        ('data: {"x": "upstream connect error or disconnect"}\n\n', SSE),
    ],
)
def test_words_in_place_of_an_answer_are_shown_and_asked_for_again(
    wire: str, body: str, content_type: str
) -> None:
    error = failure(wire, body, content_type)
    assert "upstream connect error" in str(error)
    assert error.retryable


@pytest.mark.parametrize(
    ("wire", "body", "content_type"),
    [
        ("chat", '{"choices": []}', JSON),
        ("chat", '{"id": "x", "object": "chat.completion", "choices": []}', JSON),
        ("chat", '{"id": "x", "object": "chat.completion", "choices": null}', JSON),
        ("chat", '{"object": "chat.completion", "choices": [{}]}', JSON),
        ("chat", 'data: {"choices": []}\n\ndata: [DONE]\n\n', SSE),
    ],
)
def test_an_answer_without_choices_says_so_and_is_asked_for_again(
    wire: str, body: str, content_type: str
) -> None:
    error = failure(wire, body, content_type)
    assert "without a choice" in str(error)
    assert error.retryable


@pytest.mark.parametrize("wire", WIRES)
def test_the_shown_part_of_a_body_is_bounded_and_has_no_key(wire: str) -> None:
    body = json.dumps({"key": "sk-secret-of-the-user", "x": "y\x1b[2J" * 100_000})
    error = failure(wire, body, JSON)
    assert len(str(error)) < 1_000
    assert "sk-secret" not in str(error)
    assert str(error).isprintable()


PROGRESS: list[Any] = [
    {},
    {"type": "ping"},
    {"type": "keepalive", "message": "still here"},
    {"type": "queue.position", "detail": "third", "code": 3},
    {"error": None},
    {"message": "warming up"},
    {"status": "processing"},
    ["x"],
]
ANSWERS: dict[str, list[Any]] = {
    "responses": [
        {"type": "response.completed", "response": {"id": "r", "output": []}}
    ],
    "chat": [
        {"choices": [{"delta": {"content": "hi"}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("progress", PROGRESS)
def test_events_of_progress_are_no_failures(wire: str, progress: Any) -> None:
    events = [progress, *ANSWERS[wire]]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    assert isinstance(answer(wire, body, SSE)[-1], Completed)
