"""Reviews whose findings have odd texts and paths."""

from dataclasses import replace

from codex_py.app.review.findings import Finding, ReviewReport

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
