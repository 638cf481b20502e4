"""The specifications of the built-in tools that a model is offered. LIGHT.

The router accepts more than the offered tools: every tool in every spelling. The descriptions are
`instructions/tools/NAME.md`. `scripts/generate-tool-schemas` writes the schemas from the parameter
models of the tools, because the first request contains the schemas and is sent before the tools are
loaded. Source of names and parameters: the tools of Codex.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from codex_py.instructions import instruction_text
from codex_py.protocol.tools import (
    AGENT_TOOLS,
    RESOURCE_TOOLS,
    FreeformSpec,
    FunctionSpec,
    HostedSpec,
    ToolSpec,
)

ShellTool: TypeAlias = Literal[
    "unified_exec", "shell_command", "shell", "local_shell", "disabled"
]

_FAMILIES: Final[Mapping[ShellTool, Collection[str]]] = {
    "unified_exec": ("exec_command", "write_stdin"),
    "shell_command": ("shell_command",),
    "shell": ("shell",),
    "local_shell": ("local_shell",),
    "disabled": (),
}
"""The names of the command tools that each family of models was trained on."""
_WEB_SEARCH: Final = "web_search"
TOOL_SEARCH: Final = "tool_search"
"""A tool that is offered only with MCP servers, like `RESOURCE_TOOLS`."""


def tool_specs(
    *,
    shell: ShellTool,
    freeform_patch: bool,
    login: bool = True,
    left_out: Collection[str] = (),
    web_search: Mapping[str, Any] | None = None,
) -> tuple[ToolSpec, ...]:
    """The tools of one session, in the order in which they are sent.

    Args:
        freeform_patch: offer `apply_patch` as a custom tool with a grammar, else as a function.
        login: True if the model may ask for a login shell.
        left_out: names of tools to leave out.
        web_search: the fields of the server's own search tool; None leaves it out.
    """
    all_commands = {name for family in _FAMILIES.values() for name in family}
    other_commands = all_commands - {*_FAMILIES[shell]}
    offered_later = {*RESOURCE_TOOLS, TOOL_SEARCH, *AGENT_TOOLS}
    not_offered = {*left_out, *other_commands, *offered_later}
    specs = [
        _spec(name, freeform_patch=freeform_patch, login=login)
        for name in _schemas()
        if name not in not_offered
    ]
    if web_search is not None:
        specs.append(HostedSpec(_WEB_SEARCH, web_search))
    return tuple(specs)


def own_spec(name: str, *, without: str | None = None) -> FunctionSpec:
    """The specification of a built-in tool as a function. `without`: a parameter to leave out."""
    schema = _schemas()[name]
    properties = {
        key: value for key, value in schema["properties"].items() if key != without
    }
    description = instruction_text(f"tools/{name}.md")
    return FunctionSpec(name, description, {**schema, "properties": properties})


def own_names() -> Collection[str]:
    """Names that are reserved for built-in tools."""
    return {*_schemas(), _WEB_SEARCH} - AGENT_TOOLS


def _spec(
    name: str,
    *,
    freeform_patch: bool,
    login: bool,
) -> ToolSpec:
    if name == "local_shell":
        return HostedSpec(name)
    if name == "apply_patch":
        return _patch_spec(name, freeform_patch=freeform_patch)
    if login:
        return own_spec(name)
    return own_spec(name, without="login")


def _patch_spec(name: str, *, freeform_patch: bool) -> ToolSpec:
    grammar = instruction_text("tools/apply_patch.lark")
    if freeform_patch:
        return FreeformSpec(name, instruction_text("tools/apply_patch.md"), grammar)
    text = instruction_text("tools/apply_patch_function.md")
    text += f"\n\nThe grammar of a patch, in Lark notation:\n\n{grammar}"
    return FunctionSpec(name, text, _schemas()[name])


@cache
def _schemas() -> Mapping[str, Any]:
    """The schemas by the name of the tool, in the order in which tools are offered."""
    return json.loads(instruction_text("tools/schemas.json"))
