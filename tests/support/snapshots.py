"""What is seen, kept in files beside the tests: a change of it fails with the difference.

`UPDATE_SNAPSHOTS=1 pytest …` writes the files anew; the commit shows then what has changed.
"""

import os
from difflib import unified_diff
from pathlib import Path

import pytest


def check_snapshot(path: Path, text: str) -> None:
    """The file has to hold the text. Control characters are written as their pictures (`␛`)."""
    shown = "".join(
        chr(0x2400 + ord(char)) if char < " " and char != "\n" else char
        for char in text
    )
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
        return
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if shown != kept:
        lines = unified_diff(
            kept.split("\n"), shown.split("\n"), "kept", "now", lineterm=""
        )
        pytest.fail(f"{path.name} looks different:\n" + "\n".join(lines), pytrace=False)
