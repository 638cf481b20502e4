import os
import sys
from pathlib import Path

import pytest

from codex_py.filesystem.reading import (
    NotOrdinary,
    open_ordinary,
    read_start,
    read_whole,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs procfs")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    (tmp_path / "repo" / "file").write_text("inside", encoding="ascii")
    (tmp_path / "secret").write_text("outside", encoding="ascii")
    return tmp_path / "repo"


def reason(path: Path, root: Path | None = None) -> str:
    with pytest.raises(NotOrdinary) as caught:
        open_ordinary(path, root=root)
    return str(caught.value.strerror)


def test_a_file_is_read_up_to_a_bound(repo: Path) -> None:
    assert read_start(repo / "file", 3) == (b"ins", 6)
    assert read_whole(repo / "file", 6) == b"inside"
    with pytest.raises(OSError, match="larger than"):
        read_whole(repo / "file", 5)


def test_links_within_the_root_are_followed(repo: Path) -> None:
    (repo / "sub" / "link").symlink_to("../file")
    (repo / "folder").symlink_to("sub")
    assert read_whole(repo / "folder" / "link", 10, root=repo) == b"inside"


def test_a_root_may_be_reached_through_a_link_itself(
    repo: Path, tmp_path: Path
) -> None:
    (tmp_path / "to-repo").symlink_to(repo)
    (repo / "link").symlink_to(repo / "file")
    assert (
        read_whole(tmp_path / "to-repo" / "link", 10, root=tmp_path / "to-repo")
        == b"inside"
    )


def test_no_link_leads_out_of_the_root(repo: Path, tmp_path: Path) -> None:
    (repo / "link").symlink_to("../secret")
    (repo / "folder").symlink_to(tmp_path)
    (repo / "beside").symlink_to(tmp_path / "repo-2")
    (tmp_path / "repo-2").write_text("other", encoding="ascii")
    for name in ("link", "folder/secret", "beside"):
        assert reason(repo / name, repo) == f"it is a link that leads out of {repo}"
    assert read_whole(repo / "link", 10) == b"outside"


@pytest.mark.parametrize("rooted", [True, False])
def test_the_opened_file_is_the_one_that_was_asked_about(
    repo: Path, *, rooted: bool
) -> None:
    # As a command does that exchanges a link all the time.
    (repo / "sub" / "secret").write_text("denied", encoding="ascii")
    (repo / "link").symlink_to("file")
    asked: list[str] = []

    def refuses(path: str, found: os.stat_result | None) -> bool:
        asked.append(path)
        if found is None:
            (repo / "link").unlink()
            (repo / "link").symlink_to("sub/secret")
        return path.endswith("secret")

    root = repo if rooted else None
    assert read_whole(repo / "link", 10, root=root, refuses=refuses) == b"inside"
    with pytest.raises(PermissionError):
        read_whole(repo / "link", 10, root=root, refuses=refuses)
    assert [Path(path).name for path in asked] == ["file", "file", "secret"]


def test_a_path_outside_of_the_root_may_lead_anywhere(
    repo: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("secret")
    assert read_whole(tmp_path / "link", 10, root=repo) == b"outside"


@pytest.mark.timeout(10)
def test_an_entry_that_is_no_file_is_refused_without_waiting(repo: Path) -> None:
    os.mkfifo(repo / "pipe")
    (repo / "dangling").symlink_to("nowhere/at/all")
    assert reason(repo / "sub") == "it is a folder"
    assert reason(repo / "pipe") == "it is a named pipe"
    assert reason(repo / "dangling") == "it is a link that leads nowhere"
    assert reason(Path("/dev/zero")) == "it is a device"
    # As a shell writes `<(COMMAND)`.
    reader, writer = os.pipe()
    assert reason(Path(f"/dev/fd/{reader}")) == "it is a named pipe"
    os.close(reader)
    os.close(writer)
    assert reason(Path("/")) == "it is a folder"
    with pytest.raises(FileNotFoundError):
        open_ordinary(repo / "missing")


@linux
def test_files_of_the_kernel_are_refused(repo: Path) -> None:
    (repo / "environ").symlink_to("/proc/self/environ")
    assert reason(repo / "environ") == "it is on procfs, which is never read"
    assert reason(Path("/proc/self/root/proc/self/environ")) == (
        "it is on procfs, which is never read"
    )
    assert reason(Path("/sys/kernel/mm/transparent_hugepage/enabled")) == (
        "it is on sysfs, which is never read"
    )


def test_no_descriptor_stays_open(repo: Path) -> None:
    (repo / "link").symlink_to("../secret")
    before = len(list(Path("/dev/fd").iterdir()))
    read_whole(repo / "file", 10)
    for path, root in (
        (repo / "link", repo),
        (repo / "sub", None),
        (Path("/dev/zero"), None),
    ):
        reason(path, root)
    assert len(list(Path("/dev/fd").iterdir())) == before
