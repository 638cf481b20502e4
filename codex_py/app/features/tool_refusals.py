"""The tools that a server does not accept as they are, and how they are offered instead. LIGHT."""

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

from codex_py.errors import ModelError
from codex_py.model.wordings import means
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import FunctionSpec, HostedSpec, ToolSpec
from codex_py.tools.offered import own_names

_Change: TypeAlias = Literal["schema in description", "left out"]

_STATUSES: Final = {
    None,
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
"""Of a refusal that may be about a tool; with a status of 500 or more, it is one if the words are about a schema."""


class ToolRefusals:
    """What one server does not accept. A tool is changed once, and left out if it is refused again."""

    def __init__(self) -> None:
        self._changes: dict[str, _Change] = {}

    def change_named(self, error: ModelError, tools: Sequence[ToolSpec]) -> str | None:
        """Change the tool that a refusal names. Returns the change, as a clause for the user; None if it names none.

        Args:
            tools: those of the request, unchanged.
        """
        spec = next((spec for spec in tools if spec.name == error.refused_tool), None)
        if spec is None or not _is_about_tools(error):
            return None
        change = self._next_change(spec)
        if change is None:
            return None
        self._changes[spec.name] = change
        what = "its schema is now part of its description"
        if change == "left out":
            what = "it is left out"
        return f"refuses the tool `{spec.name}`, {what}"

    def change_all(self, error: ModelError, tools: Sequence[ToolSpec]) -> str | None:
        """Change the schemas of all tools that are not our own, if a refusal is about one of them and does not say
        which. Returns the change as a clause."""
        foreign = [
            spec
            for spec in tools
            if isinstance(spec, FunctionSpec) and _is_foreign(spec)
        ]
        new = [spec.name for spec in foreign if spec.name not in self._changes]
        if not (
            new
            and _is_about_tools(error)
            and means("bad_schema", error.words or str(error))
        ):
            return None
        self._changes |= dict.fromkeys(new, "schema in description")
        return (
            "refuses the schema of a tool and does not say which: the schemas of all tools of MCP servers and"
            " extensions are now part of their descriptions"
        )

    def offered(self, tools: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
        """The tools as the server takes them."""
        if not self._changes:
            return tools
        kept = [spec for spec in tools if self._changes.get(spec.name) != "left out"]
        return [with_schema_as_text(s) if s.name in self._changes else s for s in kept]

    def _next_change(self, spec: ToolSpec) -> _Change | None:
        is_changed = spec.name in self._changes
        if isinstance(spec, FunctionSpec) and not is_changed:
            return "schema in description"
        may_go = isinstance(spec, HostedSpec) or _is_foreign(spec)
        if may_go and self._changes.get(spec.name) != "left out":
            return "left out"
        return None


def with_schema_as_text(spec: ToolSpec) -> ToolSpec:
    """A function whose schema is a part of its description: any object is accepted in its place."""
    if not isinstance(spec, FunctionSpec):
        return spec
    schema = encode_json(spec.parameters).decode()
    return replace(
        spec,
        description=f"{spec.description}\nSchema of the parameters: {schema}",
        parameters={"type": "object", "properties": {}},
    )


def _is_foreign(spec: ToolSpec) -> bool:
    """True for a tool of an MCP server, an extension or a caller."""
    return (
        isinstance(spec, FunctionSpec)
        and spec.namespace is None
        and spec.name not in own_names()
    )


def _is_about_tools(error: ModelError) -> bool:
    if error.is_too_long:
        return False
    if error.status in _STATUSES:
        return True
    is_failure = (
        error.status is not None and error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )
    return is_failure and means("bad_schema", error.words)
