"""How the tools of MCP servers are described to the model. LIGHT."""

from typing import Any, Final

from codex_py.instructions import instruction_text
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import ToolSpec

MAX_DESCRIPTION_CHARS: Final = 8_000
MAX_SCHEMA_BYTES: Final = 64 * 1024


def server_tool_spec(name: str, tool: ServerTool, *, is_schema_text: bool = False) -> ToolSpec:
    """The function of one tool. Its schema is the server's own, unless that is longer than 64 KB.

    Args:
        is_schema_text: put the schema into the description, for a service that does not take it.
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
    # Services refuse a function whose schema lacks these; servers may leave them out.
    schema = {"type": "object", **schema}
    schema.setdefault("properties", {})
    return _function(name, description, schema)


def resource_specs() -> tuple[ToolSpec, ...]:
    server = _text("Name of the server. Default: all of them.")
    cursor = _text("Where to go on: the `nextCursor` of an earlier call. Needs `server`.")
    listing = _object({"server": server, "cursor": cursor})
    reading = _object(
        {"server": _text("Name of the server."), "uri": _text("Address of the resource.")},
        "server",
        "uri",
    )
    return tuple(
        _function(name, instruction_text(f"tools/{name}.md"), parameters)
        for name, parameters in (
            ("list_mcp_resources", listing),
            ("list_mcp_resource_templates", listing),
            ("read_mcp_resource", reading),
        )
    )


def search_spec() -> ToolSpec:
    parameters = _object(
        {
            "query": _text("Words of the name or the description of the tool."),
            "limit": {"type": "number", "description": "How many to return. Default: 8."},
        },
        "query",
    )
    return _function("tool_search", instruction_text("tools/tool_search.md"), parameters)


def _function(name: str, description: str, parameters: dict[str, Any]) -> ToolSpec:
    definition = {
        "type": "function",
        "name": name,
        "description": description,
        "strict": False,
        "parameters": parameters,
    }
    return ToolSpec(name, definition)


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}
