"""The signatures that a server gave out, read from the streams that it sends."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


class Signatures(dict[str, str]):
    """The thinking of each signature, and an empty text for the data of each redacted block."""

    def read(self, stream: bytes) -> None:
        """Remember those of a response of Anthropic's API."""
        thinking: dict[Any, str] = {}
        for event in _events(stream):
            index = event.get("index")
            block: Mapping[str, Any] = event.get("content_block", {})
            if block.get("type") == "redacted_thinking":
                self[block["data"]] = ""
            elif block.get("type") == "thinking":
                thinking[index] = block.get("thinking", "")
                if block.get("signature"):
                    self[block["signature"]] = thinking[index]
            delta: Mapping[str, Any] = event.get("delta", {})
            if delta.get("type") == "thinking_delta":
                thinking[index] = thinking.get(index, "") + delta["thinking"]
            elif delta.get("type") == "signature_delta":
                self[delta["signature"]] = thinking.get(index, "")


def _events(stream: bytes) -> Iterator[dict[str, Any]]:
    for line in stream.splitlines():
        if line.startswith(b"data:"):
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event
