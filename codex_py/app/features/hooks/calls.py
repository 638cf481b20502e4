"""Runs hooks around calls and approvals.

They see the names and arguments that Codex 0.171 gives them.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

from codex_py.app.features.hooks.runs import HookRun, HookRuns, notes_of, stop_reason
from codex_py.errors import CallRefused, ToolError
from codex_py.protocol.approval import ApprovalRequest, Approver, Review, ReviewDecision
from codex_py.protocol.calls import read_report
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.json_fields import json_object
from codex_py.protocol.prompts import Note
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
    "shell_command": "command",
    "shell": "command",
    "local_shell": "command",
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
        hook_input = _hook_input(use)
        is_input = use.tool.name == "write_stdin"
        # Without input, the call only waits for a command, whose own call has run the hooks.
        is_poll = is_input and not use.params.chars
        runs: Sequence[HookRun] = []
        if not is_poll:
            runs = await self._run("PreToolUse", **hook_input)
        notes = notes_of(runs)
        reason = stop_reason(runs)
        if reason is not None:
            return _refused_output(hook_input, reason, notes)
        updated = _updated_input(runs)
        if updated is not None:
            use = _rewritten(use, updated)
            hook_input = _hook_input(use, updated)
        output = await self._dispatch(use)
        output = replace(output, notes=(*notes, *output.notes))
        if output.error_code is not None:
            return output
        if is_input:
            # The hooks after the call see the command that got the input.
            command = self._commands.pop(str(use.params.session_id), None)
            if command is None:
                return output
            hook_input = command
        return await self._after(hook_input, output)

    async def _after(
        self, hook_input: dict[str, Any], output: ToolOutput
    ) -> ToolOutput:
        """Run the `PostToolUse` hooks of a call that did its work.

        A command counts once it has ended, with any exit code.
        """
        name = hook_input["tool_name"]
        if name == "Bash":
            process_id = read_report(output.text).process_id
            if process_id is not None:
                self._commands[process_id] = hook_input
                return output
        response = _tool_response(name, output)
        runs = await self._run("PostToolUse", **hook_input, tool_response=response)
        reasons: list[str] = []
        for run in runs:
            reason = stop_reason([run])
            if reason is not None:
                reasons.append(reason)
        if reasons:
            output = replace(output, text="\n\n".join(reasons), content=None)
        return replace(output, notes=(*output.notes, *notes_of(runs)))


class HookedApprover:
    """An `Approver` that runs the hooks before the user is asked."""

    def __init__(self, runs: HookRuns, approver: Approver) -> None:
        self._run = runs.run
        self._approver = approver

    async def review(self, request: ApprovalRequest) -> Review:
        """Let `PermissionRequest` hooks decide; otherwise ask the user."""
        runs = await self._run("PermissionRequest", **_approval_input(request))
        reason = stop_reason(runs)
        if reason is not None:
            return Review(ReviewDecision.DENIED, reason)
        if any(run.answer.is_approved for run in runs):
            return Review(ReviewDecision.APPROVED)
        return await self._approver.review(request)


def _hook_input(
    use: ToolUse, rewritten: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the hook input for a call. `rewritten`: the arguments that replace the model's."""
    name = use.tool.name
    arguments = _arguments(use.call) if rewritten is None else rewritten
    field = _COMMAND_FIELDS.get(name)
    if field is not None:
        command = getattr(use.params, field)
        if not isinstance(command, str):
            command = shlex.join(command)
        arguments = {"command": command}
        if name != "apply_patch":
            name = "Bash"
    elif isinstance(use.tool, OfServer):
        name = f"{MCP_PREFIX}{use.tool.server}__{name}"
        arguments = use.params.root
    elif name in AGENT_TOOLS and name != "spawn_agent":
        name = AGENTS_NAMESPACE + name
    return {"tool_name": name, "tool_input": arguments, "tool_use_id": use.call.call_id}


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments as the model gave them."""
    match call.payload:
        case FunctionPayload(arguments):
            return json_object(arguments)
        case CustomPayload(text):
            return {"input": text}
        case _:
            return {}


def _refused_output(
    hook_input: Mapping[str, Any],
    reason: str,
    notes: tuple[Note, ...],
) -> ToolOutput:
    """Return the output of a call that a hook refuses, in Codex's wording."""
    name = hook_input["tool_name"]
    text = f"Tool call blocked by PreToolUse hook: {reason}. Tool: {name}"
    if name in {"Bash", "apply_patch"}:
        command = hook_input["tool_input"]["command"]
        text = f"Command blocked by PreToolUse hook: {reason}. Command: {command}"
    cause = "a PreToolUse hook does not allow it"
    refusal = CallRefused(text, code="ApprovalDenied", cause=cause)
    return ToolOutput(
        text, success=False, error_code=refusal.code, refusal=refusal, notes=notes
    )


def _updated_input(runs: Sequence[HookRun]) -> Mapping[str, Any] | None:
    """Return the arguments that a hook gave the call; None if it keeps the model's."""
    rewrites = [run for run in runs if run.answer.updated_input is not None]
    if not rewrites:
        return None
    # As in Codex, the input of the hook that ended last is used.
    last = max(rewrites, key=lambda run: run.ended_at)
    return last.answer.updated_input


def _tool_response(name: str, output: ToolOutput) -> Any:
    """Return the result of a call as `PostToolUse` hooks see it."""
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
        takes_words = not isinstance(getattr(use.params, field), str)
        value = shlex.split(command) if takes_words else command
        return replace(use, params=replace(use.params, **{field: value}))
    except ValueError as error:
        raise ToolError(
            f"a PreToolUse hook gave the call an `updatedInput` that does not fit: {error}",
            code="InvalidArgs",
        ) from error


def _approval_input(request: ApprovalRequest) -> dict[str, Any]:
    """Return the hook input for an approval. A command is shown without the shell that runs it."""
    name, arguments = request.tool or ("apply_patch", {"command": request.summary})
    if request.kind == "command":
        name = "Bash"
        match shlex.split(request.summary):
            case [_, "-c" | "-lc", script]:
                arguments = {"command": script}
            case _:
                pass
    tool_input = {**arguments, "description": request.reason}
    return {"tool_name": name, "tool_input": tool_input}
