"""Compares requests, ignoring everything that changes with time, place and machine."""

import json
import re
from typing import Any, cast

from codex_py.protocol.json_fields import as_object

_VOLATILE_KEYS = {"prompt_cache_key", "client_metadata"}

_UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
# The patterns are strings, because only a replay compiles them.
_VOLATILE_TEXTS = (
    (_UUID, "{uuid}"),
    # Calls in text have the session's tag, and ids that this program generates.
    (r"\btool_[0-9a-f]{8}\b", "tool_{id}"),
    (r"\bcall_[0-9a-f]{32}\b", "call_{id}"),
    (r"<(current_date|timezone|shell)>[^<]*</\1>", r"<\1/>"),
    (r"\bChunk ID: [0-9a-f]{6}\b", "Chunk ID: {id}"),
    (r"\bsession ID \d+\b", "session ID {id}"),
    (r"\bWall time: [\d.]+ seconds?\b", "Wall time: {n} seconds"),
    # The count includes the working directory if the output contains it.
    (r"\bOriginal token count: \d+\b", "Original token count: {n}"),
    (r"(\"duration_seconds\": ?)[\d.]+", r"\1{n}"),
    # Test runners: "3 passed in 0.12s".
    (r"\bin \d+(?:\.\d+)? ?(?:ms|s|seconds?)\b", "in {n}s"),
    (r"\b0x[0-9a-f]{4,16}\b", "0x{address}"),
    # The marks below a line of a Python traceback differ between its versions.
    (r"(?m)^ *[~^]+ *\n", ""),
)
_CWD = r'<cwd>((?:[^<"\\]|\\.)+)</cwd>'
"""Matches the working directory in JSON."""
_SNIPPET = 60
"""Characters of a differing line on either side of the difference."""


def working_directory(value: Any) -> str | None:
    """The working directory that a request names; None if it names none, or only the root."""
    text = json.dumps(value, ensure_ascii=False)
    named = (json.loads(f'"{found}"') for found in re.findall(_CWD, text))
    return next((directory for directory in named if directory.strip("/")), None)


def moved(
    text: str,
    was_in: str | None,
    is_in: str | None,
) -> str:
    """Replace the first directory in a text by the second.

    A directory whose name only begins like the first one is unchanged.
    """
    if not was_in or not is_in:
        return text
    return is_in.join(re.split(re.escape(was_in) + r"(?![\w.-])", text))


def normalised(request: Any) -> Any:
    """Replace everything volatile in a request by placeholders.

    Volatile are ids, dates, durations, addresses and the working directory.
    """
    return _normalised(request, working_directory(request))


def _normalised(value: Any, cwd: str | None) -> Any:
    match value:
        case str():
            text = moved(value, cwd, "{cwd}")
            for pattern, replacement in _VOLATILE_TEXTS:
                text = re.sub(pattern, replacement, text)
            return text
        case list():
            return [_normalised(part, cwd) for part in cast("list[Any]", value)]
        case dict():
            return {
                key: _normalised(part, cwd)
                for key, part in cast("dict[str, Any]", value).items()
                if key not in _VOLATILE_KEYS
            }
        case _:
            return value


def first_difference(
    expected: Any,
    actual: Any,
    path: str = "",
) -> str | None:
    """The first difference of two JSON values: `input[5].output: line 3: expected 'a', got 'b'`.

    None if they are equal. Quoted values are cut short.
    """
    if type(expected) is type(actual) and isinstance(expected, dict | list):
        theirs = _parts(expected, path)
        ours = _parts(actual, path)
        for place in {**theirs, **ours}:
            if place not in ours:
                return f"{place}: expected {_short(theirs[place])}, got nothing"
            if place not in theirs:
                return f"{place}: expected nothing, got {_short(ours[place])}"
            difference = first_difference(theirs[place], ours[place], place)
            if difference:
                return difference
        return None
    if isinstance(expected, str) and isinstance(actual, str):
        if expected == actual:
            return None
        return _in_texts(expected, actual, path)
    # 1 and true are equal in Python, but not in JSON.
    if expected == actual and isinstance(expected, bool) == isinstance(actual, bool):
        return None
    ours = _short(cast("object", actual))
    theirs = _short(cast("object", expected))
    return f"{path}: expected {theirs}, got {ours}"


def _parts(value: Any, path: str) -> dict[str, Any]:
    """The parts of an object or a list by their paths."""
    if isinstance(value, list):
        return {f"{path}[{n}]": part for n, part in enumerate(cast("list[Any]", value))}
    prefix = ""
    if path:
        prefix = f"{path}."
    return {f"{prefix}{key}": part for key, part in as_object(value).items()}


def _in_texts(
    expected: str,
    actual: str,
    path: str,
) -> str:
    ours = actual.split("\n")
    theirs = expected.split("\n")
    common = min(len(ours), len(theirs))
    line = 0
    while line < common and ours[line] == theirs[line]:
        line += 1
    if max(len(ours), len(theirs)) > 1:
        place = f"{path}: line {line + 1}"
    else:
        place = path
    if line >= len(theirs):
        return f"{place}: expected the end, got {_short(ours[line])}"
    if line >= len(ours):
        return f"{place}: expected {_short(theirs[line])}, got the end"
    wanted = theirs[line]
    got = ours[line]
    shorter = min(len(wanted), len(got))
    column = 0
    while column < shorter and wanted[column] == got[column]:
        column += 1
    start = max(0, column - _SNIPPET)
    end = column + _SNIPPET
    return f"{place}: expected {wanted[start:end]!r}, got {got[start:end]!r}"


def _short(value: object) -> str:
    text = repr(value)
    if len(text) <= 2 * _SNIPPET:
        return text
    return text[: 2 * _SNIPPET] + "…"
