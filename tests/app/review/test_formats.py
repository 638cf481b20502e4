"""The formats of findings, read by others: the schema of SARIF, and a reader of JUnit.

Also tests `app/review/findings.py`.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest

from codex_py.app.review.findings import Finding, ReviewReport
from codex_py.app.review.formats import FORMATS, as_text, place

ODD = 'a <b> & "c" \x1b[31m\N{RIGHT-TO-LEFT OVERRIDE} %0A ü'
FINDING = Finding(
    title="[P1] The lock stays",
    body="It is never released.\nSee `a.py`.",
    priority=1,
    confidence=0.9,
    path="src/a b%.py",
    start=3,
    end=5,
    on_change=True,
    fingerprint="f" * 32,
)
OUTSIDE = replace(
    FINDING, title=ODD, body=f"{ODD}\n::error::x", priority=3, path="/etc/ü,x"
)
REVIEW = ReviewReport((FINDING, OUTSIDE), "patch is incorrect", "One problem.", 0.8)
NONE = ReviewReport((), "patch is correct", "", 1)


@pytest.mark.parametrize("review", [REVIEW, NONE])
def test_sarif_is_valid_by_its_schema(review: ReviewReport) -> None:
    if (folder := os.environ.get("SCHEMAS_DIR")) is None:
        pytest.skip("SCHEMAS_DIR names no folder")
    schema: Any = json.loads(
        Path(folder, "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")
    )
    found = json.loads(FORMATS["sarif"](review))
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "version": "3"}, schema)


def test_sarif_has_relative_addresses_and_fingerprints() -> None:
    first, second = json.loads(FORMATS["sarif"](REVIEW))["runs"][0]["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {
        "uri": "src/a%20b%25.py",
        "uriBaseId": "%SRCROOT%",
    }
    assert place["region"] == {"startLine": 3, "endLine": 5}
    assert (first["level"], first["ruleId"]) == ("error", "P1")
    assert first["partialFingerprints"] == {"codexPyReview/v1": "f" * 32}
    outside = second["locations"][0]["physicalLocation"]["artifactLocation"]
    assert outside == {"uri": "file:///etc/%C3%BC%2Cx"}


def junit(review: ReviewReport) -> Any:
    return junitparser.JUnitXml.fromstring(FORMATS["junit"](review).encode())


def test_junit_is_read_by_another_reader() -> None:
    (suite,) = junit(REVIEW)
    assert (suite.tests, suite.failures) == (2, 2)
    case, odd = suite
    assert (case.classname, case.name) == ("src/a b%.py", "[P1] The lock stays")
    assert case.result[0].message == "[P1] The lock stays"
    assert case.result[0].text.endswith("It is never released.\nSee `a.py`.")
    assert "\x1b" not in odd.name
    (empty,) = junit(NONE)
    assert (empty.tests, empty.failures) == (1, 0)


def test_annotations_are_a_line_each() -> None:
    lines = FORMATS["github"](REVIEW).splitlines()
    assert lines[0] == (
        "::error file=src/a b%25.py,line=3,endLine=5,title=[P1] The lock stays::"
        "It is never released.%0ASee `a.py`."
    )
    assert lines[1].startswith("::notice file=/etc/ü%2Cx,")
    assert len(lines) == 2


def test_the_text_is_that_of_codex() -> None:
    """Codex 0.169: the explanation, a blank line, and the comments."""
    assert as_text(
        ReviewReport((FINDING,), "patch is incorrect", "One problem.", 1), Path("/r")
    ) == (
        "One problem.\n\nReview comment:\n\n- [P1] The lock stays — /r/src/a b%.py:3-5\n"
        "  It is never released.\n  See `a.py`."
    )
    assert as_text(NONE, Path("/r")) == "No findings."


def test_a_finding_on_a_single_line_is_written_without_a_range() -> None:
    one = replace(FINDING, end=3)
    assert (place(one), place(FINDING)) == ("src/a b%.py:3", "src/a b%.py:3-5")
    # For Codex it is one.
    assert "/src/a b%.py:3-3\n" in as_text(replace(REVIEW, findings=(one,)), Path("/r"))
