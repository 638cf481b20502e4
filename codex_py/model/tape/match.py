"""Whether two requests are the same but for what changes with time, place and machine."""

import re
from collections.abc import Mapping
from typing import Any, cast

from codex_py.protocol.frozen import frozen

_VOLATILE_KEYS = {"prompt_cache_key", "client_metadata"}

_UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
# As texts: compiled when they are first used, which is on a replay alone.
_VOLATILE_TEXTS = (
    (_UUID, "{uuid}"),
    (r"<(current_date|timezone|shell)>[^<]*</\1>", r"<\1/>"),
    (r"\bChunk ID: [0-9a-f]{6}\b", "Chunk ID: {id}"),
    (r"\bsession ID \d+\b", "session ID {id}"),
    (r"\bWall time: [\d.]+ seconds?\b", "Wall time: {n} seconds"),
    # It counts the working directory, where that is printed.
    (r"\bOriginal token count: \d+\b", "Original token count: {n}"),
    (r"(\"duration_seconds\": ?)[\d.]+", r"\1{n}"),
    # Test runners: "3 passed in 0.12s".
    (r"\bin \d+(?:\.\d+)? ?(?:ms|s|seconds?)\b", "in {n}s"),
    (r"\b0x[0-9a-f]{4,16}\b", "0x{address}"),
    # The marks below a line of a Python traceback differ between its versions.
    (r"(?m)^ *[~^]+ *\n", ""),
)
_CWD = r"<cwd>([^<]+)</cwd>"
_SNIPPET = 60
"""Characters of a differing line on either side of the difference."""


@frozen
class WorkingDirectory:
    path: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """The directory, but not another whose name only begins like it."""
        return re.compile(re.escape(self.path) + r"(?![\w.-])")

    def join(self, parts: list[str]) -> str:
        return self.path.join(parts)


def working_directory(value: Any) -> WorkingDirectory | None:
    """The one that a request speaks of; None for a request that names none, or the root."""
    for text in _texts(value):
        if (found := re.search(_CWD, text)) and found[1].strip("/"):
            return WorkingDirectory(found[1])
    return None


def normalised(request: Any) -> Any:
    """The request with everything volatile in it made the same: ids, dates, durations, addresses, the
    working directory.
    """
    return _normalised(request, working_directory(request))


def _normalised(value: Any, cwd: WorkingDirectory | None) -> Any:
    match value:
        case str():
            text = value if cwd is None else cwd.pattern.sub("{cwd}", value)
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


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for part in cast("list[Any]", value) for text in _texts(part)]
        case dict():
            parts = cast("dict[str, Any]", value).values()
            return [text for part in parts for text in _texts(part)]
        case _:
            return []


def first_difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Where two JSON values part, and how: `input[5].output: line 3: expected 'a', got 'b'`.

    None where they are equal. What is quoted is short.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _in_objects(cast("dict[str, Any]", expected), cast("dict[str, Any]", actual), path)
    if isinstance(expected, list) and isinstance(actual, list):
        return _in_lists(cast("list[Any]", expected), cast("list[Any]", actual), path)
    if isinstance(expected, str) and isinstance(actual, str):
        return None if expected == actual else _in_texts(expected, actual, path)
    # 1 and true are equal to Python, and not to JSON.
    if expected == actual and isinstance(expected, bool) == isinstance(actual, bool):
        return None
    ours, theirs = _short(cast("object", actual)), _short(cast("object", expected))
    return f"{path}: expected {theirs}, got {ours}"


def _in_objects(expected: Mapping[str, Any], actual: Mapping[str, Any], path: str) -> str | None:
    for key in [*expected, *(key for key in actual if key not in expected)]:
        place = f"{path}.{key}" if path else key
        if key not in actual:
            return f"{place}: expected {_short(expected[key])}, got nothing"
        if key not in expected:
            return f"{place}: expected nothing, got {_short(actual[key])}"
        if difference := first_difference(expected[key], actual[key], place):
            return difference
    return None


def _in_lists(expected: list[Any], actual: list[Any], path: str) -> str | None:
    for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
        if difference := first_difference(one, other, f"{path}[{index}]"):
            return difference
    common = min(len(expected), len(actual))
    if len(expected) > common:
        return f"{path}[{common}]: expected {_short(expected[common])}, got nothing"
    if len(actual) > common:
        return f"{path}[{common}]: expected nothing, got {_short(actual[common])}"
    return None


def _in_texts(expected: str, actual: str, path: str) -> str:
    ours, theirs = actual.split("\n"), expected.split("\n")
    common = min(len(ours), len(theirs))
    line = next((n for n in range(common) if ours[n] != theirs[n]), common)
    place = f"{path}: line {line + 1}" if max(len(ours), len(theirs)) > 1 else path
    if line >= len(theirs):
        return f"{place}: expected the end, got {_short(ours[line])}"
    if line >= len(ours):
        return f"{place}: expected {_short(theirs[line])}, got the end"
    pairs = zip(theirs[line], ours[line], strict=False)
    column = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
    if column is None:
        column = min(len(theirs[line]), len(ours[line]))
    start = max(0, column - _SNIPPET)
    end = column + _SNIPPET
    return f"{place}: expected {theirs[line][start:end]!r}, got {ours[line][start:end]!r}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 2 * _SNIPPET else text[: 2 * _SNIPPET] + "…"
