"""The events of the Responses API as steps that every API can say: pieces of text, reasoning and calls."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from codex_py.testing.events import Event


@dataclass(frozen=True, slots=True)
class Piece:
    """More of an item. `arguments` are those of the call that began last under this index."""

    kind: Literal["text", "reasoning", "arguments"]
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallBegins:
    index: int
    call_id: str
    name: str
    """Flat: the namespace of an MCP tool is part of it."""


@dataclass(frozen=True, slots=True)
class ItemEnds:
    index: int
    item: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResponseEnds:
    reason: str | None
    """None: the response is complete; else why it is not, `max_output_tokens` or `content_filter`."""


@dataclass(frozen=True, slots=True)
class ResponseFails:
    code: str
    message: str


Step: TypeAlias = Piece | CallBegins | ItemEnds | ResponseEnds | ResponseFails

_PIECES: Mapping[str, Literal["text", "reasoning", "arguments"]] = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
}
_KINDS: Mapping[str, Literal["text", "reasoning", "arguments"]] = {
    "message": "text",
    "reasoning": "reasoning",
    "function_call": "arguments",
    "custom_tool_call": "arguments",
    "local_shell_call": "arguments",
}


@dataclass(slots=True)
class Steps:
    """Reads the events of one response. What came in no delta is one piece when its item is done."""

    _begun: dict[int, str] = field(default_factory=dict[int, str])
    """The kinds of the calls that have begun."""
    _said: set[int] = field(default_factory=set[int])
    """Items of which there was a piece."""

    def of(self, event: Event) -> Iterator[Step]:
        """Raises a `ValueError` if the item exists in the Responses API alone."""
        kind: str = event["type"]
        index: int = event.get("output_index", 0)
        if kind in _PIECES:
            yield from self._piece(_PIECES[kind], index, event["delta"])
        elif kind == "response.output_item.added":
            yield from self._begin(index, event["item"])
        elif kind == "response.output_item.done":
            yield from self._finish(index, event["item"])
        elif kind in {"response.completed", "response.incomplete"}:
            details: Event = event["response"].get("incomplete_details") or {}
            yield ResponseEnds(details.get("reason"))
        elif kind in {"response.failed", "error"}:
            error = event.get("response", event).get("error") or event
            yield ResponseFails(str(error.get("code")), str(error.get("message")))

    def _begin(self, index: int, item: Mapping[str, Any]) -> Iterator[Step]:
        if _KINDS.get(item["type"]) != "arguments" or "call_id" not in item:
            return
        self._begun[index] = item["type"]
        yield CallBegins(index, item["call_id"], called_name(item))
        if item["type"] == "custom_tool_call":
            yield Piece("arguments", index, '{"input": "')

    def _piece(
        self, kind: Literal["text", "reasoning", "arguments"], index: int, text: str
    ) -> Iterator[Step]:
        if kind == "arguments" and index not in self._begun:
            # Nobody knows yet which tool they are for.
            return
        self._said.add(index)
        is_raw = kind == "arguments" and self._begun[index] == "custom_tool_call"
        yield Piece(kind, index, json.dumps(text)[1:-1] if is_raw else text)

    def _finish(self, index: int, item: Mapping[str, Any]) -> Iterator[Step]:
        if (kind := _KINDS.get(item["type"])) is None:
            raise ValueError(f"only the Responses API has an item {item['type']!r}")
        if index not in self._begun:
            yield from self._begin(index, item)
        if index not in self._said and (text := content(item)):
            yield from self._piece(kind, index, text)
        if item["type"] == "custom_tool_call":
            yield Piece("arguments", index, '"}')
        yield ItemEnds(index, item)


def called_name(item: Mapping[str, Any]) -> str:
    """The name of a call's tool, flat."""
    if item["type"] == "local_shell_call":
        return "shell"
    namespace = item.get("namespace")
    return f"{namespace.rstrip('_')}__{item['name']}" if namespace else item["name"]


def content(item: Mapping[str, Any]) -> str:
    """The text of an item; of a call its arguments or its raw input."""
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
