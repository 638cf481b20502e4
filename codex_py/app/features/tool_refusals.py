"""Changes the tools that a server does not accept as they are."""

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

from codex_py.errors import ModelError
from codex_py.model.refused_tools import is_named
from codex_py.model.wordings import may_be_bad_schema, means
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
"""The statuses of a refusal that may be about a tool. A status of 500 or more counts if the words
are about a schema."""

_RUN_COMMANDS: Final = {
    "exec_command",
    "write_stdin",
    "shell",
    "shell_command",
    "local_shell",
}
"""The tools without which an agent could do nothing. They are never left out."""

_MAX_AT_PLACES: Final = 3
"""The number of tools that are changed one by one because a server names their places. After that,
all are changed at once."""


class ToolRefusals:
    """The tools that one server does not accept.

    A tool is changed once, and left out if it is refused again.

    A server, or a gateway before it, may count the tools in another way than we do. So a place is
    doubted if leaving out the tool there did not help: then the schemas of all tools are changed,
    and no tool is left out.
    """

    def __init__(self) -> None:
        self.changes: dict[str, _Change] = {}
        """The changed tools by name."""
        self._at_places: list[str] = []
        """The tools that were changed because of their places."""
        self._guesses: list[str] = []
        """The tools that were changed because of words whose meaning is uncertain."""
        self._has_doubted = False
        """True once a place could not be right."""
        self._believes_places = True

    def change_named(
        self,
        error: ModelError,
        tools: Sequence[ToolSpec],
    ) -> str | None:
        """Change the tool that a refusal names.

        Returns the change, as a clause for the user; None if nothing was changed.

        Args:
            tools: the tools of the request, unchanged.
        """
        refused = (spec for spec in tools if spec.name == error.refused_tool)
        spec = next(refused, None)
        if spec is None or not _is_about_tools(error):
            return None
        if is_named(_words(error), spec.name):
            return self._change(spec, is_certain=True)
        if self._believes_places:
            return self._change_at_place(spec, tools)
        return None

    def change_all(
        self,
        error: ModelError,
        tools: Sequence[ToolSpec],
    ) -> str | None:
        """Change the schemas of all foreign tools after a refusal that names none of them.

        Returns the change as a clause; None if nothing was changed.
        """
        if not _is_about_tools(error) or not may_be_bad_schema(_words(error)):
            return None
        changed = self._change_all_schemas(tools)
        if not changed:
            # The guess did not help.
            for name in self._guesses:
                del self.changes[name]
            self._guesses = []
            return None
        self._offer_again(tools)
        is_guess = not means("bad_schema", _words(error))
        if is_guess:
            self._guesses += changed
        return (
            "refuses the schema of a tool and does not say which: the schemas of all tools of MCP servers and"
            " extensions are now part of their descriptions"
        )

    def offered(self, tools: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
        """Return the tools in the form that the server takes."""
        offered: list[ToolSpec] = []
        for spec in tools:
            match self.changes.get(spec.name):
                case None:
                    offered.append(spec)
                case "left out":
                    pass
                case "schema in description":
                    offered.append(with_schema_as_text(spec))
        return offered

    def _change(self, spec: ToolSpec, *, is_certain: bool = False) -> str | None:
        """Make the next change of a tool. Returns it as a clause; None if there is none.

        `is_certain`: the server has named the tool.
        """
        change = self._next_change(spec, is_certain=is_certain)
        if change is None:
            return None
        self.changes[spec.name] = change
        what = "its schema is now part of its description"
        if change == "left out":
            what = "it is left out"
        return f"refuses the tool `{spec.name}`, {what}"

    def _change_at_place(
        self,
        spec: ToolSpec,
        tools: Sequence[ToolSpec],
    ) -> str | None:
        """Change the tool at the place that a refusal names, or all tools if it cannot be right.

        Returns the change, as a clause for the user; None if nothing was changed.
        """
        is_new = spec.name not in self._at_places
        is_one_too_many = is_new and len(self._at_places) >= _MAX_AT_PLACES
        if self._has_doubted and is_one_too_many:
            self._believes_places = False
            self._offer_again(tools)
            return None
        is_doubtful = is_one_too_many or self._has_moved_up(spec, tools)
        if is_doubtful and not self._has_doubted:
            self._has_doubted = True
            self._change_all_schemas(tools)
            self._offer_again(tools)
            return (
                "goes on refusing a tool, and seems to count the tools in another way: the schemas of all tools of MCP"
                " servers and extensions are now part of their descriptions"
            )
        change = self._change(spec)
        if change is not None and is_new:
            self._at_places.append(spec.name)
        return change

    def _has_moved_up(
        self,
        spec: ToolSpec,
        tools: Sequence[ToolSpec],
    ) -> bool:
        """True if leaving out the last tool did not help, because its place is refused again."""
        if not self._at_places:
            return False
        last = self._at_places[-1]
        if self.changes.get(last) != "left out":
            return False
        names = [tool.name for tool in tools if not isinstance(tool, HostedSpec)]
        if last not in names:
            return False
        later = names[names.index(last) + 1 :]
        moved_up = (name for name in later if self.changes.get(name) != "left out")
        return next(moved_up, None) == spec.name

    def _offer_again(self, tools: Sequence[ToolSpec]) -> None:
        """Offer again all tools that were changed because of their places.

        Our own tools are offered as they are, the others with their schemas as text.
        """
        for spec in tools:
            if spec.name not in self._at_places:
                continue
            self.changes.pop(spec.name, None)
            if _is_foreign(spec):
                self.changes[spec.name] = "schema in description"
        self._at_places.clear()

    def _change_all_schemas(self, tools: Sequence[ToolSpec]) -> Sequence[str]:
        """Move the schemas of all unchanged foreign tools into their descriptions.

        Returns the names of these tools.
        """
        names: list[str] = []
        for spec in tools:
            if _is_foreign(spec) and spec.name not in self.changes:
                self.changes[spec.name] = "schema in description"
                names.append(spec.name)
        return names

    def _next_change(self, spec: ToolSpec, *, is_certain: bool) -> _Change | None:
        """Return the change to try next; None if there is none."""
        change = self.changes.get(spec.name)
        if isinstance(spec, FunctionSpec) and change is None:
            return "schema in description"
        if change != "left out" and _may_be_left_out(spec, is_certain=is_certain):
            return "left out"
        return None


def with_schema_as_text(spec: ToolSpec) -> ToolSpec:
    """Make a function whose schema is a part of its description. It accepts any object."""
    if not isinstance(spec, FunctionSpec):
        return spec
    schema = encode_json(spec.parameters).decode()
    return replace(
        spec,
        description=f"{spec.description}\nSchema of the parameters: {schema}",
        parameters={"type": "object", "properties": {}},
    )


def _may_be_left_out(spec: ToolSpec, *, is_certain: bool) -> bool:
    """True if an agent without this tool is still useful.

    A function of our own is left out only if the server is certain to mean it.
    """
    if isinstance(spec, HostedSpec) or _is_foreign(spec):
        return True
    is_function = isinstance(spec, FunctionSpec)
    return is_certain and is_function and spec.name not in _RUN_COMMANDS


def _is_foreign(spec: ToolSpec) -> bool:
    """True for a tool of an MCP server, an extension or a caller."""
    return (
        isinstance(spec, FunctionSpec)
        and spec.namespace is None
        and spec.name not in own_names()
    )


def _words(error: ModelError) -> str:
    return error.words or str(error)


def _is_about_tools(error: ModelError) -> bool:
    if error.is_too_long:
        return False
    if error.status in _STATUSES:
        return True
    if error.status is None or error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return False
    return means("bad_schema", error.words)
