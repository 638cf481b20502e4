"""Runs calls of Python functions that a library user passes as tools."""

import asyncio
import base64
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

from codex_py.errors import CallRefused, CodexError, ToolError, single_error
from codex_py.images.rule import ImageRule
from codex_py.images.structure import DamagedImage, image_info
from codex_py.protocol.bugs import bug_found
from codex_py.protocol.calls import PastCall, PastItems
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.mcp.approval import approve_call
from codex_py.tools.mcp.item import mcp_item, replay_server_call
from codex_py.tools.mcp.output import content_parts
from codex_py.tools.python.arguments import (
    FunctionArguments,
    arguments_model,
    takes_none,
)
from codex_py.tools.python.function import PythonFunction
from codex_py.tools.python.threads import failure, in_thread
from codex_py.tools.truncate import truncate_output

_SERVER: Final = "python"
"""The server that thread items name."""
_MAX_ITERATED_BYTES: Final = 64 << 20
"""Limit on the values of an iterator; each value counts 64 bytes extra."""


class PythonTool:
    """A Python function as a tool of one session."""

    def __init__(
        self, function: PythonFunction[..., Any], *, image_rule: ImageRule
    ) -> None:
        self.name = function.spec.name
        self.parallel = function.parallel
        self.params: type[Any] = arguments_model(
            self.name, function.parameters.values(), lenient=True
        )
        self._function = function
        self._image_rule = image_rule

    async def run(self, params: FunctionArguments, context: ToolContext) -> ToolOutput:
        """Call the function. Its `CodexError` ends the turn; any other exception becomes a
        `ToolError`."""
        given = params.given()
        shown = to_jsonable_python(given, fallback=str)
        with mcp_item(_SERVER, self.name, shown, context) as item:
            if self._function.needs_approval:
                await self._approve(shown, context, item.id)
            parameters = self._function.parameters
            content = await self._call(
                {
                    name: value
                    for name, value in given.items()
                    if value is not None or takes_none(parameters[name].annotation)
                },
                context,
            )
            item.end({"content": content})
        if all(part["type"] == "text" for part in content):
            text = "\n".join(part["text"] for part in content)
            return ToolOutput(truncate_output(text, context.output_token_limit))
        parts = await asyncio.to_thread(
            content_parts, content, context.output_token_limit, self._image_rule
        )
        return ToolOutput("", content=tuple(parts))

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        if call.has_run:
            return replay_server_call(_SERVER, self.name, call, past)
        return None

    async def _approve(
        self, arguments: Mapping[str, Any], context: ToolContext, item_id: str
    ) -> None:
        text = (
            f"the tool {self.name} requires approval, but the approval policy is never"
        )
        await approve_call(
            f"{_SERVER}/{self.name}",
            arguments,
            f"Allow the Python function `{self.name}` to run?",
            context,
            # The key differs from the keys of MCP tools: a server may be called python.
            ("function", _SERVER, self.name),
            CallRefused(
                text, code="ApprovalDenied", cause="a Python tool needs an approval"
            ),
            item_id=item_id,
            rejected="user rejected the call",
        )

    async def _call(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> list[dict[str, Any]]:
        """Call the function. Returns the content entries of an MCP result."""
        function = self._function.function
        task = asyncio.current_task()
        try:
            if inspect.iscoroutinefunction(function):
                result: Any = function(**arguments)
            else:
                result = await in_thread(lambda: _content(function(**arguments)))
            if inspect.isawaitable(result):
                returned = await result
                result = await in_thread(lambda: _content(returned))
            return result
        except (CodexError, ToolError):
            raise
        except asyncio.CancelledError as error:
            if task is not None and task.cancelling():
                raise
            # The function itself was cancelled, not the call.
            raise failure(error) from error
        except (Exception, SystemExit, BaseExceptionGroup) as error:
            cause = single_error(error)
            if isinstance(cause, CodexError | ToolError):
                raise cause from error
            context.emit(bug_found(error))
            raise failure(cause) from error


def _content(result: Any) -> Any:
    """Convert a result to content entries of an MCP result. An awaitable is returned unchanged."""
    if inspect.isawaitable(result):
        return result
    result = _without_iterators(result)
    is_list = isinstance(result, list | tuple)
    parts = cast("Sequence[Any]", result) if is_list else ()
    if any(isinstance(part, bytes) for part in parts):
        return [_part(part) for part in parts]
    return [_part(result)]


def _without_iterators(value: Any) -> Any:
    """The value with a list in place of each iterator. Raises a `ToolError` for one that is too
    long or endless."""
    match value:
        case dict():
            fields = cast("dict[Any, Any]", value)
            return {key: _without_iterators(each) for key, each in fields.items()}
        case list() | tuple():
            return [_without_iterators(each) for each in cast("Sequence[Any]", value)]
        case Iterator():
            values: list[Any] = []
            room = _MAX_ITERATED_BYTES
            for each in cast("Iterator[Any]", value):
                room -= 64
                if isinstance(each, str | bytes):
                    room -= len(each)
                if room < 0:
                    text = f"it returned an iterator of more than {_MAX_ITERATED_BYTES >> 20} MB"
                    raise ToolError(text, code="ToolFailed")
                values.append(_without_iterators(each))
            return values
        case _:
            return value


def _part(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"type": "text", "text": value}
        case bytes():
            try:
                kind = image_info(value).kind
            except DamagedImage as error:
                text = f"it returned bytes that are no image for a model: {error}"
                raise ToolError(text, code="ToolFailed") from error
            data = base64.b64encode(value).decode("ascii")
            return {"type": "image", "data": data, "mimeType": f"image/{kind}"}
        case _:
            plain = to_jsonable_python(value, fallback=str)
            return {"type": "text", "text": encode_json(plain).decode()}
