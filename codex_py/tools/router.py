"""Finds the tool of a call, queues and runs the call, and makes the output item.

A model may use more names than it was offered: flat (`mcp__server__tool`), namespaced, with
prefixes that it learned elsewhere (`functions.shell`), as a function or as a custom tool. Every
call, failed ones included, gets exactly one output with its `call_id`.
"""

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any, cast

from codex_py.errors import CallRefused, CodexError, ToolError, single_error
from codex_py.protocol import items
from codex_py.protocol.approval import DENIALS
from codex_py.protocol.bugs import bug_found, bug_line, text_of
from codex_py.protocol.calls import failed_call
from codex_py.protocol.dispatch import (
    ApproverFailed,
    Dispatch,
    ShowsRefusals,
    Tool,
    ToolContext,
    ToolUse,
    is_cancelled,
)
from codex_py.protocol.events import (
    CallDenied,
    Event,
    EventSink,
    ItemCompleted,
    ItemStarted,
    ItemUpdated,
)
from codex_py.protocol.messages import input_text
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import (
    AGENTS_NAMESPACE,
    MCP_PREFIX,
    CustomPayload,
    FunctionPayload,
    LocalShellPayload,
    ToolCall,
    ToolOutput,
    ToolPayload,
    called_tool,
    coded_text,
)
from codex_py.tools.base import invalid_arguments
from codex_py.tools.truncate import truncate_output

_LOCAL_SHELL = "local_shell"
_BUG = "UnknownError"
"""The error code of a call whose tool raised an unexpected exception."""
_MAX_CONCURRENT = 64
"""Limit on calls that run at once. A response may hold thousands, and each can start a process."""


class ToolRouter:
    """Maps calls to tools. One router serves a session; its queue orders the calls of all turns."""

    def __init__(
        self,
        find_tool: Callable[[str], Tool[Any] | None],
        wrap: Callable[[Dispatch], Dispatch] = lambda dispatch: dispatch,
    ) -> None:
        """
        Args:
            find_tool: finds a tool by its flat name; None if no tool has it now. Tools of MCP
                servers come and go.
            wrap: wraps each call once it leaves the queue, see `Extension.wrap_dispatch`.
        """
        self._find_tool = find_tool
        self._run = wrap(_run)
        self._queue = CallQueue()

    def build_tool_call(self, item: items.ResponseItem) -> ToolCall | None:
        """The call that an item asks for; None for an item that is not a call."""
        match item:
            case items.FunctionCall():
                name = called_tool(item.namespace, item.name)
                return ToolCall(name, item.call_id, FunctionPayload(item.arguments))
            case items.CustomToolCall():
                name = called_tool(item.namespace, item.name)
                return ToolCall(name, item.call_id, CustomPayload(item.input))
            case items.LocalShellCall():
                action = item.action
                payload = LocalShellPayload(
                    tuple(action.command), action.working_directory, action.timeout_ms
                )
                # The oldest servers give the item only an id.
                return ToolCall(_LOCAL_SHELL, item.call_id or item.id or "", payload)
            case _:
                return None

    async def dispatch(
        self, call: ToolCall, context: ToolContext
    ) -> Sequence[Note | items.OutputItem]:
        """Run one call. Returns its notes, then its output.

        The call takes its place in the queue before the first await. Exceptions of the tool become
        the output; `Dispatch` lists the exceptions that end the turn instead. If a call fails
        before its tool has emitted an item, or unexpectedly, an error item is emitted.
        """
        shown = _ShownItems(context.emit)
        context = replace(context, emit=shown)
        limit_tokens = context.output_token_limit
        try:
            output = await self._output(call, context, shown)
            if shown.has_item:
                item = output_item(call, output, limit_tokens=limit_tokens)
            else:
                item = self.answer(call, output, context)
            outputs = [*output.notes, item]
            if output.notes or not isinstance(item.output, str):
                # A foreign tool may return values that JSON does not have. Encode here, where the
                # call can still fail.
                for each in outputs:
                    each.encoded()
            return outputs
        except ApproverFailed:
            raise
        except BaseException as error:  # noqa: BLE001 - a call costs no more than itself
            output = failed_output(error, call, context)
            return [output_item(call, output, limit_tokens=limit_tokens)]

    async def _output(
        self, call: ToolCall, context: ToolContext, shown: "_ShownItems"
    ) -> ToolOutput:
        """Run one call in its turn of the queue. A `ToolError` becomes the output, and a denial is
        also shown."""
        use: ToolUse | None = None
        try:
            tool, params = self._resolve(call)
            async with self._queue.turn(parallel=tool.parallel):
                use = ToolUse(call, tool, params, context)
                output = await self._run(use)
        except ToolError as error:
            output = _failure(error)
        code = output.error_code
        if code in DENIALS:
            if use and not shown.has_item and isinstance(use.tool, ShowsRefusals):
                error = ToolError(output.text, code=code)
                use.tool.show_refusal(use.params, error, context)
            _show_denial(call, output, context)
        return output

    def answer(
        self, call: ToolCall, output: ToolOutput, context: ToolContext
    ) -> items.OutputItem:
        """Make the output of a call that has no thread item yet.

        A failure with a code emits an error item.
        """
        code = output.error_code
        if code is not None:
            _show_failure(call, code, output.text, context)
        return output_item(call, output, limit_tokens=context.output_token_limit)

    def _resolve(self, call: ToolCall) -> tuple[Tool[Any], Any]:
        """The tool of a call and its parsed arguments.

        Raises:
            ToolError: no tool has the name, or the arguments are not those of the tool.
        """
        tool = self._find_tool(call.tool_name)
        if tool is None:
            raise ToolError(_unknown_tool(call), code="UnknownTool")
        try:
            return tool, _parsed(tool, call.payload)
        except (ValueError, RecursionError) as error:
            raise invalid_arguments(error) from error


class CallQueue:
    """A first-come lock with shared and exclusive turns; `_MAX_CONCURRENT` shared ones run at once.

    A shared turn waits for the exclusive ones before it; an exclusive one waits for all before it
    and holds up all after it. A plain readers-writer lock would let later readers overtake a
    waiting writer.
    """

    def __init__(self) -> None:
        self._ahead: list[tuple[asyncio.Event, bool]] = []
        """The turns that have not ended: the event that their end sets, and True if shared."""
        self._free = asyncio.Semaphore(_MAX_CONCURRENT)

    @asynccontextmanager
    async def turn(self, *, parallel: bool) -> AsyncGenerator[None]:
        """Wait for the turn, which lasts as long as the context. The call takes its place in the
        queue before the first await."""
        done = asyncio.Event()
        place = (done, parallel)
        if parallel:
            awaited = [event for event, is_shared in self._ahead if not is_shared]
        else:
            awaited = [event for event, _ in self._ahead]
        self._ahead.append(place)
        try:
            for event in awaited:
                await event.wait()
            async with self._free:
                yield
        finally:
            self._ahead.remove(place)
            done.set()


def output_item(
    call: ToolCall, output: ToolOutput, *, limit_tokens: int
) -> items.OutputItem:
    """The output item of a call, of the type that fits the call, with bounded text."""
    code = output.error_code
    value: Any
    if output.content is not None:
        value = list(output.content)
        if code is not None:
            _mark_content(value, code)
    else:
        # Tools bound their own output. This limit is for tools that do not; it is a little higher,
        # so that no text is cut twice.
        value = truncate_output(output.text, limit_tokens * 6 // 5)
        if code is not None:
            value = coded_text(code, value)
    if isinstance(call.payload, CustomPayload):
        item_type = items.CustomToolCallOutput
    else:
        item_type = items.FunctionCallOutput
    return item_type(call_id=call.call_id, output=value)


def _mark_content(content: list[Any], code: str) -> None:
    """Put an error code before the first text, or into a text of its own before other parts."""
    if content and "text" in content[0]:
        content[0] = input_text(coded_text(code, content[0]["text"]))
    else:
        content.insert(0, input_text(coded_text(code, "")))


def _unknown_tool(call: ToolCall) -> str:
    """The error for the model about a name that no tool has."""
    name = call.tool_name
    if isinstance(call.payload, CustomPayload):
        problem = f"unsupported custom tool call: {name}"
    else:
        problem = f"unsupported call: {name}"
    server, _, tool = name.removeprefix(MCP_PREFIX).partition("__")
    if name.startswith(MCP_PREFIX) and tool:
        return f"{problem} (no connected MCP server {server!r} has a tool {tool!r})"
    return problem


def _parsed(tool: Tool[Any], payload: ToolPayload) -> Any:
    match payload:
        case LocalShellPayload():
            return tool.params.model_validate(asdict(payload))
        case FunctionPayload(text) | CustomPayload(text):
            is_freeform = [*tool.params.__annotations__] == ["input"]
            # Some bridges wrap freeform text in JSON; a model may send the bare text to a function.
            if is_freeform and not text.lstrip().startswith("{"):
                return tool.params.model_validate({"input": text})
            return tool.params.model_validate_json(text.strip() or "{}")


async def _run(use: ToolUse) -> ToolOutput:
    """The innermost `Dispatch`."""
    try:
        output = await use.tool.run(use.params, use.context)
        if not isinstance(cast("object", output), ToolOutput):
            raise TypeError(
                f"the tool returned {type(output).__name__}, not a ToolOutput"
            )
        return output
    except BaseException as error:  # noqa: BLE001 - the tool may be a foreign one
        return failed_output(error, use.call, use.context)


def failed_output(
    error: BaseException, call: ToolCall, context: ToolContext
) -> ToolOutput:
    """The output of a call that raised. Call this while the exception is handled.

    An unexpected exception is shown as an error item, and its traceback goes to the log.

    Raises:
        CodexError: the call raised it, which ends the turn.
        CancelledError: the call was cancelled.
        KeyboardInterrupt: Ctrl-C.
        ApproverFailed: the exception of the approver ends the turn.
    """
    cause = single_error(error)
    if isinstance(cause, ToolError | OSError):
        return _failure(cause)
    if isinstance(
        cause, CodexError | ApproverFailed | KeyboardInterrupt | GeneratorExit
    ):
        raise cause
    if isinstance(cause, asyncio.CancelledError) and is_cancelled():
        raise cause
    context.emit(bug_found(error))
    text = bug_line(cause)
    _show_failure(call, _BUG, text, context)
    return ToolOutput(text, success=False, error_code=_BUG)


def _failure(error: ToolError | OSError) -> ToolOutput:
    if isinstance(error, ToolError):
        code = error.code
    else:
        code = errno.errorcode.get(error.errno or 0, _BUG)
    refusal = error if isinstance(error, CallRefused) else None
    return ToolOutput(text_of(error), success=False, error_code=code, refusal=refusal)


def _show_denial(call: ToolCall, output: ToolOutput, context: ToolContext) -> None:
    refusal = output.refusal
    if refusal is None:
        cause = allow = None
    else:
        cause = refusal.cause
        allow = refusal.allow
    name = call.tool_name.removeprefix(AGENTS_NAMESPACE)
    denial = CallDenied(name, output.text, cause, allow, output.error_code)
    context.emit(denial)


def _show_failure(
    call: ToolCall,
    code: str,
    text: str,
    context: ToolContext,
) -> None:
    item = failed_call(context.next_item_id(), call.tool_name, call.call_id, code, text)
    context.emit(ItemCompleted(item))


class _ShownItems:
    """An `EventSink` that knows whether the call has emitted a thread item."""

    def __init__(self, emit: EventSink) -> None:
        self._emit = emit
        self.has_item = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, ItemStarted | ItemUpdated | ItemCompleted):
            self.has_item = True
        self._emit(event)
