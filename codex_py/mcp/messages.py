"""Repairs messages that break the protocol, as far as possible."""

import math
import re
from typing import Any, Final, cast

from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCResponse

from codex_py.protocol.messages import decode_json

_SHOWN_CHARS: Final = 200
_ID = re.compile(rb'\s*\{[^{}\[\]]*"id"\s*:\s*(\d{1,18})\s*[,}]')
"""The id of an answer that cannot be parsed, if it stands before the result."""


def salvaged_answer(line: bytes) -> JSONRPCResponse | JSONRPCError | None:
    """An answer that the SDK cannot read: with text that is not Unicode, or without a valid result.

    Without it, the request would wait for its whole time limit. None if the line is not an answer.
    """
    try:
        message: Any = decode_json(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        # A line that was cut off needs no answer: the connection has ended.
        found = _ID.match(line) if line.endswith(b"\n") and b'"jsonrpc"' in line else None
        return None if found is None else _refused(int(found[1]), line)
    if not isinstance(message, dict) or "method" in message:
        return None
    answer = cast("dict[str, Any]", message)
    number = answer.get("id")
    if not isinstance(number, int | str) or not answer.keys() & {"result", "error"}:
        return None
    result = answer.get("result")
    if not isinstance(result, dict):
        return _refused(number, line)
    return JSONRPCResponse(jsonrpc="2.0", id=number, result=cast("dict[str, Any]", result))


def finite(value: Any) -> Any:
    """The same value with None for `NaN` and `Infinity`, which JSON does not have."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case list():
            return [finite(part) for part in cast("list[Any]", value)]
        case dict():
            return {key: finite(part) for key, part in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _refused(number: int | str, line: bytes) -> JSONRPCError:
    shown = line[: 4 * _SHOWN_CHARS].decode(errors="replace").strip()[:_SHOWN_CHARS]
    error = ErrorData(
        code=INTERNAL_ERROR, message=f"the server's answer is no valid one: {shown!r}"
    )
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)
