"""The real changes between releases, where `RELEASES_DIR` names a folder with some, unpacked side by side."""

import os
import sys
from pathlib import Path

import pytest

from scripts.benchmarks.releases import apply_release, pairs

FOLDER = os.environ.get("RELEASES_DIR")
PAIRS = sorted(pairs(Path(FOLDER))) if FOLDER else []


@pytest.mark.skipif(not FOLDER, reason="RELEASES_DIR names no folder with releases")
def test_there_are_releases_to_compare() -> None:
    assert PAIRS


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[new.name for _, new in PAIRS])
def test_a_release_is_made_from_the_one_before_by_its_diff(
    tmp_path: Path, old: Path, new: Path
) -> None:
    outcome = apply_release(old, new, [sys.executable, "-m", "codex_py"], tmp_path)
    assert outcome.wrong == []
