"""Renders a response as a stream of Anthropic's Messages API, and errors in its format.

Specification: https://docs.anthropic.com/en/docs/build-with-claude/streaming.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from codex_py.protocol.json_fields import as_object, json_or
from codex_py.testing.events import Event
from codex_py.testing.rendering.base import PieceKind, Rendering

_STOP = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
"""The stop reasons of incomplete responses."""
_BLOCKS: Mapping[str, Event] = {
    "text": {"type": "text", "text": ""},
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
}
"""The blocks of kinds of pieces, as they begin."""
_DELTAS = {
    "text": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "arguments": ("input_json_delta", "partial_json"),
}
"""The deltas of kinds of pieces: the type, and the field with the text."""
_ERROR_TYPES = {
    "rate_limit_exceeded": "rate_limit_error",
    "insufficient_quota": "billing_error",
    "invalid_api_key": "authentication_error",
    "context_length_exceeded": "invalid_request_error",
    "invalid_prompt": "invalid_request_error",
    "server_is_overloaded": "overloaded_error",
    "slow_down": "overloaded_error",
}
"""The types of errors, by the codes of the Responses API."""
_STATUS_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The types of errors, by the HTTP status."""


class AnthropicStream(Rendering):
    """Renders a message of Anthropic's API."""

    def __init__(
        self,
        request: Mapping[str, Any],
        events: Iterable[Event],
        *,
        secret: str,
    ) -> None:
        """
        Args:
            request: the body of the request.
            events: the response, whose usage is part of the first event.
            secret: a text that makes signatures differ from those of other servers.
        """
        super().__init__()
        self._model = request.get("model")
        self._secret = secret
        self._usage = _usage(_first_usage(events))
        self._blocks = 0
        """The number of blocks that have ended."""
        self._open: int | None = None
        """The index of the item whose block is open."""
        self._thinking = ""
        """The text of the block of reasoning that is open."""

    def _beginning(self, response_id: str) -> Iterator[Event]:
        # The real service has counted at most one token of the answer by now.
        output_tokens = min(1, self._usage["output_tokens"])
        message: Event = {
            "id": response_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**self._usage, "output_tokens": output_tokens},
        }
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}

    def _piece(
        self,
        kind: PieceKind,
        index: int,
        text: str,
    ) -> Iterator[Event]:
        if kind != "arguments":
            yield from self._start(index, _BLOCKS[kind])
        delta, field = _DELTAS[kind]
        yield self._delta(index, {"type": delta, field: text})
        if kind == "reasoning":
            self._thinking += text

    def _call(
        self,
        index: int,
        call_id: str,
        name: str,
    ) -> Iterator[Event]:
        block: Event = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        yield from self._start(index, block)

    def _item_end(self, index: int, item: Mapping[str, Any]) -> Iterator[Event]:
        if item["type"] == "reasoning":
            # Models that do not show their reasoning send only the signature.
            yield from self._start(index, _BLOCKS["reasoning"])
            encrypted = item.get("encrypted_content")
            source = f"{self._secret}\0{encrypted}\0{self._thinking}"
            digest = hashlib.sha256(source.encode()).hexdigest()
            signature = {"type": "signature_delta", "signature": f"sig_{digest[:24]}"}
            yield self._delta(index, signature)
            self._thinking = ""
        if self._open == index:
            yield {"type": "content_block_stop", "index": self._blocks}
            self._open = None
            self._blocks += 1

    def _end(
        self,
        reason: str | None,
        usage: Mapping[str, Any] | None,  # noqa: ARG002 - told before
    ) -> Iterator[Event]:
        default = "tool_use" if self._calls else "end_turn"
        stop_reason = _STOP.get(reason or "", default)
        stop = {"stop_reason": stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": self._usage}
        yield {"type": "message_stop"}

    def _failure(self, code: str, message: str) -> Event:
        if code == "context_length_exceeded":
            message = f"prompt is too long: {message}"
        kind = _ERROR_TYPES.get(code, "api_error")
        return _error(kind, message)

    def _start(self, index: int, block: Event) -> Iterator[Event]:
        """Begin a block, unless one is open."""
        if self._open is None:
            self._open = index
            yield {
                "type": "content_block_start",
                "index": self._blocks,
                "content_block": block,
            }

    def _delta(self, index: int, delta: Event) -> Event:
        if self._open != index:
            raise ValueError("the blocks of a message come one after the other")
        return {"type": "content_block_delta", "index": self._blocks, "delta": delta}


def _error(kind: str, message: str) -> Event:
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_body(status: int, message: str) -> bytes:
    """The body of an HTTP error."""
    default = "api_error" if status >= 500 else "invalid_request_error"
    kind = _STATUS_TYPES.get(status, default)
    error = _error(kind, message)
    return json.dumps(error).encode()


def translated_error(status: int, body: bytes) -> bytes:
    """Convert a body with an error in OpenAI's format to Anthropic's. Any other body is returned
    unchanged."""
    fields = as_object(json_or(body, None))
    is_anthropics = fields.get("type") == "error"
    if is_anthropics or not isinstance(fields.get("error"), dict):
        return body
    error = as_object(fields["error"])
    return error_body(status, str(error.get("message")))


def _first_usage(events: Iterable[Event]) -> Mapping[str, Any] | None:
    for event in events:
        usage = event.get("response", {}).get("usage")
        if usage:
            return usage
    return None


def _usage(usage: Mapping[str, Any] | None) -> Event:
    """The tokens in Anthropic's count, whose `input_tokens` exclude cached tokens."""
    usage = usage or {"input_tokens": 0, "output_tokens": 0}
    details: Mapping[str, int] = usage.get("input_tokens_details") or {}
    cached = details.get("cached_tokens", 0)
    return {
        "input_tokens": usage["input_tokens"] - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage["output_tokens"],
    }
