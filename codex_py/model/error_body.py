"""Reads a model server's error: its message, wherever the body has it, and the delay that the
server asks for."""

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, as_object, json_or, text_field

MAX_MESSAGE_CHARACTERS = 2_000
_MAX_WORDS_CHARACTERS = 10_000
_MAX_DEPTH = 8
_MESSAGES = (
    "message",
    "detail",
    "msg",
    "Message",
    "errorMessage",
    "error_msg",
    "error_message",
    "status_msg",
)
"""The names of fields that can have the message, the best first."""
_ECHOES = frozenset({"input", "request_id", "requestid", "documentation_url"})
"""Fields that quote the request, or explain nothing."""
_STATUSES = ("code", "status", "status_code", "statusCode", "http_status")
"""The names of fields that can have an HTTP status."""

# Patterns are compiled when they are first used: most runs see no error at all.
_DELAY = (
    r"(?:try again|retry)(?: again)? (?:in|after)"
    r" ((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12}[ ,]{0,2})+)"
)
_DELAY_PART = r"(\d+(?:\.\d+)?) ?([a-z]+)"
_DATE = r"(?i)[a-z]{3,9}, ?\d{1,2}[ -][a-z]{3}[ -]\d{2,4} [\d:]{5,8}(?: (?:GMT|UTC|[+-]\d{4}))?"
_AROUND_NUMBERS = " \t;\"'"
_UNIT_S = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1,
    "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
}  # fmt: skip


@frozen
class ServerError:
    message: str
    """One line of at most `MAX_MESSAGE_CHARACTERS`, safe to print; empty if there is no message."""
    code: str | None = None
    """`error.code` if it is a name; servers also put the HTTP status there."""
    type: str | None = None
    status: int | None = None
    """The HTTP status that the error, or the object around it, has in a field."""
    resets_at: float | None = None
    """The end of a usage limit in seconds since 1970."""
    words: str = ""
    """All texts in the error, at any depth, also from services behind the server; bounded."""


def server_error(value: object) -> ServerError:
    """Read a decoded error object.

    Takes an object with an `error` in it, or the error itself; also a list of one error (Gemini),
    an error that is a string (Ollama), and a bare `{"message": …}` or `{"detail": …}`. A gateway
    such as OpenRouter may put the error of the service behind it into a separate field, as JSON in
    a string.
    """
    words = _words(value)
    around = _fields(value)
    value = _inner_error(around) or value
    if isinstance(value, str):
        status = _first_status(around)
        return ServerError(plain_line(value), status=status, words=words)
    fields = _fields(value)
    error = ServerError(
        plain_line(_message(fields)),
        code=_code(fields),
        type=_type(fields),
        status=_first_status(fields) or _first_status(around),
        resets_at=_resets_at(fields),
        words=words,
    )
    behind = _error_behind(fields)
    if behind is None:
        return error
    return _with_error_behind(error, behind)


def _inner_error(fields: JsonObject) -> object:
    """The error in a field of an object; None if the object itself is the error."""
    error: Any = fields.get("error")
    if isinstance(error, str | dict) and error:
        return cast("object", error)
    detail: Any = fields.get("detail")
    if isinstance(detail, dict):
        return cast("object", detail)
    # MiniMax reports its success in the same field.
    report = as_object(fields.get("base_resp"))
    if report.get("status_code"):
        return report
    return None


def _first_status(fields: JsonObject) -> int | None:
    found = (_status(fields.get(name)) for name in _STATUSES)
    return next((status for status in found if status is not None), None)


def _code(fields: JsonObject) -> str | None:
    code = text_field(fields, "code")
    if not code or code.isdigit():
        return None
    return code


def _type(fields: JsonObject) -> str | None:
    name = text_field(fields, "type")
    # Some servers give this type to every error.
    if not name or name == "error":
        return None
    return name


def _resets_at(fields: JsonObject) -> float | None:
    time_s = fields.get("resets_at")
    if isinstance(time_s, int | float):
        return time_s
    return None


def _message(fields: JsonObject) -> str:
    for name in _MESSAGES:
        message = fields.get(name)
        if message:
            if isinstance(message, str):
                return message
            return json.dumps(message)
    first = _fields(fields.get("errors"))
    if first:
        return _message(first)
    return ""


def _error_behind(fields: JsonObject) -> ServerError | None:
    """Read the error of the service behind a gateway; None if there is none."""
    raw: Any = as_object(fields.get("metadata")).get("raw")
    if isinstance(raw, str):
        decoded: Any = json_or(raw, None)
        if isinstance(decoded, dict | list):
            raw = cast("object", decoded)
        elif re.search(r"\w", raw) is None:
            # The text says nothing.
            return None
    if raw:
        return server_error(raw)
    return None


def _with_error_behind(error: ServerError, behind: ServerError) -> ServerError:
    said = [error.message]
    if behind.message not in error.message:
        said.append(behind.message)
    return replace(
        error,
        message=plain_line(": ".join(filter(None, said))),
        code=error.code or behind.code,
        type=error.type or behind.type,
    )


def _words(value: object) -> str:
    return "\n".join(_texts(value))[:_MAX_WORDS_CHARACTERS]


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts in a JSON value, also in JSON within a string.

    A list of only names and numbers is read as a path.
    """
    if depth > _MAX_DEPTH:
        return
    match value:
        case str():
            before, decoded = _embedded_json(value)
            if before:
                yield before
            if decoded is not None:
                yield from _texts(decoded, depth + 1)
        case dict():
            for name, each in cast("dict[str, object]", value).items():
                if name.lower() not in _ECHOES:
                    yield from _texts(each, depth + 1)
        case list():
            parts = cast("list[object]", value)
            if all(isinstance(part, str | int) for part in parts):
                yield ".".join(map(str, parts))
            else:
                for part in parts:
                    yield from _texts(part, depth + 1)
        case _:
            pass


def body_error(body: bytes) -> ServerError:
    """Read the body of an HTTP error: JSON, server-sent events, a web page or plain text."""
    text = body.decode(errors="replace")
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in {"{", "["}:
        candidates = [stripped]
    else:
        lines = stripped.splitlines()
        data = [line for line in lines if line.startswith("data:")]
        candidates = [line.removeprefix("data:") for line in data]
    for candidate in candidates:
        error = server_error(json_or(candidate, None))
        if error.message or error.code or error.type:
            return error
    if stripped.startswith("<"):
        stripped = page_title(stripped) or "the answer is a web page"
    return ServerError(plain_line(stripped), words=_words(stripped))


def page_title(page: str) -> str:
    """The title of a web page; empty if it has none."""
    found = re.search(r"(?i)<title[^>]{0,200}>([^<]{1,500})", page[:50_000])
    if found is None:
        return ""
    return found[1]


def retry_after_s(headers: Mapping[str, str], message: str = "") -> float | None:
    """Return the delay that the server asks for, in seconds; None if it asks for none.

    Headers count more than the message. Their names are looked up in lower case, also with the
    prefix that LiteLLM gives to the headers of the server behind it. Of several delays, as from two
    proxies, the longest counts.
    """
    for prefix in ("", "llm_provider-"):
        delays_ms = _delays(headers.get(f"{prefix}retry-after-ms"))
        if delays_ms:
            return max(delays_ms) / 1000
        delays_s = _delays_s(headers.get(f"{prefix}retry-after"), headers.get("date"))
        if delays_s:
            return max(delays_s)
    return _delay_in(message)


def _embedded_json(text: str) -> tuple[str, object]:
    """Split a text into the text around its first JSON object or list, and the value of that JSON.

    Returns the whole text and None if there is no JSON in it.
    """
    found = re.search(r"[\[{]\s*[\"{]", text[:_MAX_WORDS_CHARACTERS])
    if found is None:
        return text, None
    try:
        decoded, end = json.JSONDecoder().raw_decode(text, found.start())
    except (ValueError, RecursionError):
        return text, None
    return f"{text[: found.start()]} {text[end:]}".strip(), decoded


def plain_line(text: str) -> str:
    """Make one bounded line without control characters of a text of unknown origin."""
    # Cut twice: the first cut keeps the work small, the second comes after white space is folded.
    words = " ".join(text[: 4 * MAX_MESSAGE_CHARACTERS].split())
    line = "".join(filter(str.isprintable, words))
    if len(line) > MAX_MESSAGE_CHARACTERS:
        return line[: MAX_MESSAGE_CHARACTERS - 1] + "…"
    return line


def _delay_in(message: str) -> float | None:
    """Find the delay in a message, in seconds; None if it has none.

    Examples: `try again in 1.5s`, `28ms`, `1m30s`, `35 seconds`, `2 minutes`.
    """
    found = re.search(_DELAY, message[:MAX_MESSAGE_CHARACTERS].lower())
    if found is None:
        return None
    total = 0.0
    for number, unit in re.findall(_DELAY_PART, found[1]):
        scale = _scale(unit)
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
    if isinstance(value, int) and 400 <= value < 600:
        return value
    return None


def _delays_s(value: str | None, clock: str | None) -> list[float]:
    """Read the delays in a `Retry-After` header: seconds, also with a unit, and dates.

    Args:
        clock: the server's date, because our clock may be wrong.
    """
    value = (value or "")[:MAX_MESSAGE_CHARACTERS]
    delays_s = _delays(re.sub(_DATE, "", value))
    now = _http_date(clock) or time.time()
    for text in re.findall(_DATE, value):
        due = _http_date(text)
        if due is not None:
            delays_s.append(max(0.0, due - now))
    return delays_s


def _delays(value: str | None) -> list[float]:
    """Read the delays in a list of numbers, each at least 0, and leave out anything else."""
    parts = (value or "").split(",")
    delays = [_delay(part.strip(_AROUND_NUMBERS)) for part in parts]
    return [delay for delay in delays if delay is not None]


def _delay(text: str) -> float | None:
    """Read a delay of at least 0; None if it is none. A unit may follow the number."""
    with_unit = re.fullmatch(_DELAY_PART, text.lower())
    if with_unit is not None:
        scale = _scale(with_unit[2])
        if scale is not None:
            return float(with_unit[1]) * scale
    try:
        number = float(text)
    except ValueError:
        return None
    if math.isfinite(number):
        return max(0.0, number)
    return None


def _scale(unit: str) -> float | None:
    return _UNIT_S.get(unit) or _UNIT_S.get(unit.removesuffix("s"))


def _http_date(value: str | None) -> float | None:
    """Read a date as seconds since 1970; None if there is none."""
    if not value:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
