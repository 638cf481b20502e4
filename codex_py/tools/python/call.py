"""Runs calls of Python functions that a library user passes as tools."""

import asyncio
import base64
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

from codex_py.errors import CallRefused, CodexError, ToolError, single_error
from codex_py.images.structure import DamagedImage, image_info
from codex_py.protocol.bugs import bug_found
from codex_py.protocol.calls import PastCall, PastItems
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.image_rule import ImageRule
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
from codex_py.tools.threads import failure, in_thread
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
        """Call the function.

        Raises:
            CodexError: the function raised it, which ends the turn.
            ToolError: the function raised anything else, or the call was refused.
        """
        given = params.given()
        shown = to_jsonable_python(given, fallback=str)
        with mcp_item(_SERVER, self.name, shown, context) as item:
            if self._function.needs_approval:
                await self._approve(shown, context, item.id)
            content = await self._call(self._usable(given), context)
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

    def _usable(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments without null for parameters that do not take None: they have a default."""
        usable: dict[str, Any] = {}
        for name, value in given.items():
            annotation = self._function.parameters[name].annotation
            if value is not None or takes_none(annotation):
                usable[name] = value
        return usable

    async def _approve(
        self, arguments: Mapping[str, Any], context: ToolContext, item_id: str
    ) -> None:
        refused = CallRefused(
            f"the tool {self.name} requires approval, but the approval policy is never",
            code="ApprovalDenied",
            cause="a Python tool needs an approval",
        )
        await approve_call(
            f"{_SERVER}/{self.name}",
            arguments,
            f"Allow the Python function `{self.name}` to run?",
            context,
            # The key differs from the keys of MCP tools: a server may be called python.
            ("function", _SERVER, self.name),
            refused,
            item_id=item_id,
            rejected="user rejected the call",
        )

    async def _call(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> list[dict[str, Any]]:
        """Call the function. Returns the content entries of an MCP result.

        A function that is no coroutine function runs in a thread; so does the conversion of every
        result, which may run an iterator of the user's.
        """
        function = self._function.function
        task = asyncio.current_task()
        try:
            if inspect.iscoroutinefunction(function):
                result: Any = function(**arguments)
            else:
                result = await _content_of(lambda: function(**arguments))
            if inspect.isawaitable(result):
                returned = await result
                result = await _content_of(lambda: returned)
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


async def _content_of(function: Callable[[], Any]) -> Any:
    """Call a function in a thread, and convert its result there; see `_content`.

    Raises whatever the function raises. In place of a `KeyboardInterrupt` or a `GeneratorExit`,
    raises a `ToolError`: the task would take it for Ctrl-C, or for its own end.
    """

    def call() -> Any:
        try:
            return _content(function())
        except (KeyboardInterrupt, GeneratorExit) as error:
            raise failure(error) from error

    return await in_thread(call)


def _content(result: Any) -> Any:
    """Convert a result to content entries of an MCP result. An awaitable is returned unchanged."""
    if inspect.isawaitable(result):
        return result
    value = _without_iterators(result)
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if any(isinstance(part, bytes) for part in parts):
            return [_part(part) for part in parts]
    return [_part(value)]


def _without_iterators(value: Any) -> Any:
    """Copy a value, with a list in place of each iterator and tuple.

    Raises:
        ToolError: an iterator is too long, or endless.
    """
    match value:
        case dict():
            fields = cast("dict[Any, Any]", value)
            return {key: _without_iterators(each) for key, each in fields.items()}
        case list() | tuple():
            return [_without_iterators(each) for each in cast("Sequence[Any]", value)]
        case Iterator():
            return _iterated(cast("Iterator[Any]", value))
        case _:
            return value


def _iterated(values: Iterator[Any]) -> list[Any]:
    result: list[Any] = []
    bytes_left = _MAX_ITERATED_BYTES
    for value in values:
        bytes_left -= 64
        if isinstance(value, str | bytes):
            bytes_left -= len(value)
        if bytes_left < 0:
            limit_mb = _MAX_ITERATED_BYTES >> 20
            text = f"it returned an iterator of more than {limit_mb} MB"
            raise ToolError(text, code="ToolFailed")
        result.append(_without_iterators(value))
    return result


def _part(value: Any) -> dict[str, Any]:
    """The content entry of an MCP result for a value: an image for bytes, else text."""
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
