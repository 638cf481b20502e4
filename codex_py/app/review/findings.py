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

_MAX_CODE_BYTES: Final = 4_000


@frozen
class Finding:
    """A finding, placed on the lines of the change. Its texts are safe for a terminal."""

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
    """The result of a review."""

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
    files = {_shown_path(file.destination, change.root): file for file in change.files}
    findings = [_finding(remark, change.root, files) for remark in read.remarks]
    findings.sort(key=lambda finding: finding.priority)
    return ReviewReport(
        tuple(findings),
        _clean(read.correctness),
        _clean(read.explanation),
        read.confidence,
        unread=read.unread if read.is_readable else 0,
        text="" if read.is_readable else _clean(answer.strip()),
    )


def data_of(review: ReviewReport) -> dict[str, Any]:
    """Return the review as JSON. `unread` and `text` are there only for broken answers."""
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
    """Place a remark on the lines of the change.

    Args:
        files: the files of the change, by their paths as `_shown_path` gives them.
    """
    path = ""
    if remark.path:
        absolute = os.path.normpath(root / remark.path)
        path = _shown_path(Path(absolute), root)
    start, end = remark.lines or (None, None)
    flagged: list[bytes] = []
    file = files.get(path)
    if file is not None and remark.lines is not None:
        on_change = _touches(remark.lines, _changed_lines(file))
        flagged = _lines_of(file, remark.lines)
    elif file is None and files and path:
        on_change = False
    else:
        on_change = None
    title = " ".join(_clean(remark.title).split())
    path = _clean(path)
    code = b"\n".join(flagged)[:_MAX_CODE_BYTES]
    return Finding(
        title,
        _clean(remark.body),
        remark.priority,
        remark.confidence,
        path,
        start,
        end,
        on_change,
        _fingerprint(title, path, flagged),
        _clean(code.decode(errors="replace")),
    )


def _touches(lines: tuple[int, int], changed: set[int] | None) -> bool | None:
    """True if one of the lines is changed; None if the changed lines are unknown."""
    if changed is None:
        return None
    start, end = lines
    return any(start <= each <= end for each in changed)


def _lines_of(file: PatchedFile, lines: tuple[int, int]) -> list[bytes]:
    start, end = lines
    return (file.new or b"").split(b"\n")[start - 1 : end]


def _fingerprint(
    title: str,
    path: str,
    flagged: list[bytes],
) -> str:
    stripped = [line.strip() for line in flagged]
    text = b"\0".join([title.casefold().encode(), path.encode(), *stripped])
    digest = hashlib.sha256(text).hexdigest()
    return digest[:32]


def _clean(text: str) -> str:
    """Return the text without control characters of a terminal.

    Characters that UTF-8 or XML cannot contain are replaced too.
    """
    valid = text.encode(errors="replace").decode()
    return printable(valid).translate({0xFFFE: "?", 0xFFFF: "?"})


def _shown_path(path: Path, root: Path) -> str:
    """Return a path relative to the root with slashes, or absolute if it is not below the root."""
    for top in (root, Path(os.path.realpath(root))):
        if path.is_relative_to(top):
            return path.relative_to(top).as_posix()
    return str(path)


def _changed_lines(file: PatchedFile) -> set[int] | None:
    """Return the lines of the new version that a change adds, and the neighbours of removed lines.

    Returns None if no diff shows the lines, because the file is large or binary.
    """
    numbers: set[int] = set()
    diff = git_diff([file._replace(path=Path("file"))])
    hunks = chain.from_iterable(PatchSet(StringIO(diff, newline="\n")))
    for hunk in hunks:
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
    is_different = (file.old or b"") != (file.new or b"")
    if is_different and not numbers:
        return None
    return numbers
