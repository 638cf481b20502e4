"""Renders a response as a stream of Chat Completions.

Specification: https://platform.openai.com/docs/api-reference/chat-streaming. Reasoning is in
`reasoning_content`, as with DeepSeek and vLLM.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from codex_py.testing.events import Event
from codex_py.testing.rendering.base import PieceKind, Rendering

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
_ENDS = {"response.completed", "response.incomplete"}


class ChatStream(Rendering):
    """Renders a response of Chat Completions."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """`request`: the body of the request."""
        super().__init__()
        self._model = request.get("model")
        options: Mapping[str, Any] = request.get("stream_options") or {}
        # A whole answer always has its usage.
        is_streamed = bool(request.get("stream"))
        self._with_usage = bool(options.get("include_usage")) or not is_streamed
        self._response_id = ""

    def render(self, event: Event) -> bytes:
        chunks = super().render(event)
        if event["type"] in _ENDS:
            chunks += b"data: [DONE]\n\n"
        return chunks

    def _beginning(self, response_id: str) -> Iterator[Event]:
        self._response_id = response_id
        yield self._chunk({"role": "assistant", "content": ""})

    def _piece(
        self,
        kind: PieceKind,
        index: int,
        text: str,
    ) -> Iterator[Event]:
        match kind:
            case "text":
                yield self._chunk({"content": text})
            case "reasoning":
                yield self._chunk({"reasoning_content": text})
            case "arguments":
                yield self._call_chunk(index, {"function": {"arguments": text}})

    def _call(
        self,
        index: int,
        call_id: str,
        name: str,
    ) -> Iterator[Event]:
        function = {"name": name, "arguments": ""}
        yield self._call_chunk(
            index, {"id": call_id, "type": "function", "function": function}
        )

    def _end(
        self, reason: str | None, usage: Mapping[str, Any] | None
    ) -> Iterator[Event]:
        default = "tool_calls" if self._calls else "stop"
        yield self._chunk({}, _FINISH.get(reason or "", default))
        if usage and self._with_usage:
            yield {**self._chunk({}), "choices": [], "usage": _usage(usage)}

    def _failure(self, code: str, message: str) -> Event:
        # Gateways send such an error, and end the stream without [DONE].
        return {"error": {"message": message, "type": code, "code": code}}

    def _call_chunk(self, index: int, fields: Mapping[str, Any]) -> Event:
        position = list(self._calls).index(index)
        call = {"index": position, **fields}
        return self._chunk({"tool_calls": [call]})

    def _chunk(
        self, delta: Mapping[str, Any], finish_reason: str | None = None
    ) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        chunk: Event = {
            "id": self._response_id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self._model,
            "choices": [choice],
        }
        if self._with_usage:
            chunk["usage"] = None
        return chunk


def _usage(usage: Mapping[str, Any]) -> Event:
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }
