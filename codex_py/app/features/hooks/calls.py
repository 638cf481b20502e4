"""Runs hooks around calls and approvals. They see the names and arguments that Codex 0.169 gives them.

Loaded after the first request was sent.
"""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

from pydantic import ValidationError

from codex_py.app.features.hooks.runs import HookRuns, ending, notes_of
from codex_py.errors import CallRefused, ToolError
from codex_py.protocol.approval import ApprovalRequest, Approver, Review, ReviewDecision
from codex_py.protocol.calls import json_object, read_report
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import MCP_PREFIX, CustomPayload, FunctionPayload, ToolOutput
from codex_py.tools.offered import AGENT_TOOLS, AGENTS_NAMESPACE

_COMMAND_FIELDS: Final[Mapping[str, str]] = {
    "exec_command": "cmd",
    **dict.fromkeys(("shell_command", "shell", "local_shell"), "command"),
    "apply_patch": "input",
}
"""The parameter that hooks see as `command`."""
_ALIASES: Final = {"apply_patch": ("Edit", "Write"), "spawn_agent": ("Agent",)}


@runtime_checkable
class OfServer(Protocol):
    """A tool of an MCP server."""

    name: str
    server: str


@frozen
class SeenCall:
    """A call as hooks see it."""

    name: str
    tool_input: Mapping[str, Any]
    call_id: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """For matchers."""
        return (self.name, *_ALIASES.get(self.name, ()))

    @property
    def fields(self) -> dict[str, Any]:
        use = {} if self.call_id is None else {"tool_use_id": self.call_id}
        return {"tool_name": self.name, "tool_input": self.tool_input, **use}

    def refused(self, reason: str) -> str:
        """The output of a call that a hook refuses, in the words of Codex."""
        if self.name in {"Bash", "apply_patch"}:
            command = self.tool_input["command"]
            return f"Command blocked by PreToolUse hook: {reason}. Command: {command}"
        return f"Tool call blocked by PreToolUse hook: {reason}. Tool: {self.name}"

    def response(self, output: ToolOutput) -> Any:
        if self.name == "Bash":
            return read_report(output.text).text
        if not self.name.startswith(MCP_PREFIX):
            return output.text
        # A header with the time comes before the result.
        parts = [{"type": "text", "text": output.text.partition("\nOutput:\n")[2]}]
        if output.content is not None:
            parts = [{**part, "type": part["type"][6:]} for part in output.content[1:]]
        return {"content": parts}


class HookedCalls:
    """The `Dispatch` of a session."""

    def __init__(self, runs: HookRuns, dispatch: Dispatch) -> None:
        self._run = runs.run
        self._dispatch = dispatch
        self._commands: dict[str, SeenCall] = {}
        """Those that continue in the background, by process id."""

    async def __call__(self, use: ToolUse) -> ToolOutput:
        if use.tool.name == "write_stdin":
            # Part of a call that was seen before.
            call = self._commands.pop(str(use.params.session_id), None)
            output = await self._dispatch(use)
            return output if call is None else await self._after(call, output)
        call = _seen(use)
        runs = await self._run("PreToolUse", call.names, **call.fields)
        notes = notes_of(runs)
        if (reason := ending(runs)) is not None:
            text, cause = call.refused(reason), "a PreToolUse hook does not allow it"
            refusal = CallRefused(text, code="ApprovalDenied", cause=cause)
            return ToolOutput(
                text, success=False, error_code=refusal.code, refusal=refusal, notes=notes
            )
        rewrites = [run for run in runs if run.answer.updated_input is not None]
        if rewrites:
            # As in Codex, that of the hook which ended last.
            last = max(rewrites, key=lambda run: run.ended_at).answer
            use = _rewritten(use, last.updated_input or {})
            call = _seen(use)
        output = await self._dispatch(use)
        return await self._after(call, replace(output, notes=(*notes, *output.notes)))

    async def _after(self, call: SeenCall, output: ToolOutput) -> ToolOutput:
        """Run the `PostToolUse` hooks of a call that did its work, or of a command that has ended, with any exit code."""
        if output.error_code is not None:
            return output
        if call.name == "Bash" and (process := read_report(output.text).process_id) is not None:
            self._commands[process] = call
            return output
        response = call.response(output)
        runs = await self._run("PostToolUse", call.names, **call.fields, tool_response=response)
        if reasons := list(filter(None, (ending([run]) for run in runs))):
            output = replace(output, text="\n\n".join(reasons), content=None)
        return replace(output, notes=(*output.notes, *notes_of(runs)))


class HookedApprover:
    def __init__(self, runs: HookRuns, approver: Approver) -> None:
        self._run = runs.run
        self._approver = approver

    async def review(self, request: ApprovalRequest) -> Review:
        """Let `PermissionRequest` hooks decide, or else the user."""
        call = _asked(request)
        runs = await self._run("PermissionRequest", call.names, **call.fields)
        if (reason := ending(runs)) is not None:
            return Review(ReviewDecision.DENIED, reason)
        if any(run.answer.is_approved for run in runs):
            return Review(ReviewDecision.APPROVED)
        return await self._approver.review(request)


def _seen(use: ToolUse) -> SeenCall:
    name, payload, call_id = use.tool.name, use.call.payload, use.call.call_id
    if (field := _COMMAND_FIELDS.get(name)) is not None:
        value = getattr(use.params, field)
        command = {"command": value if isinstance(value, str) else shlex.join(value)}
        return SeenCall(name if name == "apply_patch" else "Bash", command, call_id)
    if isinstance(use.tool, OfServer):
        return SeenCall(f"{MCP_PREFIX}{use.tool.server}__{name}", use.params.root, call_id)
    if name in AGENT_TOOLS and name not in _ALIASES:
        name = AGENTS_NAMESPACE + name
    match payload:
        case FunctionPayload(arguments):
            return SeenCall(name, json_object(arguments), call_id)
        case CustomPayload(text):
            return SeenCall(name, {"input": text}, call_id)
        case _:
            return SeenCall(name, {}, call_id)


def _rewritten(use: ToolUse, updated: Mapping[str, Any]) -> ToolUse:
    """The call with the input that a hook gave it.

    Raises:
        ToolError: the input does not fit the tool. The call must not run as it was either.
    """
    tool, command = use.tool, updated.get("command")
    field = _COMMAND_FIELDS.get(tool.name)
    try:
        if field is None:
            return replace(use, params=tool.params.model_validate(dict(updated)))
        if not isinstance(command, str):
            raise ValueError("`command` is missing")
        value = command if isinstance(getattr(use.params, field), str) else shlex.split(command)
        return replace(use, params=use.params.model_copy(update={field: value}))
    except (ValidationError, ValueError) as error:
        raise ToolError(
            f"a PreToolUse hook gave the call an `updatedInput` that does not fit: {error}",
            code="InvalidArgs",
        ) from error


def _asked(request: ApprovalRequest) -> SeenCall:
    if request.tool is not None:
        name, arguments = request.tool
        return SeenCall(name, {**arguments, "description": request.reason})
    name, command = "apply_patch", request.summary
    if request.kind == "command":
        name = "Bash"
        match shlex.split(command):
            case [_, "-c" | "-lc", script]:
                command = script
            case _:
                pass
    return SeenCall(name, {"command": command, "description": request.reason})
