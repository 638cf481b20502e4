"""The requests that a scripted server has received."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from typing import Any, cast

_IS_ANSWER = {"function_call_output", "custom_tool_call_output", "tool", "tool_result"}


@dataclass(frozen=True)
class RecordedRequest:
    """A request, whatever its API."""

    method: str
    path: str
    """The path, with its query."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    raw: bytes
    received_s: float
    """The time at which the head was complete, on the clock of `time.monotonic`."""

    @cached_property
    def body(self) -> dict[str, Any]:
        """The JSON value of the body. Raises a `ValueError` if the body is not JSON."""
        return json.loads(self.raw)

    @property
    def fields(self) -> dict[str, Any]:
        """The body as an object. Raises a `ValueError` with a clear text if it is not a JSON
        object."""
        try:
            body: Any = self.body
        except ValueError as error:
            raise ValueError(f"the body is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise ValueError("the body is no JSON object")
        return cast("dict[str, Any]", body)

    @property
    def input(self) -> list[dict[str, Any]]:
        """The input items of a request of the Responses API."""
        return self.body["input"]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a request of Chat Completions or of Anthropic."""
        return self.body["messages"]

    @property
    def thread(self) -> str:
        """The thread of the request; empty if neither a header nor the body names one."""
        try:
            key = self.body.get("prompt_cache_key")
        except (ValueError, AttributeError):
            key = None
        # The header comes first, because a subagent has the key of its parent.
        return self.headers.get("thread-id") or str(key or "")

    def output(self, call_id: str) -> Any:
        """The output of a call, in the format of the API; the first one, if the id was used again.

        Raises:
            LookupError: the request has no such output.
        """
        body = self.body
        entries: list[dict[str, Any]] = body.get("input") or body["messages"]
        for entry in entries:
            # In Anthropic's API, an output is a part of a message.
            parts: list[dict[str, Any]] = [entry]
            content: Any = entry.get("content")
            if isinstance(content, list):
                parts += cast("list[dict[str, Any]]", content)
            for part in parts:
                if _answered_call(part) == call_id:
                    if "output" in part:
                        return part["output"]
                    return part["content"]
        raise LookupError(f"no output for {call_id!r}")


def _answered_call(part: Mapping[str, Any]) -> Any:
    """The id of the call that a part answers; None if it is no output."""
    kind = part.get("type") or part.get("role")
    if kind not in _IS_ANSWER:
        return None
    for name in ("call_id", "tool_call_id", "tool_use_id"):
        if part.get(name):
            return part[name]
    return None


def read_request(reader: BufferedReader) -> RecordedRequest | None:
    """The next request of a connection; None at its end."""
    start = _line(reader).split()
    if len(start) != 3:
        return None
    method, path, _ = start
    headers: dict[str, str] = {}
    line = _line(reader)
    while line:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
        line = _line(reader)
    received_s = time.monotonic()
    length = int(headers.get("content-length", "0"))
    return RecordedRequest(method, path, headers, reader.read(length), received_s)


def _line(reader: BufferedReader) -> str:
    return reader.readline().decode("latin-1").strip()
