from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.filesystem.output_file import OutputFile


def test_the_file_keeps_its_contents_until_there_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "last"
    path.write_text("an earlier and longer one", encoding="utf-8")
    file = OutputFile(path, tmp_path, "the last message")
    before = path.read_text(encoding="utf-8")
    file.write("ünï")
    assert (before, path.read_text(encoding="utf-8")) == (
        "an earlier and longer one",
        "ünï",
    )


def test_a_path_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CodexError) as caught:
        OutputFile(tmp_path / "missing" / "last", tmp_path, "the last message")
    assert caught.value.exit_code == 2
    assert "No such file or directory" in str(caught.value)


@pytest.mark.parametrize("name", ["link", "folder/last"])
def test_a_link_of_the_repository_does_not_lead_out_of_it(
    tmp_path: Path, name: str
) -> None:
    root, outside = tmp_path / "repo", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "last").write_text("mine", encoding="utf-8")
    (root / "link").symlink_to(outside / "last")
    (root / "folder").symlink_to(outside)
    with pytest.raises(CodexError) as caught:
        OutputFile(root / name, root, "the last message")
    assert str(caught.value) == (
        f"Failed to write the last message to '{root / name}': it is a link that leads out of {root}"
    )
    assert caught.value.exit_code == 2
    assert (outside / "last").read_text(encoding="utf-8") == "mine"


def test_a_link_that_stays_in_the_repository_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("last")
    OutputFile(tmp_path / "link", tmp_path, "the last message").write("done")
    assert (tmp_path / "last").read_text(encoding="utf-8") == "done"
