"""Tools as the model sees them, and calls as the router hands them on."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from codex_py.errors import CallRefused
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note

MCP_PREFIX = "mcp__"
_ALIASES = {"applypatch": "apply_patch", "container.exec": "shell"}
"""Names that models learned for tools of ours."""
_CODED = re.compile(r"\[ERROR:(\w+)\] ")


@frozen
class FunctionSpec:
    """A tool that takes a JSON object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the object."""


@frozen
class FreeformSpec:
    """A tool that takes plain text of a given grammar."""

    name: str
    description: str
    grammar: str
    """In the notation of Lark."""


@frozen
class HostedSpec:
    """A tool that the provider knows by its name: it runs it itself (`web_search`) or has defined its calls (`local_shell`)."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


ToolSpec: TypeAlias = FunctionSpec | FreeformSpec | HostedSpec
"""A tool as it is offered to a model. Each wire puts it into its own words."""


@frozen
class FunctionPayload:
    arguments: str
    """JSON as the model wrote it: it need not parse."""


@frozen
class CustomPayload:
    input: str


@frozen
class LocalShellPayload:
    command: tuple[str, ...]
    workdir: str | None
    timeout_ms: int | None


ToolPayload: TypeAlias = FunctionPayload | CustomPayload | LocalShellPayload


@frozen
class ToolCall:
    tool_name: str
    """As `called_tool` gives it."""
    call_id: str
    """Goes back verbatim with the output."""
    payload: ToolPayload


@frozen
class ToolOutput:
    """What a tool gives back to the model.

    A command that ran and exited with another code than 0 is a result, not a failure: its
    `error_code` is None and the text says the code.
    """

    text: str
    content: tuple[dict[str, Any], ...] | None = None
    """Content parts (`input_text`, `input_image`) in place of the text."""
    success: bool = True
    error_code: str | None = None
    """`ENOENT`, `Timeout`, `InvalidArgs`, …: put in front of the text for the model to match on."""
    refusal: CallRefused | None = None
    """Why a policy did not let the call run, for the user."""
    notes: tuple[Note, ...] = ()
    """Recorded between the call and its output."""


def called_tool(namespace: str | None, name: str) -> str:
    """The tool that a model means, in whatever spelling: `mcp__server__tool` for that of a server."""
    for prefix in ("functions.", "functions__"):
        name = name.removeprefix(prefix)
    if not namespace or namespace == "functions":
        return _ALIASES.get(name, name)
    # Codex gives the namespace with or without the closing underscores.
    if namespace.startswith(MCP_PREFIX):
        return f"{namespace.rstrip('_')}__{name}"
    return f"{namespace}{name}"


def coded_text(code: str, text: str) -> str:
    """A failure as the model reads it; `read_coded_text` is the inverse."""
    return f"[ERROR:{code}] {text}"


def read_coded_text(text: str) -> tuple[str | None, str]:
    """The error code of an output, None where it has none, and the text behind it."""
    found = _CODED.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)
