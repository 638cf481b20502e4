"""The findings of a review: read from the model's answer, and placed on the lines of the change."""

import hashlib
import os
from dataclasses import asdict
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

from unidiff.patch import PatchSet

from codex_py.app.review.answer import Remark, read_answer
from codex_py.app.review.change import ReviewedChange
from codex_py.patch.diff.writer import git_diff
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import PatchedFile
from codex_py.streams.terminal import printable

_LONGEST_CODE: Final = 4_000


@frozen
class Finding:
    title: str
    body: str
    priority: int
    """The priority: 0 is the most serious, 3 is minor."""
    confidence: float
    path: str
    """The path relative to the root of the change, with slashes, if it is below the root; else
    absolute. Empty if unknown."""
    start: int | None
    """The first line in the new version, from 1; None if unknown."""
    end: int | None
    on_change: bool | None
    """False if none of the lines is part of the change; None if the changed lines are unknown."""
    fingerprint: str
    """A fingerprint that stays the same for the same problem in the same text, even if the lines
    move."""
    code: str = ""
    """The text of these lines, if their file is part of the change; cut if long."""


@frozen
class ReviewReport:
    findings: tuple[Finding, ...]
    """The findings, the most serious first."""
    correctness: str
    explanation: str
    confidence: float
    unread: int = 0
    """The number of findings that cannot be read."""
    text: str = ""
    """The whole answer, if it cannot be read as findings."""


def read_review(answer: str, change: ReviewedChange) -> ReviewReport:
    """Read an answer, even if it does not satisfy `instructions/review.json`."""
    read = read_answer(answer)
    files = {_shown(file.destination, change.root): file for file in change.files}
    findings = [_finding(remark, change.root, files) for remark in read.remarks]
    return ReviewReport(
        tuple(sorted(findings, key=lambda finding: finding.priority)),
        _clean(read.correctness),
        _clean(read.explanation),
        read.confidence,
        read.unread if read.is_readable else 0,
        "" if read.is_readable else _clean(answer.strip()),
    )


def data_of(review: ReviewReport) -> dict[str, Any]:
    """Return the review as JSON. Fields for broken answers are left out otherwise."""
    data = asdict(review)
    if not review.unread:
        del data["unread"]
    if not review.text:
        del data["text"]
    return data


def _finding(
    remark: Remark,
    root: Path,
    files: dict[str, PatchedFile],
) -> Finding:
    if remark.path:
        path = _shown(Path(os.path.normpath(root / remark.path)), root)
    else:
        path = ""
    start, end = remark.lines or (None, None)
    title = " ".join(_clean(remark.title).split())
    on_change = False if files and remark.path else None
    flagged = list[bytes]()
    file = files.get(path)
    if file is not None:
        on_change = None
        if start is not None and end is not None:
            changed = _changed_lines(file)
            if changed is not None:
                on_change = any(start <= each <= end for each in changed)
            flagged = (file.new or b"").split(b"\n")[start - 1 : end]
    path = _clean(path)
    marks = (
        title.casefold().encode(),
        path.encode(),
        *(line.strip() for line in flagged),
    )
    return Finding(
        title,
        _clean(remark.body),
        remark.priority,
        remark.confidence,
        path,
        start,
        end,
        on_change,
        hashlib.sha256(b"\0".join(marks)).hexdigest()[:32],
        _clean(b"\n".join(flagged)[:_LONGEST_CODE].decode(errors="replace")),
    )


def _clean(text: str) -> str:
    """Return the text without control characters of a terminal.

    Characters that UTF-8 or XML cannot contain are replaced too.
    """
    return printable(text.encode(errors="replace").decode()).translate(
        {0xFFFE: "?", 0xFFFF: "?"}
    )


def _shown(path: Path, root: Path) -> str:
    for top in (root, Path(os.path.realpath(root))):
        if path.is_relative_to(top):
            return path.relative_to(top).as_posix()
    return str(path)


def _changed_lines(file: PatchedFile) -> set[int] | None:
    """Return the lines of the new version that a change adds, and the neighbours of removed lines.

    Returns None if no diff shows the lines, because the file is large or binary.
    """
    numbers = set[int]()
    diff = git_diff([file._replace(path=Path("file"))])
    parts = PatchSet(StringIO(diff, newline="\n"))
    for hunk in chain.from_iterable(parts):
        number = hunk.target_start
        for line in hunk:
            if line.is_removed:
                # A removed line can only be shown beside its place.
                numbers |= {max(1, number - 1), number}
            elif line.is_added:
                numbers.add(number)
                number += 1
            elif line.is_context:
                number += 1
    if not numbers and (file.old or b"") != (file.new or b""):
        return None
    return numbers
