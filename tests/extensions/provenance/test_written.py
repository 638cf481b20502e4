"""What is read of the journal to follow the lines of a file."""

import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.config import load_config
from codex_py.extensions.provenance.written import Repository
from codex_py.patch.files.change import JournalEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.protocol.patched_file import PatchedFile
from tests.support.patching import patch


def test_an_entry_is_read_twice_at_most_in_however_many_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, root = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    journal = Journal(home, root)
    # After the large piece is known, the small one is half of what is not.
    files = {
        "large": [f"a line, number {n}" for n in range(9)],
        "small": ["ab1", "cd2"],
        "g": ["x"],
    }
    for name, lines in files.items():
        recorder = TurnRecorder(home, root, os.environ, name, is_resumed=True)
        recorder.will_run(is_confined=True)
        done = patch(journal, f"*** Add File: {name}", *(f"+{line}" for line in lines))
        new = (root / name).read_bytes()
        recorder.patched([PatchedFile.of(root / name, None, new)], done.number)
        recorder.end_turn(1, is_new=True)
    (root / "large").unlink()
    (root / "small").unlink()
    config = load_config(cwd=root, environment={"CODEX_HOME": str(home), "HOME": "/"})
    repository = Repository(config, os.environ, root)
    reads: Counter[int] = Counter()
    read = Journal.read

    def counted(self: Journal, number: int, **options: Any) -> JournalEntry:
        reads[number] += 1
        return read(self, number, **options)

    monkeypatch.setattr(Journal, "read", counted)
    moved = [line.encode() for name in ("large", "small") for line in files[name]]
    history = repository.follow({"new": [b"never seen", *moved]})
    assert history.unknown("small", [b"ab1"]) == set()
    assert max(reads.values()) == 2
