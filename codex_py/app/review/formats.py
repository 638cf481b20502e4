"""Writes the findings of a review as text, for people."""

from pathlib import Path

from codex_py.app.review.findings import Finding, ReviewReport
from codex_py.streams.terminal import on_one_line


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


def unread_parts(review: ReviewReport) -> list[str]:
    """Return the parts of an answer besides findings, for formats that only have findings."""
    return [*filter(None, [review.text, unread_text(review)])]
