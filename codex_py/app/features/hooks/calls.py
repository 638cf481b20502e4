"""Runs hooks around calls and approvals. They see the names and arguments that Codex 0.171 gives them."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

from codex_py.app.features.hooks.runs import HookRuns, notes_of, stop_reason
from codex_py.errors import CallRefused, ToolError
from codex_py.protocol.approval import ApprovalRequest, Approver, Review, ReviewDecision
from codex_py.protocol.calls import read_report
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.json_fields import json_object
from codex_py.protocol.tools import (
    AGENT_TOOLS,
    AGENTS_NAMESPACE,
    MCP_PREFIX,
    CustomPayload,
    FunctionPayload,
    ToolCall,
    ToolOutput,
)

_COMMAND_FIELDS: Final[Mapping[str, str]] = {
    "exec_command": "cmd",
    **dict.fromkeys(("shell_command", "shell", "local_shell"), "command"),
    "write_stdin": "chars",
    "apply_patch": "input",
}
"""The parameter that hooks see as `command`."""


@runtime_checkable
class OfServer(Protocol):
    """The fields of a tool of an MCP server."""

    name: str
    server: str


class HookedCalls:
    """A `Dispatch` that runs the hooks before a call and after it.

    The hooks may refuse or rewrite the call.
    """

    def __init__(self, runs: HookRuns, dispatch: Dispatch) -> None:
        self._run = runs.run
        self._dispatch = dispatch
        self._commands: dict[str, dict[str, Any]] = {}
        """The hook input of commands that continue in the background, by process id."""

    async def __call__(self, use: ToolUse) -> ToolOutput:
        given = _given(use)
        is_typed = use.tool.name == "write_stdin"
        # A call that only waits continues the call before it.
        is_poll = is_typed and not use.params.chars
        if is_poll:
            runs = []
        else:
            runs = await self._run("PreToolUse", **given)
        notes = notes_of(runs)
        reason = stop_reason(runs)
        if reason is not None:
            text = _refused(given, reason)
            cause = "a PreToolUse hook does not allow it"
            refusal = CallRefused(text, code="ApprovalDenied", cause=cause)
            return ToolOutput(
                text,
                success=False,
                error_code=refusal.code,
                refusal=refusal,
                notes=notes,
            )
        rewrites = [run for run in runs if run.answer.updated_input is not None]
        if rewrites:
            # As in Codex, the input of the hook that ended last is used.
            last = (
                max(rewrites, key=lambda run: run.ended_at).answer.updated_input or {}
            )
            use = _rewritten(use, last)
            given = _given(use, last)
        output = await self._dispatch(use)
        output = replace(output, notes=(*notes, *output.notes))
        if output.error_code is None and is_typed:
            given = self._commands.pop(str(use.params.session_id), None)
        if given is None:
            return output
        return await self._after(given, output)

    async def _after(self, given: dict[str, Any], output: ToolOutput) -> ToolOutput:
        """Run the `PostToolUse` hooks of a call that did its work.

        A command counts once it has ended, with any exit code.
        """
        if output.error_code is not None:
            return output
        name = given["tool_name"]
        if (
            name == "Bash"
            and (process := read_report(output.text).process_id) is not None
        ):
            self._commands[process] = given
            return output
        runs = await self._run(
            "PostToolUse", **given, tool_response=_response(name, output)
        )
        reasons = list(filter(None, (stop_reason([run]) for run in runs)))
        if reasons:
            output = replace(output, text="\n\n".join(reasons), content=None)
        return replace(output, notes=(*output.notes, *notes_of(runs)))


class HookedApprover:
    """Lets `PermissionRequest` hooks decide about an approval; otherwise the user decides."""

    def __init__(self, runs: HookRuns, approver: Approver) -> None:
        self._run = runs.run
        self._approver = approver

    async def review(self, request: ApprovalRequest) -> Review:
        """Let `PermissionRequest` hooks decide; otherwise ask the user."""
        runs = await self._run("PermissionRequest", **_asked(request))
        reason = stop_reason(runs)
        if reason is not None:
            return Review(ReviewDecision.DENIED, reason)
        if any(run.answer.is_approved for run in runs):
            return Review(ReviewDecision.APPROVED)
        return await self._approver.review(request)


def _given(use: ToolUse, rewritten: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the hook input for a call. `rewritten`: the arguments that replace the model's."""
    name = use.tool.name
    if rewritten is None:
        arguments = _arguments(use.call)
    else:
        arguments = rewritten
    field = _COMMAND_FIELDS.get(name)
    if field is not None:
        value = getattr(use.params, field)
        arguments = {"command": value if isinstance(value, str) else shlex.join(value)}
        name = name if name == "apply_patch" else "Bash"
    elif isinstance(use.tool, OfServer):
        name = f"{MCP_PREFIX}{use.tool.server}__{name}"
        arguments = use.params.root
    elif name in AGENT_TOOLS and name != "spawn_agent":
        name = AGENTS_NAMESPACE + name
    return {"tool_name": name, "tool_input": arguments, "tool_use_id": use.call.call_id}


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    match call.payload:
        case FunctionPayload(arguments):
            return json_object(arguments)
        case CustomPayload(text):
            return {"input": text}
        case _:
            return {}


def _refused(given: Mapping[str, Any], reason: str) -> str:
    """Return the output of a call that a hook refuses, in Codex's wording."""
    name = given["tool_name"]
    if name in {"Bash", "apply_patch"}:
        command = given["tool_input"]["command"]
        return f"Command blocked by PreToolUse hook: {reason}. Command: {command}"
    return f"Tool call blocked by PreToolUse hook: {reason}. Tool: {name}"


def _response(name: str, output: ToolOutput) -> Any:
    if name == "Bash":
        return read_report(output.text).text
    if not name.startswith(MCP_PREFIX):
        return output.text
    # A header with the time comes before the result.
    _, _, result = output.text.partition("\nOutput:\n")
    if output.content is None:
        return {"content": [{"type": "text", "text": result}]}
    parts: list[dict[str, Any]] = []
    for part in output.content[1:]:
        kind = part["type"].removeprefix("input_")
        parts.append({**part, "type": kind})
    return {"content": parts}


def _rewritten(use: ToolUse, updated: Mapping[str, Any]) -> ToolUse:
    """Return the call with the input that a hook gave it.

    Raises a `ToolError` if the input does not fit the tool; the call must not run with its old
    input then.
    """
    try:
        field = _COMMAND_FIELDS.get(use.tool.name)
        if field is None:
            return replace(use, params=use.tool.params.model_validate(dict(updated)))
        command = updated.get("command")
        if not isinstance(command, str):
            raise ValueError("`command` is missing")
        if isinstance(getattr(use.params, field), str):
            value = command
        else:
            value = shlex.split(command)
        return replace(use, params=replace(use.params, **{field: value}))
    except ValueError as error:
        raise ToolError(
            f"a PreToolUse hook gave the call an `updatedInput` that does not fit: {error}",
            code="InvalidArgs",
        ) from error


def _asked(request: ApprovalRequest) -> dict[str, Any]:
    """Return the hook input for a question."""
    name, given = request.tool or ("apply_patch", {"command": request.summary})
    if request.kind == "command":
        name = "Bash"
        match shlex.split(request.summary):
            case [_, "-c" | "-lc", script]:
                given = {"command": script}
            case _:
                pass
    return {"tool_name": name, "tool_input": {**given, "description": request.reason}}
