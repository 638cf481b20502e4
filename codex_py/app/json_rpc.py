"""JSON-RPC with one client, one message a line, for the servers for programs and for editors.

Source: the JSON-RPC 2.0 specification. Codex's app server leaves the member `jsonrpc` out.
"""

import asyncio
import re
import sys
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import count
from typing import Any, Final, Protocol, TypeAlias, cast

from codex_py.protocol.json_fields import as_object
from codex_py.protocol.messages import decode_json, encode_json
from codex_py.streams.messages import MAX_MESSAGE_BYTES, LongLine, read_line, skip_line

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
OVERLOADED: Final = -32001

_ID_VALUE: Final = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,100}")'
_HEAD_ID: Final = re.compile(rb"\s*\{[^{}\[\]]*" + _ID_VALUE + rb"\s*[,}]")
"""The id of a message that is too long, if the id stands before the params."""
_TAIL_ID: Final = re.compile(rb",\s*" + _ID_VALUE + rb"\s*\}\s*\Z")
"""The id of such a message, if the id is its last member."""
_IS_ANSWER: Final = re.compile(rb'\s*\{[^{}\[\]]*"(?:result|error)"\s*:')
_HEAD_BYTES: Final = 200
"""The part of such a message in which its id is looked for, at the start and at the end."""
_MAX_OPEN_REQUESTS: Final = 1_000
"""The number of open requests of a client. Each takes memory until it is answered."""
_LIVE_UNREAD_BYTES: Final = 4 * 1024 * 1024
_MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024


RequestId: TypeAlias = int | str | None


class RpcError(Exception):
    """The error of a failed request, whether ours or the client's."""

    def __init__(
        self,
        code: int,
        message: str,
        data: Any = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Service(Protocol):
    """Answers the messages of a client."""

    async def requested(self, method: str, params: Any, /) -> Any:
        """Answer a request.

        Any error besides an `RpcError` is a bug: the client is told so, and standard error gets the
        traceback. The request is cancelled when the client leaves.
        """
        ...

    def notified(self, method: str, params: Any, /) -> None:
        """Handle a notification at once, in order with the requests."""
        ...

    async def aclose(self) -> None:
        """Called when the client has left."""
        ...


class JsonRpc:
    """One end of a connection.

    Args:
        envelope: members of every message, such as `{"jsonrpc": "2.0"}`.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        envelope: dict[str, Any],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._envelope = envelope
        self._ids = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        """The answers of the client that are waited for, by the ids of our requests."""
        self._working: set[asyncio.Task[None]] = set()
        """The tasks that answer requests of the client."""

    async def serve(self, service: Service) -> None:
        """Handle messages until the client leaves.

        Then cancel every open request and wait for its end. The reader does not wait for answers:
        handlers begin in the order of the messages, and run side by side.
        """
        try:
            line = await self._line()
            while line:
                if line.strip():
                    self._take(line, service)
                    # Reading a line that has already arrived does not suspend: let the handler
                    # begin before the next message.
                    await asyncio.sleep(0)
                line = await self._line()
        except ConnectionError:
            pass
        finally:
            for task in self._working:
                task.cancel()
            for future in self._asked.values():
                if not future.done():
                    future.set_exception(RpcError(INTERNAL_ERROR, "the client left"))
            if self._working:
                await asyncio.wait(self._working)

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        ended: Callable[[int, bool], None] = lambda _, __: None,
    ) -> Any:
        """Ask the client. An answer that comes after a cancellation is ignored.

        Args:
            ended: called with the request's id: with True once it has an answer, with False after a
                cancellation.

        Raises:
            RpcError: the client answers with an error, or leaves.
        """
        number = next(self._ids)
        future = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        self._send({"method": method, "id": number, "params": params})
        try:
            return await future
        finally:
            del self._asked[number]
            ended(number, not future.cancelled())

    def notify(
        self,
        method: str,
        params: dict[str, Any],
        *,
        is_live: bool = False,
    ) -> None:
        """Send a notification, in order with everything else.

        Args:
            is_live: drop the notification if the client has more than 4 MB unread. For other
                notifications, a client with more than 64 MB unread counts as gone.
        """
        if is_live and self._unread > _LIVE_UNREAD_BYTES:
            return
        self._send({"method": method, "params": params})

    async def drained(self) -> None:
        """Wait until the client has read nearly everything.

        Call it when sending much at once, such as a long conversation.

        Raises:
            RpcError: the client left.
        """
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise RpcError(INTERNAL_ERROR, "the client left") from error

    @property
    def _unread(self) -> int:
        """The number of bytes that the client has not read yet."""
        return self._writer.transport.get_write_buffer_size()

    async def _line(self) -> bytes:
        """The next line with its end; empty if the client has left.

        A line that is too long is refused, and becomes a blank one.
        """
        try:
            return await read_line(self._reader)
        except LongLine as long:
            rest = await skip_line(self._reader)
            self._refuse_long(long.start, rest)
            return b"\n"

    def _refuse_long(self, start: bytes, rest: bytes) -> None:
        """Refuse a request that is too long. An answer that is too long becomes an error.

        Args:
            start: the part of the line that was read first.
            rest: the end of the line.
        """
        text = f"a message of more than {MAX_MESSAGE_BYTES >> 20} MB was skipped"
        head = start[:_HEAD_BYTES]
        found = _HEAD_ID.match(head)
        if found is None:
            end = start[-_HEAD_BYTES:] + rest
            found = _TAIL_ID.search(end[-_HEAD_BYTES:])
        number: RequestId = None
        if found is not None:
            # Zeros before a number, or bytes that are no UTF-8: then there is no id.
            with suppress(ValueError):
                number = decode_json(found[1])
        if _IS_ANSWER.match(head):
            failure = {"code": INVALID_REQUEST, "message": text}
            self._take_answer(number, {"error": failure})
        else:
            self._refuse(number, INVALID_REQUEST, text)

    def _take(self, line: bytes, service: Service) -> None:
        """Take a message: begin to answer a request, or handle anything else."""
        try:
            message: Any = decode_json(line.decode())
        except (ValueError, RecursionError):
            # Half a line at the end means that the client left while it wrote.
            if line.endswith(b"\n"):
                self._refuse(None, PARSE_ERROR, "this is no JSON")
            return
        if not isinstance(message, dict):
            self._refuse(None, INVALID_REQUEST, "a message is an object")
            return
        fields = cast("dict[str, Any]", message)
        number = fields.get("id")
        method = fields.get("method")
        has_answer = "id" in fields and fields.keys() & {"result", "error"}
        if method is None and has_answer:
            self._take_answer(number, fields)
        elif not isinstance(method, str) or not _is_id(number):
            self._refuse(None, INVALID_REQUEST, "a request has a method, and an id")
        elif "id" not in fields:
            service.notified(method, fields.get("params"))
        elif len(self._working) >= _MAX_OPEN_REQUESTS:
            text = f"more than {_MAX_OPEN_REQUESTS} requests at once"
            self._refuse(number, OVERLOADED, text)
        else:
            answer = service.requested(method, fields.get("params"))
            work = self._answer(number, answer)
            task = asyncio.create_task(work)
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def _answer(
        self, number: RequestId, answer: Coroutine[Any, Any, Any]
    ) -> None:
        """Wait for the answer to a request, and send it."""
        try:
            result = await answer
        except RpcError as error:
            self._refuse(number, error.code, str(error), error.data)
        # A bug costs this request, and not the connection.
        except Exception as error:  # noqa: BLE001
            traceback.print_exc(file=sys.stderr)
            self._refuse(number, INTERNAL_ERROR, f"internal error: {error!r}")
        else:
            self._send({"id": number, "result": result})

    def _take_answer(
        self,
        number: Any,
        fields: dict[str, Any],
    ) -> None:
        """Pass the client's answer on to the request that waits for it, if one does."""
        future = None
        # For Python, `false` is a 0.
        if isinstance(number, int) and not isinstance(number, bool):
            future = self._asked.get(number)
        if future is None or future.done():
            return
        error: Any = fields.get("error")
        if error is None:
            future.set_result(fields.get("result"))
        else:
            future.set_exception(_client_error(error))

    def _refuse(
        self,
        number: RequestId,
        code: int,
        text: str,
        data: Any = None,
    ) -> None:
        error: dict[str, Any] = {"code": code, "message": text}
        if data is not None:
            error["data"] = data
        self._send({"id": number, "error": error})

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer.is_closing():
            return
        # Many readers refuse the whole message because of a lone surrogate.
        self._writer.write(encode_json(self._envelope | message) + b"\n")
        if self._unread > _MAX_UNREAD_BYTES:
            self._writer.transport.abort()


def _client_error(error: Any) -> RpcError:
    """The error in a client's answer, which may lack the members of the specification."""
    fields = as_object(error)
    code = fields.get("code")
    if not isinstance(code, int):
        code = INTERNAL_ERROR
    return RpcError(code, str(fields.get("message", error)))


def _is_id(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | str | None)
