from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.frontends.exec.last_message import LastMessageFile


def test_the_file_keeps_its_contents_until_there_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "last"
    path.write_text("an earlier and longer one", encoding="utf-8")
    file = LastMessageFile(path)
    before = path.read_text(encoding="utf-8")
    file.write("ünï")
    assert (before, path.read_text(encoding="utf-8")) == ("an earlier and longer one", "ünï")


def test_a_path_that_can_not_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CodexError) as caught:
        LastMessageFile(tmp_path / "missing" / "last")
    assert caught.value.exit_code == 2
    assert "No such file or directory" in str(caught.value)
