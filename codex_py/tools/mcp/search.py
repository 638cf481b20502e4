"""`tool_search`: find tools of MCP servers if there are too many to offer each."""

from typing import Any

from pydantic import Field

from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ChangesNothing, ToolParams
from codex_py.tools.mcp.catalogue import McpCatalogue, described
from codex_py.tools.truncate import BYTES_PER_TOKEN, truncate_output

_MAX_RESULTS = 50


class ToolSearchParams(ToolParams):
    query: str = Field(description="Words of the name or the description of the tool.")
    limit: int = Field(default=8, ge=1, description="How many to return. Default: 8.")


class ToolSearch(ChangesNothing):
    name = "tool_search"
    params = ToolSearchParams
    parallel = True

    def __init__(self, catalogue: McpCatalogue) -> None:
        self._catalogue = catalogue

    async def run(self, params: ToolSearchParams, context: ToolContext) -> ToolOutput:
        """Return names, descriptions and schemas as JSON. No item is emitted, as in Codex."""
        bytes_left = context.output_token_limit * BYTES_PER_TOKEN
        shown: list[dict[str, Any]] = []
        for spec in self._catalogue.search(params.query, min(params.limit, _MAX_RESULTS)):
            entry = described(spec)
            bytes_left -= len(encode_json(entry))
            if bytes_left < 0:
                # The next request offers it with its schema.
                entry = {"name": spec.name}
            shown.append(entry)
        text = encode_json({"tools": shown}).decode()
        return ToolOutput(truncate_output(text, context.output_token_limit))
