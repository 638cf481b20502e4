"""The findings of a review: read from the model's answer, and placed on the lines of the change."""

import hashlib
import json
import os
from io import StringIO
from pathlib import Path
from typing import Any, Final

from unidiff.patch import PatchSet

from codex_py.app.review.change import Change
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
    """0 is the most serious, 3 minor."""
    confidence: float
    path: str
    """Relative to the root of the change with slashes if it is below it; else absolute."""
    start: int
    """The first line of the new version, from 1."""
    end: int
    on_change: bool | None
    """False: none of the lines is part of the change. None: it is not known which were changed."""
    fingerprint: str
    """The same for the same problem at the same text, wherever the lines have moved to."""
    code: str = ""
    """These lines, if their file is part of the change; cut if they are long."""


@frozen
class Review:
    findings: tuple[Finding, ...]
    """The most serious first."""
    correctness: str
    explanation: str
    confidence: float


def read_review(answer: str, change: Change) -> Review:
    """Read an answer that satisfies `instructions/review.json`, whose field names are those of Codex."""
    data: dict[str, Any] = json.loads(answer)
    files = {_shown(file.destination, change.root): file for file in change.files}
    findings = [_finding(each, change.root, files) for each in data["findings"]]
    return Review(
        tuple(sorted(findings, key=lambda finding: finding.priority)),
        data["overall_correctness"],
        _clean(data["overall_explanation"]),
        data["overall_confidence_score"],
    )


def _finding(data: dict[str, Any], root: Path, files: dict[str, PatchedFile]) -> Finding:
    place = data["code_location"]
    path = _shown(Path(os.path.normpath(root / place["absolute_file_path"])), root)
    # `2.0` is an integer in JSON Schema.
    start, end = sorted(map(int, place["line_range"].values()))
    title = " ".join(_clean(data["title"]).split())
    on_change, flagged = False if files else None, list[bytes]()
    if (file := files.get(path)) is not None:
        changed = _changed_lines(file)
        on_change = None if changed is None else any(start <= each <= end for each in changed)
        flagged = (file.new or b"").split(b"\n")[start - 1 : end]
    path = _clean(path)
    marks = (title.casefold().encode(), path.encode(), *(line.strip() for line in flagged))
    return Finding(
        title,
        _clean(data["body"]),
        int(data["priority"]),
        data["confidence_score"],
        path,
        start,
        end,
        on_change,
        hashlib.sha256(b"\0".join(marks)).hexdigest()[:32],
        _clean(b"\n".join(flagged)[:_LONGEST_CODE].decode(errors="replace")),
    )


def _clean(text: str) -> str:
    """Text without what a terminal obeys, and what neither UTF-8 nor XML has."""
    return printable(text.encode(errors="replace").decode()).translate({0xFFFE: "?", 0xFFFF: "?"})


def _shown(path: Path, root: Path) -> str:
    for top in (root, Path(os.path.realpath(root))):
        if path.is_relative_to(top):
            return path.relative_to(top).as_posix()
    return str(path)


def _changed_lines(file: PatchedFile) -> set[int] | None:
    """The lines of the new version that a change adds, and those between which it removes some. None: no diff shows
    them, as the file is large, or binary."""
    numbers = set[int]()
    diff = git_diff([file._replace(path=Path("file"))])
    for hunk in (hunk for part in PatchSet(StringIO(diff, newline="\n")) for hunk in part):
        number = hunk.target_start
        for line in hunk:
            if line.is_removed:
                # What is missing can only be shown beside its place.
                numbers |= {max(1, number - 1), number}
            elif line.is_added:
                numbers.add(number)
            number += line.is_added or line.is_context
    return None if not numbers and (file.old or b"") != (file.new or b"") else numbers
