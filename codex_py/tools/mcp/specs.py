"""How the tools of MCP servers are described to the model. LIGHT."""

from typing import Any, Final

from codex_py.mcp.tools import ServerTool
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import FunctionSpec

MAX_DESCRIPTION_CHARS: Final = 8_000
MAX_SCHEMA_BYTES: Final = 64 * 1024


def server_tool_spec(name: str, tool: ServerTool, *, is_schema_text: bool = False) -> FunctionSpec:
    """The function of one tool. Its schema is the server's own, unless that is longer than 64 KB.

    Args:
        is_schema_text: put the schema into the description, for a provider that does not accept it.
    """
    description = tool.description
    if len(description) > MAX_DESCRIPTION_CHARS:
        missing = len(description) - MAX_DESCRIPTION_CHARS
        description = f"{description[:MAX_DESCRIPTION_CHARS]}… [{missing} more characters left out]"
    schema: dict[str, Any] = dict(tool.input_schema)
    if len(encode_json(schema)) > MAX_SCHEMA_BYTES:
        schema = {"type": "object"}
        description += "\n[The schema of the parameters is too long and was left out.]"
    elif is_schema_text:
        description += f"\nSchema of the parameters: {encode_json(schema).decode()}"
        schema = {"type": "object"}
    # Providers refuse a function whose schema lacks these; servers may leave them out.
    schema = {"type": "object", **schema}
    schema.setdefault("properties", {})
    return FunctionSpec(name, description, schema)


def described(spec: FunctionSpec) -> dict[str, Any]:
    """The specification as a JSON object."""
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
