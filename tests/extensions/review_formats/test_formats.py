"""The formats of findings, read by others: the schema of SARIF, and a reader of JUnit."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest

from codex_py.app.review.findings import ReviewReport
from codex_py.extensions.review_formats.formats import (
    as_annotations,
    as_junit,
    as_sarif,
)
from tests.support.reviews import NONE, REVIEW


@pytest.mark.parametrize("review", [REVIEW, NONE])
def test_sarif_is_valid_by_its_schema(review: ReviewReport) -> None:
    if (folder := os.environ.get("SCHEMAS_DIR")) is None:
        pytest.skip("SCHEMAS_DIR names no folder")
    schema: Any = json.loads(
        Path(folder, "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")
    )
    found = json.loads(as_sarif(review))
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "version": "3"}, schema)


def test_sarif_has_relative_addresses_and_fingerprints() -> None:
    first, second = json.loads(as_sarif(REVIEW))["runs"][0]["results"]
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
    return junitparser.JUnitXml.fromstring(as_junit(review).encode())


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
    lines = as_annotations(REVIEW).splitlines()
    assert lines[0] == (
        "::error file=src/a b%25.py,line=3,endLine=5,title=[P1] The lock stays::"
        "It is never released.%0ASee `a.py`."
    )
    assert lines[1].startswith("::notice file=/etc/ü%2Cx,")
    assert len(lines) == 2
