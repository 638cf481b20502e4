"""Requests to the scripted server in each API, and what it answers."""

import http.client
import json
from typing import Any

from tests.support.server import ScriptedServer

PATHS = {
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
}
HEADERS = {"anthropic-version": "2023-06-01", "thread-id": "t"}


def post(
    server: ScriptedServer, api: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    text = json.dumps(body)
    connection.request(
        "POST", PATHS[api], text, HEADERS if headers is None else headers
    )
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def data(stream: bytes) -> list[Any]:
    """The data of server-sent events; `[DONE]` is a text."""
    lines = [
        line[6:] for line in stream.decode().splitlines() if line.startswith("data: ")
    ]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    tool = {"name": "shell", "description": "", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": tool}]
    return {
        "model": "m",
        "stream": True,
        "messages": [*messages],
        "tools": tools,
        **fields,
    }


def anthropic(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    tools = [{"name": "shell", "description": "", "input_schema": {"type": "object"}}]
    body = {
        "model": "m",
        "max_tokens": 8,
        "stream": True,
        "messages": [*messages],
        "tools": tools,
    }
    return {**body, **fields}


def without_tools(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "tools"}
