import threading
from pathlib import Path

import pytest

from codex_py.filesystem.folder_times import FolderTimes
from tests.patch.undo.test_recorder import passed


def changed_ns(times: FolderTimes, folder: Path) -> int:
    return times.look(folder).changed_ns


def make(times: FolderTimes, path: Path) -> None:
    with times.without(path.parent):
        path.mkdir()
    passed(path.parent)


def remove(times: FolderTimes, path: Path) -> None:
    with times.without(path.parent):
        path.rmdir()
    passed(path.parent)


def test_our_own_changes_leave_the_time_as_it_was(tmp_path: Path) -> None:
    times = FolderTimes()
    before_ns = tmp_path.stat().st_ctime_ns
    passed(tmp_path)
    for name in ("one", "two"):
        make(times, tmp_path / name)
        assert changed_ns(times, tmp_path) == before_ns
    for name in ("one", "two"):
        remove(times, tmp_path / name)
        assert changed_ns(times, tmp_path) == before_ns
    assert tmp_path.stat().st_ctime_ns > before_ns


@pytest.mark.parametrize("is_between", [False, True])
def test_a_change_of_others_counts(tmp_path: Path, is_between: bool) -> None:
    times = FolderTimes()
    make(times, tmp_path / "ours")
    (tmp_path / "theirs").touch()
    theirs_ns = tmp_path.stat().st_ctime_ns
    if is_between:
        passed(tmp_path)
        remove(times, tmp_path / "ours")
        assert tmp_path.stat().st_ctime_ns > theirs_ns
    assert changed_ns(times, tmp_path) == theirs_ns


def test_a_change_that_fails_changes_no_time(tmp_path: Path) -> None:
    times = FolderTimes()
    make(times, tmp_path / "ours")
    before_ns = changed_ns(times, tmp_path)
    with pytest.raises(FileExistsError):
        make(times, tmp_path / "ours")
    (tmp_path / "ours" / "theirs").touch()
    with pytest.raises(OSError, match="not empty"):
        remove(times, tmp_path / "ours")
    assert changed_ns(times, tmp_path) == before_ns


def test_a_folder_that_took_the_place_of_another_has_its_own_time(
    tmp_path: Path,
) -> None:
    times, folder = FolderTimes(), tmp_path / "folder"
    folder.mkdir()
    with times.without(folder):
        folder.rename(tmp_path / "old")
        folder.mkdir()
    for each in (folder, tmp_path / "old"):
        assert changed_ns(times, each) == each.stat().st_ctime_ns


def test_files_and_other_folders_have_their_own_times(tmp_path: Path) -> None:
    times = FolderTimes()
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    make(times, tmp_path / "ours")
    for each in tmp_path.iterdir():
        assert changed_ns(times, each) == each.stat().st_ctime_ns


def test_no_other_thread_sees_a_time_of_ours(tmp_path: Path) -> None:
    times = FolderTimes()
    before_ns = tmp_path.stat().st_ctime_ns
    passed(tmp_path)

    def work() -> None:
        for _ in range(1_000):
            for change in (path.mkdir, path.rmdir):
                with times.without(tmp_path):
                    change()

    path = tmp_path / "ours"
    thread = threading.Thread(target=work)
    thread.start()
    seen = {before_ns}
    while thread.is_alive():
        seen.add(changed_ns(times, tmp_path))
    thread.join()
    assert seen == {before_ns}


def test_a_link_is_seen_and_not_what_it_leads_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert FolderTimes().look(link) == (link.lstat(), link.lstat().st_ctime_ns)
