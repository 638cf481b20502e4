"""Writes the findings of a review.

The formats are text, JSON, SARIF, JUnit, and annotations of GitHub Actions.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from codex_py.app.review.findings import Finding, ReviewReport, data_of
from codex_py.streams.terminal import on_one_line, printable
from codex_py.version import __version__

_SARIF: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Final = ("error", "error", "warning", "note")
"""The levels of SARIF, by priority."""
_MEANINGS: Final = (
    "Stops everything",
    "Should be mended before it is merged",
    "Should be mended some day",
    "Minor",
)


def as_text(review: ReviewReport, root: Path) -> str:
    """Format the review as Codex shows it. `root`: the absolute root of the change."""
    paragraphs = [review.explanation.strip()]
    if len(review.findings) == 1:
        paragraphs.append("Review comment:")
    elif review.findings:
        paragraphs.append("Full review comments:")
    paragraphs += [_comment(finding, root) for finding in review.findings]
    paragraphs += [review.text, unread_text(review)]
    return "\n\n".join(filter(None, paragraphs)) or "No findings."


def _comment(finding: Finding, root: Path) -> str:
    """Format a finding: its title and place, and its indented body below."""
    heading = f"- {finding.title}{_absolute_place(finding, root)}"
    if finding.on_change is False:
        heading += " (not a line of the change)"
    body_lines = finding.body.strip().splitlines()
    lines = [f"  {line}".rstrip() for line in body_lines]
    body = "\n".join(lines)
    return f"{heading}\n{body}"


def unread_text(review: ReviewReport) -> str:
    """Return a sentence about findings that cannot be read; empty without any."""
    if not review.unread:
        return ""
    if review.unread == 1:
        return "1 finding could not be read, and is missing here."
    return f"{review.unread} findings could not be read, and are missing here."


def _absolute_place(finding: Finding, root: Path) -> str:
    """Return the place after a dash, as `/src/a.py:3-5`; empty without a path."""
    if not finding.path:
        return ""
    place = on_one_line(str(root / finding.path))
    if finding.start is None:
        return f" — {place}"
    return f" — {place}:{finding.start}-{finding.end}"


def titled(finding: Finding) -> str:
    """Return the title with the priority, which a model may have put before the title itself."""
    mark = f"[P{finding.priority}]"
    title = " ".join(finding.title.split())
    if title.startswith(mark):
        return title
    return f"{mark} {title}"


def place(finding: Finding) -> str:
    """Return the place as `src/a.py:3-5` or `src/a.py:3`, or the known part of it."""
    if not finding.path:
        return "no place given"
    if finding.start is None:
        return finding.path
    if finding.start == finding.end:
        return f"{finding.path}:{finding.start}"
    return f"{finding.path}:{finding.start}-{finding.end}"


def _as_json(review: ReviewReport) -> str:
    return json.dumps(data_of(review), indent=2, ensure_ascii=False)


def _as_sarif(review: ReviewReport) -> str:
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
    problems = _problems(review)
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


def _problems(review: ReviewReport) -> list[str]:
    """Return the parts of an answer besides findings, for formats that only have findings."""
    return [*filter(None, [review.text, unread_text(review)])]


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


def _as_junit(review: ReviewReport) -> str:
    """Format the review as JUnit.

    Each finding is a failed case, and an unreadable part is a broken case. A review without any is
    one case that passed.
    """
    problems = _problems(review)
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


def _as_annotations(review: ReviewReport) -> str:
    """Format the review as annotations of GitHub Actions.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    lines = [_annotation(finding) for finding in review.findings]
    title = _property_text("The review could not be read")
    lines += [
        f"::error title={title}::{command_text(text)}" for text in _problems(review)
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


def command_text(text: str) -> str:
    """Return the text as the message of a workflow command, on one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property_text(text: str) -> str:
    """Return the text as a property of a workflow command."""
    return command_text(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Final[Mapping[str, Callable[[ReviewReport], str]]] = {
    "json": _as_json,
    "sarif": _as_sarif,
    "junit": _as_junit,
    "github": _as_annotations,
}
"""The formats besides text. Their output has no newline at the end."""
