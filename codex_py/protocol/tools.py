"""Specifications of tools for the model, and its calls and their outputs."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from codex_py.errors import CallRefused
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note

MCP_PREFIX = "mcp__"
AGENT_TOOLS = frozenset(
    ("close_agent", "resume_agent", "send_input", "spawn_agent", "wait_agent")
)
AGENTS_NAMESPACE = "multi_agent_v1"
"""The namespace in which an extension offers `AGENT_TOOLS`, on wires that have namespaces. Codex
puts it before the names."""
COMMAND_TOOLS = frozenset(
    ("exec_command", "write_stdin", "shell", "shell_command", "local_shell")
)
"""The tools that run commands, for every family of models."""
RESOURCE_TOOLS = (
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
)
_ALIASES = {"applypatch": "apply_patch", "container.exec": "shell"}
"""Other names of our tools that models were trained on."""
_CODED = re.compile(r"\[ERROR:(\w+)\] ")


@frozen
class FunctionSpec:
    """A tool that takes a JSON object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the object."""
    namespace: str | None = None
    """The namespace of the tool, on wires that have namespaces. Tools of one namespace are
    adjacent."""

    def described(self) -> dict[str, Any]:
        """The specification as a JSON object."""
        about = {"name": self.name, "description": self.description}
        return {**about, "parameters": self.parameters}


@frozen
class FreeformSpec:
    """A tool that takes plain text of a given grammar."""

    name: str
    description: str
    grammar: str
    """The grammar in Lark notation."""


@frozen
class HostedSpec:
    """A tool that the provider knows by name.

    The provider runs it (`web_search`), or has defined the form of its calls (`local_shell`).
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


ToolSpec: TypeAlias = FunctionSpec | FreeformSpec | HostedSpec
"""The specification of a tool for a model. Each wire encodes it in its own format."""


@frozen
class FunctionPayload:
    """The arguments of a function."""

    arguments: str
    """JSON as the model wrote it; it may be invalid."""


@frozen
class CustomPayload:
    """The plain text for a custom tool."""

    input: str


@frozen
class LocalShellPayload:
    """The command of a `local_shell_call`."""

    command: tuple[str, ...]
    workdir: str | None
    timeout_ms: int | None


ToolPayload: TypeAlias = FunctionPayload | CustomPayload | LocalShellPayload


@frozen
class ToolCall:
    """A call as the model wrote it."""

    tool_name: str
    """The name from `called_tool`."""
    call_id: str
    """The id that is sent back verbatim with the output."""
    payload: ToolPayload


@frozen
class ToolOutput:
    """The result of a call, for the model.

    A command that exits with a code other than 0 is not a failed call: `error_code` is None, and
    the text has the exit code.
    """

    text: str
    content: tuple[dict[str, Any], ...] | None = None
    """Content parts (`input_text`, `input_image`) that replace the text."""
    success: bool = True
    error_code: str | None = None
    """A code such as `ENOENT`, `Timeout` or `InvalidArgs`. It is put before the text, so that the
    model can match on it."""
    refusal: CallRefused | None = None
    """The reason for the user why a policy refused the call."""
    notes: tuple[Note, ...] = ()
    """Notes that are recorded between the call and its output."""


def called_tool(namespace: str | None, name: str) -> str:
    """Return the flat name of the tool that a model called.

    The tool of an MCP server is `mcp__server__tool`.
    """
    for prefix in ("functions.", "functions__"):
        name = name.removeprefix(prefix)
    if not namespace or namespace == "functions":
        return _ALIASES.get(name, name)
    # Codex gives the namespace with or without the closing underscores.
    if namespace.startswith(MCP_PREFIX):
        return f"{namespace.rstrip('_')}__{name}"
    return f"{namespace}{name}"


def coded_text(code: str, text: str) -> str:
    """The text of a failure for the model; `read_coded_text` is the inverse."""
    return f"[ERROR:{code}] {text}"


def read_coded_text(text: str) -> tuple[str | None, str]:
    """The error code of an output, or None, and the text after it."""
    found = _CODED.match(text)
    if found is None:
        return None, text
    return found[1], text[found.end() :]
