"""Splits the events of the Responses API into parts that every API has: pieces of text, reasoning
and calls."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from codex_py.testing.events import Event, sse

PieceKind: TypeAlias = Literal["text", "reasoning", "arguments"]

_PIECES: Mapping[str, PieceKind] = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
}
_KINDS: Mapping[str, PieceKind] = {
    "message": "text",
    "reasoning": "reasoning",
    "function_call": "arguments",
    "custom_tool_call": "arguments",
    "local_shell_call": "arguments",
}


class Rendering(ABC):
    """Renders the events of one response, in their order. Subclasses write the events of their API.

    An item without deltas becomes one piece when it is done.
    """

    def __init__(self) -> None:
        self._has_begun = False
        self._calls: dict[int, str] = {}
        """The types of the calls that have begun, by the index of their items."""
        self._said: set[int] = set()
        """The indices of items that have had a piece."""

    def render(self, event: Event) -> bytes:
        """Render one event. Raises a `ValueError` if the API has no such event."""
        return sse(self._events(event))

    @abstractmethod
    def _beginning(self, response_id: str) -> Iterator[Event]:
        """Begin the response."""

    @abstractmethod
    def _piece(
        self,
        kind: PieceKind,
        index: int,
        text: str,
    ) -> Iterator[Event]:
        """Write a piece of an item. `arguments` belong to the latest call with this index."""

    @abstractmethod
    def _call(
        self,
        index: int,
        call_id: str,
        name: str,
    ) -> Iterator[Event]:
        """Begin a call. `name` is flat: the namespace of an MCP tool is part of it."""

    def _item_end(self, index: int, item: Mapping[str, Any]) -> Iterable[Event]:  # noqa: ARG002
        """End an item of any type. Most APIs have no event for it."""
        return ()

    @abstractmethod
    def _end(
        self, reason: str | None, usage: Mapping[str, Any] | None
    ) -> Iterator[Event]:
        """End the response. `reason`: `max_output_tokens` or `content_filter` if it is
        incomplete."""

    @abstractmethod
    def _failure(self, code: str, message: str) -> Event:
        """The error that ends the response."""

    def _events(self, event: Event) -> Iterator[Event]:
        kind: str = event["type"]
        index: int = event.get("output_index", 0)
        if kind == "response.created":
            yield from self._begin(event["response"]["id"])
        elif kind in _PIECES:
            yield from self._say(_PIECES[kind], index, event["delta"])
        elif kind == "response.output_item.added":
            yield from self._begin_call(index, event["item"])
        elif kind == "response.output_item.done":
            yield from self._finish(index, event["item"])
        elif kind in {"response.completed", "response.incomplete"}:
            response: Event = event["response"]
            yield from self._begin()
            details: Event = response.get("incomplete_details") or {}
            yield from self._end(details.get("reason"), response.get("usage"))
        elif kind in {"response.failed", "error"}:
            # An event `error` may have the fields of the error itself.
            failed = event.get("response", event)
            error = failed.get("error") or event
            code = str(error.get("code"))
            message = str(error.get("message"))
            yield self._failure(code, message)

    def _begin(self, response_id: str = "resp_1") -> Iterator[Event]:
        if not self._has_begun:
            self._has_begun = True
            yield from self._beginning(response_id)

    def _begin_call(self, index: int, item: Mapping[str, Any]) -> Iterator[Event]:
        if _KINDS.get(item["type"]) != "arguments" or "call_id" not in item:
            return
        self._calls[index] = item["type"]
        yield from self._begin()
        yield from self._call(index, item["call_id"], called_name(item))
        if item["type"] == "custom_tool_call":
            yield from self._piece("arguments", index, '{"input": "')

    def _say(
        self,
        kind: PieceKind,
        index: int,
        text: str,
    ) -> Iterator[Event]:
        if kind == "arguments" and index not in self._calls:
            # The tool of these arguments is not known yet.
            return
        self._said.add(index)
        yield from self._begin()
        if kind == "arguments" and self._calls[index] == "custom_tool_call":
            text = json.dumps(text)[1:-1]
        yield from self._piece(kind, index, text)

    def _finish(self, index: int, item: Mapping[str, Any]) -> Iterator[Event]:
        kind = _KINDS.get(item["type"])
        if kind is None:
            raise ValueError(f"only the Responses API has an item {item['type']!r}")
        if index not in self._calls:
            yield from self._begin_call(index, item)
        if index not in self._said:
            text = content(item)
            if text:
                yield from self._say(kind, index, text)
        yield from self._begin()
        if item["type"] == "custom_tool_call":
            yield from self._piece("arguments", index, '"}')
        yield from self._item_end(index, item)


def called_name(item: Mapping[str, Any]) -> str:
    """The flat name of a call's tool."""
    if item["type"] == "local_shell_call":
        return "shell"
    namespace = item.get("namespace")
    if namespace:
        return f"{namespace.rstrip('_')}__{item['name']}"
    return item["name"]


def content(item: Mapping[str, Any]) -> str:
    """The text of an item; for a call, its arguments or its raw input."""
    match item["type"]:
        case "function_call":
            return item["arguments"]
        case "custom_tool_call":
            return item["input"]
        case "local_shell_call":
            return json.dumps({"command": item["action"]["command"]})
        case "reasoning":
            return "\n\n".join(part["text"] for part in item["summary"])
        case _:
            return "".join(part.get("text", "") for part in item["content"])
