"""Which tools a model is offered, and how they are described to it.

What is accepted is more than what is offered: the router takes every tool in every spelling. The schemas
stand here as data, because they leave with the first request, before pydantic is loaded; a test holds them
against the parameter models of the tools. Source of names and parameters: the tools of Codex.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from codex_py.instructions import instruction_text
from codex_py.protocol.tools import ToolSpec

ShellTool: TypeAlias = Literal["unified_exec", "shell_command", "shell", "local_shell", "disabled"]
Schema: TypeAlias = dict[str, Any]


def tool_specs(
    *,
    shell: ShellTool,
    freeform_patch: bool,
    login: bool = True,
    update_plan: bool = True,
    view_image: bool = True,
    web_search: Mapping[str, Any] | None = None,
) -> tuple[ToolSpec, ...]:
    """The tools of one session, in the order in which they are sent.

    Args:
        shell: the family of command tools that the model was trained on.
        freeform_patch: `apply_patch` as a custom tool with a grammar, else as a function.
        login: whether the model may ask for a login shell.
        web_search: the fields of the server's own search tool; None leaves it out.
    """
    specs = _shell_specs(shell, login=login)
    if update_plan:
        specs.append(_function("update_plan", _UPDATE_PLAN))
    specs.append(_freeform_patch() if freeform_patch else _patch_function())
    if view_image:
        path = _object({"path": _text("Path of the image.")}, "path")
        specs.append(_function("view_image", path))
    if web_search is not None:
        specs.append(ToolSpec("web_search", {"type": "web_search", **web_search}))
    return tuple(specs)


def _shell_specs(shell: ShellTool, *, login: bool) -> list[ToolSpec]:
    match shell:
        case "unified_exec":
            return [
                _function(
                    "exec_command", _EXEC_COMMAND if login else _without_login(_EXEC_COMMAND)
                ),
                _function("write_stdin", _WRITE_STDIN),
            ]
        case "shell_command":
            schema = _SHELL_COMMAND if login else _without_login(_SHELL_COMMAND)
            return [_function("shell_command", schema)]
        case "shell":
            return [_function("shell", _SHELL)]
        case "local_shell":
            return [ToolSpec("local_shell", {"type": "local_shell"})]
        case "disabled":
            return []


def _without_login(schema: Schema) -> Schema:
    properties = {k: v for k, v in schema["properties"].items() if k != "login"}
    return {**schema, "properties": properties}


def _function(name: str, parameters: Schema, text: str | None = None) -> ToolSpec:
    return ToolSpec(
        name,
        {
            "type": "function",
            "name": name,
            "description": instruction_text(f"tools/{text or name}.md").strip(),
            "strict": False,
            "parameters": parameters,
        },
    )


def _freeform_patch() -> ToolSpec:
    return ToolSpec(
        "apply_patch",
        {
            "type": "custom",
            "name": "apply_patch",
            "description": instruction_text("tools/apply_patch.md").strip(),
            "format": {
                "type": "grammar",
                "syntax": "lark",
                "definition": instruction_text("tools/apply_patch.lark"),
            },
        },
    )


def _patch_function() -> ToolSpec:
    parameters = _object({"input": _text("The whole patch.")}, "input")
    return _function("apply_patch", parameters, "apply_patch_function")


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _number(description: str) -> Schema:
    return {"type": "number", "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


_WORKDIR = _text("Where to run it. Default: the working directory of the session.")
_OUTPUT_LIMIT = _number("How much output to return, in tokens. Longer output is cut in the middle.")
_TIMEOUT = _number("Milliseconds until the command is killed. Default: 10000.")
_LOGIN = _flag("Run the shell as a login shell. Default: true.")
_ESCALATION: Schema = {
    "sandbox_permissions": {
        "type": "string",
        "enum": ["use_default", "require_escalated"],
        "description": "`require_escalated` asks to run without the sandbox. Default: use_default.",
    },
    "justification": _text(
        "With `require_escalated`: the question to put to the user, one sentence."
    ),
}
_PREFIX_RULE: Schema = {
    "prefix_rule": {
        "type": "array",
        "items": {"type": "string"},
        "description": "With `require_escalated`: words with which later commands that may also run"
        " this way begin.",
    }
}
_EXEC_COMMAND = _object(
    {
        "cmd": _text("The command line."),
        "workdir": _WORKDIR,
        "shell": _text("The shell to run it in. Default: the user's."),
        "login": _LOGIN,
        "tty": _flag("Give the command a terminal, so that it can be written to. Default: false."),
        "yield_time_ms": _number("How long to wait for the end, in milliseconds. Default: 10000."),
        "max_output_tokens": _OUTPUT_LIMIT,
        **_ESCALATION,
        **_PREFIX_RULE,
    },
    "cmd",
)
_WRITE_STDIN = _object(
    {
        "session_id": _number("The session that `exec_command` named."),
        "chars": _text("What to write; \\u0003 interrupts. Empty: only wait for output."),
        "yield_time_ms": _number("How long to wait for output, in milliseconds."),
        "max_output_tokens": _OUTPUT_LIMIT,
    },
    "session_id",
)
_SHELL = _object(
    {
        "command": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The program and its arguments.",
        },
        "workdir": _WORKDIR,
        "timeout_ms": _TIMEOUT,
        **_ESCALATION,
    },
    "command",
)
_SHELL_COMMAND = _object(
    {
        "command": _text("The command line."),
        "workdir": _WORKDIR,
        "timeout_ms": _TIMEOUT,
        "login": _LOGIN,
        **_ESCALATION,
        **_PREFIX_RULE,
    },
    "command",
)
_UPDATE_PLAN = _object(
    {
        "explanation": _text("Why the plan changed, where it did."),
        "plan": {
            "type": "array",
            "description": "All steps, in order.",
            "items": _object(
                {
                    "step": _text("What is to be done, in a few words."),
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                },
                "step",
                "status",
            ),
        },
    },
    "plan",
)
