"""Reads the answer of a reviewer.

If the answer breaks `instructions/review.json`, its readable parts are kept.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, as_object, text_field

_FENCED: Final = re.compile(r"^ *```\w* *\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_LIST: Final = re.compile(r'"findings"\s*:\s*\[')
_BETWEEN: Final = re.compile(r"[\s,]*")
_WHOLE_NUMBER: Final = re.compile(r"\s*[pP]?(\d{1,9})(?:\.0*)?\s*")
_MARKED: Final = re.compile(r"\s*\[P([0-3])\]")
_MAX_STARTS: Final = 50
"""The number of places in prose at which an object is looked for."""
_PRIORITY: Final = 1
"""The priority of a finding without one: it should be fixed before the change is merged."""
_LEAST_PRIORITY: Final = 3
_DECODER: Final = json.JSONDecoder(strict=False)
"""The decoder accepts line breaks in strings, which some models write."""


@frozen
class Remark:
    """A finding as the reviewer wrote it."""

    title: str
    body: str
    priority: int
    confidence: float
    path: str
    """The path; empty without one."""
    lines: tuple[int, int] | None
    """The first and the last line; None if they cannot be read."""


@frozen
class ReviewAnswer:
    remarks: tuple[Remark, ...]
    correctness: str
    explanation: str
    confidence: float
    unread: int
    """The number of findings that cannot be read. In a list that breaks off, the rest counts as
    one."""
    is_readable: bool
    """False if the answer has neither a list of findings nor an explanation."""


def read_answer(text: str) -> ReviewAnswer:
    data = _object(text)
    unread = 0
    if data is None:
        data = {"findings": _beginning(text)}
        unread = 1
    listed = data.get("findings")
    if isinstance(listed, dict):
        # The value is a single finding.
        listed = [cast("Any", listed)]
    is_list = isinstance(listed, list)
    if is_list:
        found = [_remark(as_object(each)) for each in cast("list[Any]", listed)]
    else:
        found = []
    remarks = tuple([each for each in found if each is not None])
    unread += len(found) - len(remarks)
    if not is_list:
        unread += 1
    explanation = text_field(data, "overall_explanation")
    is_empty_list = is_list and not found and unread == 0
    return ReviewAnswer(
        remarks,
        text_field(data, "overall_correctness"),
        explanation,
        _share(data.get("overall_confidence_score")),
        unread,
        is_readable=bool(remarks or explanation.strip() or is_empty_list),
    )


def _object(text: str) -> JsonObject | None:
    """Return the object of findings in an answer, whatever text is around it."""
    for piece in _pieces(text):
        data = _decoded(piece)
        fields: JsonObject = (
            {"findings": data} if isinstance(data, list) else as_object(data)
        )
        if "findings" in fields or "overall_explanation" in fields:
            return fields
    return None


def _pieces(text: str) -> Iterator[str]:
    yield text
    for found in _FENCED.finditer(text):
        yield found[1]
    at = -1
    for _ in range(_MAX_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return
        yield text[at:]


def _decoded(text: str) -> Any:
    """Return the JSON value at the start of a text; None without one."""
    value: Any
    try:
        value, _ = _DECODER.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return value


def _beginning(text: str) -> list[Any] | None:
    """Return the findings of an answer that breaks off, up to the last whole one.

    Returns None if no list begins.
    """
    start = _LIST.search(text)
    if start is None:
        return None
    found: list[Any] = []
    at = start.end()
    while True:
        between = _BETWEEN.match(text, at)
        at = at if between is None else between.end()
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found
        found.append(value)


def _remark(data: JsonObject) -> Remark | None:
    """Read a finding; None if it has no content."""
    title = text_field(data, "title").strip()
    body = text_field(data, "body")
    if not (title or body.strip()):
        return None
    title = title or body.strip().splitlines()[0]
    place = as_object(data.get("code_location"))
    path = text_field(place, "absolute_file_path")
    return Remark(
        title,
        body,
        _priority(data.get("priority"), title),
        _share(data.get("confidence_score")),
        path,
        _lines(place.get("line_range")) if path else None,
    )


def _priority(value: object, title: str) -> int:
    number = _whole(value)
    if number is None:
        marked = _MARKED.match(title)
        number = _PRIORITY if marked is None else int(marked[1])
    return min(number, _LEAST_PRIORITY)


def _lines(value: object) -> tuple[int, int] | None:
    parts = cast("JsonObject", value)
    match value:
        case dict():
            given: list[Any] = [parts.get("start"), parts.get("end")]
        case list():
            given = cast("list[Any]", value)
        case str():
            given = [*re.findall(r"\d+", value)]
        case _:
            given = [value]
    numbers = [number for each in given if (number := _whole(each))]
    if numbers:
        return (min(numbers), max(numbers))
    return None


def _whole(value: object) -> int | None:
    """Return a whole number from 0, also from a text or with a point; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    found = _WHOLE_NUMBER.fullmatch(str(value))
    if found is None:
        return None
    return int(found[1])


def _share(value: object) -> float:
    """Return a number from 0 to 1; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.0
    if number == number:
        return min(max(number, 0.0), 1.0)
    return 0.0
