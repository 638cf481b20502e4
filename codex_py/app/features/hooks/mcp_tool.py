"""Runs a hook that is a tool of an MCP server. LIGHT."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from codex_py.app.loading import load
from codex_py.config.hooks import Hook
from codex_py.protocol.extension import Thread
from codex_py.protocol.json_fields import as_object, objects, text_field
from codex_py.protocol.messages import encode_json

_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")


class HookFailed(Exception):
    """A hook gave no answer. The text is to be read after the name of the hook."""


async def call_tool(hook: Hook, thread: Thread, given: Mapping[str, Any]) -> str:
    """The texts of the result, which are read like the output of a command. Raises `HookFailed`."""
    servers = thread.feature(load("codex_py.app.features.mcp:McpFeature"))
    server = None if servers is None else servers.get(hook.server)
    if server is None:
        raise HookFailed(f"needs the MCP server {hook.server!r}, which is not configured")
    call = {"name": hook.tool, "arguments": filled(hook.arguments, given)}
    try:
        result = await server.request("tools/call", call)
    except load("codex_py.mcp.connection:RequestFailed") as error:
        raise HookFailed(f"failed: {error}") from error
    texts = [text_field(part, "text") for part in objects(result.get("content"))]
    text = "\n".join(filter(None, texts))
    if result.get("isError") is True:
        raise HookFailed(f"failed: {text}")
    return text


def filled(template: Any, given: Mapping[str, Any]) -> Any:
    """Put fields of the event, `${tool_input.path}`, into the arguments of a tool. A text that is nothing but one
    placeholder becomes the value with its type. Source: `codex-rs/hooks/src/engine/mcp_runner.rs`.

    Raises:
        HookFailed: the event has no such field.
    """
    match template:
        case {**fields}:
            return {name: filled(value, given) for name, value in fields.items()}
        case [*values]:
            return [filled(value, given) for value in values]
        case str() if (whole := _PLACEHOLDER.fullmatch(template)) is not None:
            return _field(given, whole)
        case str():
            return _PLACEHOLDER.sub(partial(_field_text, given), template)
        case _:
            return template


def _field(given: Mapping[str, Any], placeholder: re.Match[str]) -> Any:
    value: Any = given
    for name in placeholder[1].split("."):
        if name not in (fields := as_object(value)):
            raise HookFailed(f"needs `{placeholder[0]}`, which this event does not have")
        value = fields[name]
    return value


def _field_text(given: Mapping[str, Any], placeholder: re.Match[str]) -> str:
    value = _field(given, placeholder)
    return value if isinstance(value, str) else encode_json(value).decode()
