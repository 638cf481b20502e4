"""Also tests `protocol/file_rules.py`."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from codex_py.filesystem.denials import Denials
from codex_py.protocol.file_rules import FileRules


def test_a_question_during_the_search_for_names_waits_for_them(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    os.link(tmp_path / "secret", tmp_path / "other")
    denials = Denials(FileRules(((tmp_path / "secret", "deny"),)))
    answers: list[bool] = []
    reader = Thread(target=lambda: answers.append(denials.refuses(tmp_path / "other")))

    def roots() -> Iterator[Path]:
        reader.start()
        # It has to wait itself, until this is over.
        reader.join(0.2)
        yield tmp_path

    denials.now(roots())
    reader.join()
    assert answers == [True]


def test_another_name_that_is_made_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "denied").mkdir()
    (tmp_path / "denied/secret").write_text("x", encoding="utf-8")
    denials = Denials(FileRules(((tmp_path / "denied", "deny"),)))
    # Folders that have not changed for a while are not listed again.
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    denials.now([tmp_path])
    os.link(tmp_path / "denied/secret", tmp_path / "other")
    assert tmp_path / "other" in denials.now([tmp_path]).hidden
    assert denials.refuses(tmp_path / "other")
