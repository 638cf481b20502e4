"""Records the requests to a model's service and its answers, and replays them without the service.

A tape is JSON lines: `{"tape": 1}`, then one object for each exchange:

    {"request": {"method", "path", "body"}, "response": {"status", "headers", "body": [text, …]},
     "error": text}

`body` of the request is its JSON; `body` of the response has the pieces in which it came. `error`
is set if the exchange broke off; without a `response` it broke off before one. A tape contains no
keys: it has no headers and no query of a request, and of a response only the headers that are
needed to read it.
"""

import asyncio
import codecs
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import httpx

from codex_py.api.files import open_emptied, read_whole
from codex_py.api.models import ModelError
from codex_py.api.options import OptionError
from codex_py.extensions.tape.match import (
    first_difference,
    moved,
    normalised,
    working_directory,
)

_VERSION: Final = 1
_MAX_BYTES: Final = 1 << 30
_PAUSED_S: Final = 3.6
"""The time in which a whole tape is replayed for somebody who watches, without its commands."""
_LONGEST_PAUSE_S: Final = 0.1
_SHORTEST_WAIT_S: Final = 0.01
"""Shorter pauses are waited for together, because each wait takes time of its own."""
_PAUSES_BEFORE_ANSWER: Final = 6
_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms")


class TapeMismatch(ModelError):
    """A request differs from the recorded one. It is never retried."""

    code = "tape"
    quotes_request = True


class RecordingTransport(httpx.AsyncBaseTransport):
    """Passes everything on unchanged, and writes each exchange to the tape when it ends.

    The file is replaced, and readable only by its owner, because it contains the whole
    conversation. A failure to write does not disturb the answer: the next request, or `aclose`,
    raises it.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, path: Path) -> None:
        """Open the tape.

        Raises an `OptionError` if it cannot be written, is a link, or is another user's.
        """
        self._inner = inner
        self._path = path
        self._failure: OSError | None = None
        try:
            self._file = os.fdopen(open_emptied(path), "w", encoding="utf-8")
        except OSError as error:
            raise OptionError(self._not_written(error)) from error
        self._write({"tape": _VERSION})
        if self._failure is not None:
            self._close_file()
            raise OptionError(self._not_written(self._failure)) from self._failure

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises a `ModelError` if the exchange before it could not be written."""
        self._raise_failure()
        exchange: dict[str, Any] = {"request": await _request_data(request)}
        try:
            response = await self._inner.handle_async_request(request)
        except httpx.TransportError as error:
            self._write({**exchange, "error": _words(error)})
            raise
        exchange["response"] = {
            "status": response.status_code,
            "headers": _kept_headers(response),
            "body": [],
        }
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_RecordedStream(response, exchange, self._write),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the tape. Raises a `ModelError` if the last exchange could not be written."""
        await self._inner.aclose()
        self._close_file()
        self._raise_failure()

    def _write(self, data: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(data, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self._failure = error

    def _close_file(self) -> None:
        # Closing writes the buffered rest once more, which fails again.
        with suppress(OSError):
            self._file.close()

    def _raise_failure(self) -> None:
        """Raise a failure to write, once."""
        failure = self._failure
        self._failure = None
        if failure is not None:
            raise ModelError(self._not_written(failure), code="tape") from failure

    def _not_written(self, error: OSError) -> str:
        return f"{self._path}: the tape cannot be written: {error.strerror}"


@dataclass(eq=False)
class _RecordedStream(httpx.AsyncByteStream):
    """The body of an answer, which passes on unchanged and is written when it is closed."""

    response: httpx.Response
    exchange: dict[str, Any]
    write: Callable[[dict[str, Any]], None]
    error: str | None = "closed before its end"
    """The reason why the exchange broke off; None once the body has ended."""
    is_written: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: list[str] = self.exchange["response"]["body"]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            async for piece in cast("httpx.AsyncByteStream", self.response.stream):
                text = decoder.decode(piece)
                if text:
                    pieces.append(text)
                yield piece
        except httpx.TransportError as error:
            self.error = _words(error)
            raise
        text = decoder.decode(b"", final=True)
        if text:
            pieces.append(text)
        self.error = None

    async def aclose(self) -> None:
        if not self.is_written:
            self.is_written = True
            exchange = dict(self.exchange)
            if self.error is not None:
                exchange["error"] = self.error
            self.write(exchange)
        await self.response.aclose()


class ReplayTransport(httpx.AsyncBaseTransport):
    """Answers from a tape, in its order, and refuses a request that differs from the recorded one.

    The comparison ignores what changes with time, place and machine. In the recorded answer, the
    working directory of the recording is replaced by the request's.
    """

    is_recording = True

    def __init__(self, path: Path, *, paced: bool = False) -> None:
        """Read the tape.

        Raises an `OptionError`, which names the file and the line, if it is not a tape.

        Args:
            paced: pause before each answer and each delta, for somebody who watches.
        """
        self._path = path
        self._exchanges = _read(path)
        self._played = 0
        self._pause_s = 0.0
        if paced:
            self._pause_s = _pause_s(self._exchanges)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Replay an answer.

        Raises a `TapeMismatch` if another request, or no more, was recorded here.
        """
        number = self._played + 1
        if number > len(self._exchanges):
            raise TapeMismatch(
                f"{self._path}: the tape ends after {len(self._exchanges)} requests, and this is"
                " one more"
            )
        exchange = self._exchanges[self._played]
        recorded = exchange["request"]
        actual = await _request_data(request)
        difference = first_difference(normalised(recorded), normalised(actual))
        if difference is not None:
            place_and_values = difference.removeprefix("body.")
            raise TapeMismatch(
                f"{self._path}: request {number} is not the recorded one: {place_and_values}"
            )
        self._played = number
        broken: str | None = exchange.get("error")
        response = exchange.get("response")
        if response is None:
            raise httpx.ConnectError(broken or "no response was recorded")
        was_in = working_directory(recorded)
        is_in = working_directory(actual)
        pieces = [moved(piece, was_in, is_in) for piece in response["body"]]
        return httpx.Response(
            response["status"],
            headers=_encoded(response["headers"]),
            stream=_ReplayedStream(pieces, broken, self._pause_s),
        )


@dataclass(eq=False)
class _ReplayedStream(httpx.AsyncByteStream):
    """The body of a recorded answer."""

    pieces: list[str]
    error: str | None
    """The reason why the exchange broke off; None if it did not."""
    pause_s: float = 0.0
    """The pause before a delta, in seconds; 0 for the pieces as they were recorded."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = [(0, piece) for piece in self.pieces]
        if self.pause_s:
            pieces = _with_pauses(self.pieces)
        due_s = 0.0
        for pauses, piece in pieces:
            due_s += pauses * self.pause_s
            # Without a pause, let other tasks run between two pieces, as on a network.
            wait_s = 0.0
            if due_s >= _SHORTEST_WAIT_S:
                wait_s, due_s = due_s, 0.0
            await asyncio.sleep(wait_s)
            yield piece.encode("utf-8", "replace")
        if self.error is not None:
            raise httpx.ReadError(self.error)


def _pause_s(exchanges: Sequence[dict[str, Any]]) -> float:
    """The pause before a delta, in seconds: the shorter, the longer the tape is."""
    pauses = 0
    for exchange in exchanges:
        response = exchange.get("response", {})
        answer = _with_pauses(response.get("body", []))
        pauses += sum(count for count, _ in answer)
    return min(_LONGEST_PAUSE_S, _PAUSED_S / max(pauses, 1))


def _with_pauses(pieces: Sequence[str]) -> list[tuple[int, str]]:
    """Cut the text of an answer behind its events, and count the pauses before each of them."""
    events = [event for event in re.split(r"(?<=\n\n)", "".join(pieces)) if event]
    answer = [(event.count('"delta"'), event) for event in events]
    if answer:
        pauses, first = answer[0]
        answer[0] = (pauses + _PAUSES_BEFORE_ANSWER, first)
    return answer


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """The headers in bytes, as they came: httpx decodes what is not ASCII, but does not encode it."""
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _words(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__


def _kept_headers(response: httpx.Response) -> dict[str, str]:
    """The headers that are needed to read the answer."""
    headers = response.headers
    kept = [name for name in headers if name in _KEPT_HEADERS or name.startswith("x-")]
    return {name: headers[name] for name in kept}


async def _request_data(request: httpx.Request) -> dict[str, Any]:
    """The part of a request that a tape keeps: method, path and body."""
    content = await request.aread()
    body: Any = None
    try:
        if content:
            body = json.loads(content)
    except ValueError:
        body = content.decode("utf-8", "replace")
    return {"method": request.method, "path": request.url.path, "body": body}


def _read(path: Path) -> list[dict[str, Any]]:
    """The exchanges of a tape. Raises an `OptionError` if the file is not a tape."""
    exchanges: list[dict[str, Any]] = []
    for number, line in enumerate(_lines(path), 1):
        if number > 1 and not line.strip():
            continue
        try:
            data: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise OptionError(
                f"{path}, line {number}: not valid JSON: {error}"
            ) from error
        if number == 1:
            if not _is_head(data):
                raise OptionError(
                    f'{path}, line 1: no tape begins like this; {{"tape": 1}} does'
                )
        elif not _is_exchange(data):
            raise OptionError(f"{path}, line {number}: not a recorded exchange")
        else:
            exchanges.append(data)
    return exchanges


def _lines(path: Path) -> list[str]:
    try:
        # Do not read from a pipe, which may have no other end.
        content = read_whole(path.absolute(), _MAX_BYTES)
        return content.decode("utf-8").split("\n")
    except OSError as error:
        raise OptionError(
            f"{path}: the tape cannot be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: the tape is not UTF-8") from error


def _is_head(data: Any) -> bool:
    match data:
        case {"tape": int(version)} if not isinstance(version, bool):
            return version == _VERSION
        case _:
            return False


def _is_exchange(data: Any) -> bool:
    match data:
        case {"request": {"method": str(), "path": str(), "body": _}}:
            pass
        case _:
            return False
    if not isinstance(data.get("error", ""), str):
        return False
    if "response" in data:
        return _is_response(data["response"])
    return "error" in data


def _is_response(data: Any) -> bool:
    match data:
        case {"status": int(status), "headers": dict(), "body": list()}:
            pieces: list[object] = data["body"]
            are_texts = all(isinstance(piece, str) for piece in pieces)
            is_number = not isinstance(status, bool)
            return is_number and are_texts and _are_headers(data["headers"])
        case _:
            return False


def _are_headers(headers: dict[str, object]) -> bool:
    for name, value in headers.items():
        if not name.isascii() or not isinstance(value, str):
            return False
        # JSON can spell half a character.
        if any("\ud800" <= character <= "\udfff" for character in value):
            return False
    return True
