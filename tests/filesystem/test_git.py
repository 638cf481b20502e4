"""Whose worktree a folder is, from the files of git alone."""

from pathlib import Path

import pytest

from codex_py.filesystem.git import main_work_tree


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A worktree of the submodule `over/sub`, of which only the files that tell so are there."""
    files = {
        "over/sub/.git": "gitdir: ../.git/modules/sub\n",
        "over/.git/modules/sub/config": "[core]\n\tbare = false\n\tworktree = ../../../sub\n[branch]\n",
        "over/.git/modules/sub/worktrees/w/gitdir": f"{tmp_path}/w/.git\n",
        "w/.git": f"gitdir: {tmp_path}/over/.git/modules/sub/worktrees/w\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "w"


def test_a_worktree_of_a_submodule_is_known(linked: Path) -> None:
    assert main_work_tree(linked) == linked.parent / "over/sub"


@pytest.mark.parametrize("broken", ["config", "worktrees/w/gitdir"])
def test_a_submodule_that_names_no_tree_or_another_worktree_has_none(
    linked: Path, broken: str
) -> None:
    (linked.parent / "over/.git/modules/sub" / broken).write_text(
        "[core]\n", encoding="utf-8"
    )
    assert main_work_tree(linked) is None


def test_a_repository_that_claims_the_tree_of_another_gets_none(linked: Path) -> None:
    """Or a checkout would have the trust in any project that it names."""
    (linked.parent / "over/sub/.git").write_text(
        "gitdir: ../.git/modules/other\n", encoding="utf-8"
    )
    (linked.parent / "over/.git/modules/other").mkdir()
    assert main_work_tree(linked) is None
