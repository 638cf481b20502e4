"""Reads the answer of a reviewer.

If the answer breaks `instructions/review.json`, its readable parts are kept.
"""

import json
import re
from collections.abc import Iterator
from math import isnan
from typing import Any, Final, TypeGuard, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, as_object, text_field

_FENCED: Final = re.compile(r"^ *```\w* *\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_LIST: Final = re.compile(r'"findings"\s*:\s*\[')
_BETWEEN: Final = re.compile(r"[\s,]*")
_WHOLE_NUMBER: Final = re.compile(r"\s*[pP]?(\d{1,9})(?:\.0*)?\s*")
_TITLE_PRIORITY: Final = re.compile(r"\s*\[P([0-3])\]")
_MAX_STARTS: Final = 50
"""The number of places in prose at which an object is looked for."""
_DEFAULT_PRIORITY: Final = 1
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
    """The readable parts of an answer."""

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
    """Read the text of an answer. Nothing in it is an error."""
    data = _object(text)
    unread = 0
    if data is None:
        data = {"findings": _findings_so_far(text)}
        unread = 1
    listed = data.get("findings")
    if isinstance(listed, dict):
        # The value is a single finding.
        listed = [cast("Any", listed)]
    is_list = isinstance(listed, list)
    entries: list[Any] = cast("list[Any]", listed) if is_list else []
    remarks: list[Remark] = []
    for entry in entries:
        remark = _remark(as_object(entry))
        if remark is None:
            unread += 1
        else:
            remarks.append(remark)
    if not is_list:
        # The list itself is missing.
        unread += 1
    explanation = text_field(data, "overall_explanation")
    is_empty_list = is_list and not entries and unread == 0
    return ReviewAnswer(
        tuple(remarks),
        text_field(data, "overall_correctness"),
        explanation,
        _share(data.get("overall_confidence_score")),
        unread,
        is_readable=bool(remarks or explanation.strip() or is_empty_list),
    )


def _object(text: str) -> JsonObject | None:
    """Return the object of findings in an answer, whatever text is around it.

    A bare list is taken for the list of findings. Returns None if there is neither.
    """
    for candidate in _candidates(text):
        data = _decoded(candidate)
        if isinstance(data, list):
            return {"findings": data}
        fields = as_object(data)
        if "findings" in fields or "overall_explanation" in fields:
            return fields
    return None


def _candidates(text: str) -> Iterator[str]:
    """Yield the texts that may begin with the object: all, each block of code, each brace."""
    yield text
    for block in _FENCED.finditer(text):
        yield block[1]
    start = -1
    for _ in range(_MAX_STARTS):
        start = text.find("{", start + 1)
        if start < 0:
            return
        yield text[start:]


def _decoded(text: str) -> Any:
    """Return the JSON value at the start of a text; None without one."""
    value: Any
    try:
        value, _ = _DECODER.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return value


def _findings_so_far(text: str) -> list[Any] | None:
    """Return the findings of an answer that breaks off, up to the last whole one.

    Returns None if no list begins.
    """
    start = _LIST.search(text)
    if start is None:
        return None
    found: list[Any] = []
    position = start.end()
    while True:
        between = _BETWEEN.match(text, position)
        if between is not None:
            position = between.end()
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return found
        found.append(value)


def _remark(data: JsonObject) -> Remark | None:
    """Read a finding; None if it has no content."""
    title = text_field(data, "title").strip()
    body = text_field(data, "body")
    if not title:
        if not body.strip():
            return None
        title = body.strip().splitlines()[0]
    location = as_object(data.get("code_location"))
    path = text_field(location, "absolute_file_path")
    return Remark(
        title,
        body,
        _priority(data.get("priority"), title),
        _share(data.get("confidence_score")),
        path,
        _lines(location.get("line_range")) if path else None,
    )


def _priority(value: object, title: str) -> int:
    """Return the priority of a finding: the field, else the `[P1]` before the title, else 1."""
    number = _whole(value)
    if number is None:
        marked = _TITLE_PRIORITY.match(title)
        number = _DEFAULT_PRIORITY if marked is None else int(marked[1])
    return min(number, _LEAST_PRIORITY)


def _lines(value: object) -> tuple[int, int] | None:
    """Read a range of lines: an object, a list, a text such as `3-5`, or a single number."""
    match value:
        case dict():
            fields = cast("JsonObject", value)
            parts: list[Any] = [fields.get("start"), fields.get("end")]
        case list():
            parts = cast("list[Any]", value)
        case str():
            parts = [*re.findall(r"\d+", value)]
        case _:
            parts = [value]
    # There is no line 0.
    numbers = [*filter(None, map(_whole, parts))]
    if numbers:
        return (min(numbers), max(numbers))
    return None


def _whole(value: object) -> int | None:
    """Return a whole number from 0, also from a text or with a point; None for anything else."""
    if not _may_be_number(value):
        return None
    found = _WHOLE_NUMBER.fullmatch(str(value))
    if found is None:
        return None
    return int(found[1])


def _may_be_number(value: object) -> TypeGuard[int | float | str]:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _share(value: object) -> float:
    """Return a number from 0 to 1; 0 for anything else."""
    if not _may_be_number(value):
        return 0.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.0
    if isnan(number):
        return 0.0
    return min(max(number, 0.0), 1.0)
