"""The result of a review, and the texts of its findings.

A format of `codex-py review --format` is an entry point of `codex_py.review_formats`, named as the
value of the option. It is a function that takes the `ReviewReport` and returns the text, without a
newline at its end:

    [project.entry-points."codex_py.review_formats"]
    count = "codex_py_count:as_count"

`data_of` returns a review as JSON, `titled` and `place` what names a finding, and `unread_parts` the
parts of the answer that are no findings.
"""

from codex_py.app.review.findings import Finding, ReviewReport, data_of
from codex_py.app.review.formats import place, titled, unread_parts

__all__ = [
    "Finding",
    "ReviewReport",
    "data_of",
    "place",
    "titled",
    "unread_parts",
]
