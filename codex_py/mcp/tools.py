"""The tools of a server, as it describes them. LIGHT."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class ServerTool:
    name: str
    """As the server calls it."""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_read_only(self) -> bool:
        """The tool says of itself that it changes nothing."""
        return self.annotations.get("readOnlyHint") is True

    @property
    def is_harmless(self) -> bool:
        """The tool says of itself that it destroys nothing and does not interact with the outside world."""
        return (
            self.annotations.get("destructiveHint") is False
            and self.annotations.get("openWorldHint") is False
        )


def server_tool(data: object) -> ServerTool | None:
    """One entry of `tools/list`; None if it has no name. Other missing or invalid fields are left out."""
    if not isinstance(data, dict):
        return None
    entry = cast("dict[str, Any]", data)
    name, description = entry.get("name"), entry.get("description")
    if not isinstance(name, str) or not name:
        return None
    return ServerTool(
        name,
        description if isinstance(description, str) else "",
        _table(entry.get("inputSchema")),
        _table(entry.get("annotations")),
    )


def _table(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
