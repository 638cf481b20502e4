"""Writes the findings of a review as JSON, SARIF, JUnit, and annotations of GitHub Actions.

No text has a newline at its end.
"""

import json
from typing import Any, Final
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from codex_py.api.program import __version__
from codex_py.api.reviews import (
    Finding,
    ReviewReport,
    data_of,
    place,
    titled,
    unread_parts,
)
from codex_py.api.streams import command_text, on_one_line, printable

_SARIF: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Final = ("error", "error", "warning", "note")
"""The levels of SARIF, by priority."""
_MEANINGS: Final = (
    "Stops everything",
    "Should be fixed before it is merged",
    "Should be fixed some day",
    "Minor",
)


def as_json(review: ReviewReport) -> str:
    return json.dumps(data_of(review), indent=2, ensure_ascii=False)


def as_sarif(review: ReviewReport) -> str:
    """Format the review as SARIF.

    https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
    """
    rules = [
        {
            "id": f"P{priority}",
            "shortDescription": {"text": meaning},
            "defaultConfiguration": {"level": _LEVELS[priority]},
        }
        for priority, meaning in enumerate(_MEANINGS)
    ]
    driver = {"name": "codex-py review", "version": __version__, "rules": rules}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "results": [_sarif_result(finding) for finding in review.findings],
        "columnKind": "unicodeCodePoints",
    }
    problems = unread_parts(review)
    if problems:
        notes = [
            {"level": "error", "message": {"text": problem}} for problem in problems
        ]
        invocation = {
            "executionSuccessful": not review.text,
            "toolExecutionNotifications": notes,
        }
        run["invocations"] = [invocation]
    log = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _sarif_locations(finding: Finding) -> list[Any]:
    if not finding.path:
        return []
    uri = quote(finding.path)
    is_absolute = finding.path.startswith("/")
    if is_absolute:
        artifact = {"uri": f"file://{uri}"}
    else:
        artifact = {"uri": uri, "uriBaseId": "%SRCROOT%"}
    physical: dict[str, Any] = {"artifactLocation": artifact}
    if finding.start is not None:
        physical["region"] = {"startLine": finding.start, "endLine": finding.end}
    return [{"physicalLocation": physical}]


def _sarif_result(finding: Finding) -> dict[str, Any]:
    return {
        "ruleId": f"P{finding.priority}",
        "ruleIndex": finding.priority,
        "level": _LEVELS[finding.priority],
        "message": {"text": f"{finding.title}\n\n{finding.body}"},
        "locations": _sarif_locations(finding),
        "partialFingerprints": {"codexPyReview/v1": finding.fingerprint},
        "properties": {"confidence": finding.confidence, "onChange": finding.on_change},
    }


def as_junit(review: ReviewReport) -> str:
    """Format the review as JUnit.

    Each finding is a failed case, and an unreadable part is a broken case. A review without any is
    one case that passed.
    """
    problems = unread_parts(review)
    cases = len(review.findings) + len(problems)
    suite = Element("testsuite", {"name": "codex-py review"})
    suite.set("tests", str(cases or 1))
    suite.set("failures", str(len(review.findings)))
    if problems:
        suite.set("errors", str(len(problems)))
    for finding in review.findings:
        _add_failed_case(suite, finding)
    for problem in problems:
        case = SubElement(suite, "testcase", classname="review", name="cannot be read")
        error = SubElement(case, "error", message="cannot be read")
        error.text = printable(problem)
    if not cases:
        SubElement(suite, "testcase", classname="review", name="no findings")
    indent(suite)
    xml = tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}'


def _add_failed_case(suite: Element, finding: Finding) -> None:
    path = on_one_line(finding.path)
    name = on_one_line(titled(finding))
    case = SubElement(suite, "testcase", classname=path or "review", name=name)
    if path:
        case.set("file", path)
    if finding.start is not None:
        case.set("line", str(finding.start))
    message = on_one_line(finding.title)
    failure = SubElement(case, "failure", message=message, type=f"P{finding.priority}")
    failure.text = printable(f"{place(finding)}\n\n{finding.body}")


def as_annotations(review: ReviewReport) -> str:
    """Format the review as annotations of GitHub Actions.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    lines = [_annotation(finding) for finding in review.findings]
    title = _property_text("The review could not be read")
    lines += [
        f"::error title={title}::{command_text(text)}" for text in unread_parts(review)
    ]
    return "\n".join(lines)


def _annotation(finding: Finding) -> str:
    properties: list[str] = []
    if finding.path:
        properties.append(f"file={_property_text(finding.path)}")
    if finding.path and finding.start is not None:
        properties += [f"line={finding.start}", f"endLine={finding.end}"]
    properties.append(f"title={_property_text(titled(finding))}")
    level = _LEVELS[finding.priority].replace("note", "notice")
    return f"::{level} {','.join(properties)}::{command_text(finding.body)}"


def _property_text(text: str) -> str:
    """Return the text as a property of a workflow command."""
    return command_text(text).replace(":", "%3A").replace(",", "%2C")
