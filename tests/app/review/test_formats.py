"""The findings of a review as text.

Also tests `app/review/findings.py`.
"""

from dataclasses import replace
from pathlib import Path

from codex_py.app.review.findings import ReviewReport
from codex_py.app.review.formats import as_text, place
from tests.support.reviews import FINDING, NONE, REVIEW


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
