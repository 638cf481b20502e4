"""A response as a stream of Chat Completions.

Specification: https://platform.openai.com/docs/api-reference/chat-streaming. Reasoning comes in `reasoning_content`,
as that of DeepSeek and of vLLM does.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from codex_py.testing.events import Event, sse
from codex_py.testing.rendering import steps

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChatStream:
    """Renders the events of one response, in their order."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """`request`: the body that is answered."""
        self._model = request.get("model")
        options: Mapping[str, Any] = request.get("stream_options") or {}
        self._with_usage = bool(options.get("include_usage"))
        self._steps = steps.Steps()
        self._response_id = "resp_1"
        self._has_begun = False
        self._calls: dict[int, int] = {}
        """The place among the calls, by the index of the item."""

    def render(self, event: Event) -> bytes:
        """Raises a `ValueError` if Chat has nothing like it."""
        chunks: list[Event] = []
        if event["type"] == "response.created":
            self._response_id = event["response"]["id"]
            chunks += self._begin()
        for step in self._steps.of(event):
            chunks += self._chunks(step)
            if isinstance(step, steps.ResponseEnds):
                usage = event["response"].get("usage")
                if usage and self._with_usage:
                    chunks.append({**self._chunk(), "choices": [], "usage": _usage(usage)})
                return sse(chunks) + b"data: [DONE]\n\n"
        return sse(chunks)

    def _chunks(self, step: steps.Step) -> Iterator[Event]:
        if isinstance(step, steps.ResponseFails):
            # So do gateways, which end the stream without [DONE].
            error = {"message": step.message, "type": step.code, "code": step.code}
            yield {"error": error}
            return
        yield from self._begin()
        match step:
            case steps.Piece("text", _, text):
                yield self._chunk({"content": text})
            case steps.Piece("reasoning", _, text):
                yield self._chunk({"reasoning_content": text})
            case steps.Piece(_, index, text):
                yield self._call(index, {"function": {"arguments": text}})
            case steps.CallBegins(index, call_id, name):
                self._calls[index] = len(self._calls)
                function = {"name": name, "arguments": ""}
                yield self._call(index, {"id": call_id, "type": "function", "function": function})
            case steps.ResponseEnds(reason):
                default = "tool_calls" if self._calls else "stop"
                yield self._chunk({}, _FINISH.get(reason or "", default))
            case _:
                pass

    def _begin(self) -> Iterator[Event]:
        if not self._has_begun:
            self._has_begun = True
            yield self._chunk({"role": "assistant", "content": ""})

    def _call(self, index: int, fields: Mapping[str, Any]) -> Event:
        return self._chunk({"tool_calls": [{"index": self._calls[index], **fields}]})

    def _chunk(
        self, delta: Mapping[str, Any] | None = None, finish_reason: str | None = None
    ) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {
            "id": self._response_id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self._model,
            "choices": [choice],
            **({"usage": None} if self._with_usage else {}),
        }


def _usage(usage: Mapping[str, Any]) -> Event:
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }
