"""Reads what a model server says about an error: the body, wherever it hides, and the delay it asks for."""

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object, json_or

MAX_MESSAGE_CHARACTERS = 2_000

# Patterns are compiled when they are first used: most runs see no error at all.
_DELAY = r"(?:try again|retry)(?: again)? (?:in|after) ((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12}[ ,]{0,2})+)"
_DELAY_PART = r"(\d+(?:\.\d+)?) ?([a-z]+)"
_UNIT_S = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1,
    "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
}  # fmt: skip


@frozen
class ServerError:
    message: str
    """One line, at most `MAX_MESSAGE_CHARACTERS`, safe to print; empty where the server gave none."""
    code: str | None = None
    """`error.code` where it is a name; servers also put the HTTP status there."""
    type: str | None = None
    status: int | None = None
    """`error.code` or `error.status` where it is an HTTP status."""
    resets_at: float | None = None
    """When a usage limit ends, seconds since 1970."""


def server_error(value: object) -> ServerError:
    """What a decoded error object says.

    Takes the object with an `error` in it, or the error itself; also a list of one (Gemini), an error
    that is a string (Ollama), and `{"message": …}` and `{"detail": …}` with nothing around it.
    """
    inner = _fields(value).get("error")
    if isinstance(inner, str | dict) and inner:
        value = cast("object", inner)
    if isinstance(value, str):
        return ServerError(plain_line(value))
    fields = _fields(value)
    code, kind = fields.get("code"), fields.get("type")
    message = fields.get("message") or fields.get("detail") or ""
    resets_at = fields.get("resets_at")
    return ServerError(
        plain_line(message if isinstance(message, str) else json.dumps(message)),
        code=code if isinstance(code, str) and code and not code.isdigit() else None,
        type=kind if isinstance(kind, str) and kind not in {"", "error"} else None,
        status=_status(code) or _status(fields.get("status")),
        resets_at=resets_at if isinstance(resets_at, int | float) else None,
    )


def body_error(body: bytes) -> ServerError:
    """What the body of an HTTP error says: JSON, server-sent events, a web page or plain text."""
    text = body.decode(errors="replace")
    stripped = text.lstrip("\ufeff \t\r\n")
    events = [line[5:] for line in stripped.splitlines() if line.startswith("data:")]
    for candidate in [stripped] if stripped[:1] in {"{", "["} else events:
        error = server_error(json_or(candidate, None))
        if error.message or error.code or error.type:
            return error
    if stripped.startswith("<"):
        title = re.search(r"(?i)<title[^>]{0,200}>([^<]{1,500})", stripped[:50_000])
        stripped = title[1] if title else "the answer is a web page"
    return ServerError(plain_line(stripped))


def retry_after_s(headers: Mapping[str, str], message: str = "") -> float | None:
    """How long the server asks us to wait, seconds; None where it does not say.

    Headers come before wording. Their names are looked up in lower case, with the prefix that LiteLLM
    puts before those of the server behind it too.
    """
    for prefix in ("", "llm_provider-"):
        delay_ms = _number(headers.get(f"{prefix}retry-after-ms"))
        if delay_ms is not None:
            return delay_ms / 1000
        value = headers.get(f"{prefix}retry-after")
        delay_s = _number(value)
        if delay_s is None and (due := _http_date(value)) is not None:
            # The server's own clock, where it tells it: ours may be off.
            now = _http_date(headers.get("date")) or time.time()
            delay_s = max(0.0, due - now)
        if delay_s is not None:
            return delay_s
    return _delay_in(message)


def plain_line(text: str) -> str:
    """Text of unknown origin as one bounded line without control characters."""
    # Cut twice: the first cut keeps the work small, the second comes after white space is folded.
    words = " ".join(text[: 4 * MAX_MESSAGE_CHARACTERS].split())
    line = "".join(filter(str.isprintable, words))
    if len(line) > MAX_MESSAGE_CHARACTERS:
        return line[: MAX_MESSAGE_CHARACTERS - 1] + "…"
    return line


def _delay_in(message: str) -> float | None:
    """`try again in 1.5s`, `28ms`, `1m30s`, `35 seconds`, `2 minutes`."""
    found = re.search(_DELAY, message[:MAX_MESSAGE_CHARACTERS].lower())
    if found is None:
        return None
    total = 0.0
    for number, unit in re.findall(_DELAY_PART, found[1]):
        scale = _UNIT_S.get(unit) or _UNIT_S.get(unit.removesuffix("s"))
        if scale is None:
            break
        total += float(number) * scale
    return total or None


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, list) and value:
        return as_object(cast("list[object]", value)[0])
    return as_object(cast("object", value))


def _status(value: object) -> int | None:
    if isinstance(value, str) and len(value) == 3 and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _number(value: str | None) -> float | None:
    """A delay of at least 0, or None."""
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _http_date(value: str | None) -> float | None:
    """Seconds since 1970."""
    try:
        return parsedate_to_datetime(value).timestamp() if value else None
    except (ValueError, OverflowError):
        return None
