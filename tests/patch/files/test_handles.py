import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.handles import Directories, EntryStatus, read_file
from codex_py.patch.plan import PatchPlan, writable_under
from tests.support.patching import enveloped, tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for folder in ("root/sub", "outside"):
        (tmp_path / folder / "f").write_text("1\n", encoding="utf-8")
    return tmp_path / "root"


def plan(root: Path, *lines: str) -> PatchPlan:
    return plan_patch(enveloped(*lines), root).checked(writable_under([root]))


UPDATE = ("*** Update File: sub/f", "-1", "+2")
ADD = ("*** Add File: sub/new/deep", "+x")
DELETE = ("*** Delete File: sub/f",)


@pytest.mark.parametrize("sections", [UPDATE, ADD, DELETE, UPDATE + ADD])
def test_a_directory_that_became_a_link_is_not_followed(
    root: Path, sections: tuple[str, ...]
):
    planned = plan(root, *sections)
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to("../outside")
    before = tree(root.parent)
    with pytest.raises(PatchError, match=r"^Failed to write file "):
        planned.commit()
    assert tree(root.parent) == before


def test_a_directory_above_the_root_that_became_a_link_is_not_followed(root: Path):
    planned = plan(root, *ADD)
    root.rename(root.with_name("moved"))
    root.symlink_to("outside")
    with pytest.raises(PatchError, match=r"^Failed to write file "):
        planned.commit()
    assert set(tree(root.parent / "outside")) == {"f"}


def become_link(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def become_pipe(path: Path, _target: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def become_other_file(path: Path, target: Path) -> None:
    path.unlink()
    path.hardlink_to(target)


@pytest.mark.parametrize("become", [become_link, become_pipe, become_other_file])
@pytest.mark.parametrize("sections", [UPDATE, DELETE])
def test_a_file_that_was_swapped_is_left_alone(
    root: Path, become: Callable[[Path, Path], None], sections: tuple[str, ...]
):
    planned = plan(root, *sections)
    become(root / "sub" / "f", root.parent / "outside" / "f")
    with pytest.raises(
        PatchError, match=r"/sub/f: it has changed since the patch was checked$"
    ):
        planned.commit()
    assert (root.parent / "outside" / "f").read_text(encoding="utf-8") == "1\n"


def test_only_the_expected_regular_file_is_read(root: Path):
    file, other = root / "sub" / "f", root.parent / "outside" / "f"
    (root / "link").symlink_to(file)
    os.mkfifo(root / "pipe")
    assert read_file(str(file), EntryStatus.of(file.stat())) == b"1\n"
    for path in (root / "link", root / "pipe", root / "sub"):
        with pytest.raises(OSError, match=r"it is a (link|named pipe|folder)"):
            read_file(str(path), EntryStatus.of(path.lstat()))
    with pytest.raises(OSError, match="replaced while it was read"):
        read_file(str(file), EntryStatus.of(other.stat()))


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_handles_are_bounded_and_closed(tmp_path: Path):
    folders = [tmp_path / f"d{n}" / "e" for n in range(150)]
    for folder in folders:
        folder.mkdir(parents=True)
    before = open_descriptors()
    with Directories() as directories:
        for folder in folders * 2:
            found = os.fstat(directories.handle(str(folder)))
            assert os.path.samestat(found, folder.stat())
        assert open_descriptors() - before < 100
    assert open_descriptors() == before


def test_very_deep_directories_are_reached(tmp_path: Path):
    path = tmp_path
    for _ in range(90):
        path /= "d"
    path.mkdir(parents=True)
    planned = plan_patch(enveloped(f"*** Add File: {path}/a/b", "+x"), tmp_path)
    planned.commit()
    assert (path / "a" / "b").read_text(encoding="utf-8") == "x\n"


def test_a_directory_that_is_removed_is_not_remembered(tmp_path: Path):
    with Directories() as directories:
        folder = str(tmp_path / "a")
        directories.make(folder)
        directories.make(f"{folder}/b")
        directories.handle(f"{folder}/b")
        directories.remove(f"{folder}/b")
        directories.remove(folder)
        with pytest.raises(FileNotFoundError):
            directories.handle(f"{folder}/b")
        with pytest.raises(FileNotFoundError):
            directories.handle(folder)
