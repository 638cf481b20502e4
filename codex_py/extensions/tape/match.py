"""Compares requests, ignoring everything that changes with time, place and machine."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

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
    for encoded in re.findall(_CWD, text):
        directory: str = json.loads(f'"{encoded}"')
        if directory.strip("/"):
            return directory
    return None


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
    was_in_alone = re.escape(was_in) + r"(?![\w.-])"
    return is_in.join(re.split(was_in_alone, text))


def normalised(request: Any) -> Any:
    """Replace everything volatile in a request by placeholders.

    Volatile are ids, dates, durations, addresses and the working directory.
    """
    return _normalised(request, working_directory(request))


def _normalised(value: Any, cwd: str | None) -> Any:
    """A part of a request without what is volatile. `cwd`: the working directory to replace."""
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
        return _in_parts(_parts(expected, path), _parts(actual, path))
    if isinstance(expected, str) and isinstance(actual, str):
        if expected == actual:
            return None
        return _in_texts(expected, actual, path)
    # 1 and true are equal in Python, but not in JSON.
    is_same_kind = isinstance(expected, bool) == isinstance(actual, bool)
    if expected == actual and is_same_kind:
        return None
    ours = _short(cast("object", actual))
    theirs = _short(cast("object", expected))
    return f"{path}: expected {theirs}, got {ours}"


def _in_parts(
    expected: dict[str, Any],
    actual: dict[str, Any],
) -> str | None:
    """The first difference of two objects or lists, given by the paths of their parts."""
    for place in {**expected, **actual}:
        if place not in actual:
            return f"{place}: expected {_short(expected[place])}, got nothing"
        if place not in expected:
            return f"{place}: expected nothing, got {_short(actual[place])}"
        difference = first_difference(expected[place], actual[place], place)
        if difference:
            return difference
    return None


def _parts(value: Any, path: str) -> dict[str, Any]:
    """The parts of an object or a list by their paths."""
    if isinstance(value, list):
        return {f"{path}[{n}]": part for n, part in enumerate(cast("list[Any]", value))}
    prefix = f"{path}." if path else ""
    return {f"{prefix}{key}": part for key, part in value.items()}


def _in_texts(
    expected: str,
    actual: str,
    path: str,
) -> str:
    """The first difference of two unequal texts, with the number of its line."""
    ours = actual.split("\n")
    theirs = expected.split("\n")
    line = _common_length(theirs, ours)
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
    column = _common_length(wanted, got)
    start = max(0, column - _SNIPPET)
    end = column + _SNIPPET
    return f"{place}: expected {wanted[start:end]!r}, got {got[start:end]!r}"


def _common_length(
    first: Sequence[str],
    second: Sequence[str],
) -> int:
    """The number of elements with which both begin."""
    shorter = min(len(first), len(second))
    length = 0
    while length < shorter and first[length] == second[length]:
        length += 1
    return length


def _short(value: object) -> str:
    """The representation of a value, cut at its end if it is long."""
    text = repr(value)
    if len(text) <= 2 * _SNIPPET:
        return text
    return text[: 2 * _SNIPPET] + "…"
