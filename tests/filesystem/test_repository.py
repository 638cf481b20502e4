"""Which repository a work tree may use, from the files of git alone."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.filesystem.repository import (
    ForeignRepository,
    check_contents,
    own_repository,
)
from tests.support.git import git


def make(folder: Path, *options: str) -> Path:
    """A repository with some files, committed."""
    git(folder.parent, "init", "-q", "-b", "main", *options, str(folder))
    (folder / "LICENSE").write_text("free\n", encoding="utf-8")
    for number in range(5):
        (folder / f"file{number}").write_text(
            f"{folder.name} {number}\n", encoding="utf-8"
        )
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The repository of somebody else."""
    return make(tmp_path / "other")


def ordinary(tmp_path: Path) -> Path:
    return make(tmp_path / "tree")


def separate(tmp_path: Path) -> Path:
    return make(tmp_path / "tree", "--separate-git-dir", str(tmp_path / "tree.git"))


def separate_and_named(tmp_path: Path) -> Path:
    tree = separate(tmp_path)
    (tmp_path / "tree.git/index").unlink()
    git(tree, "config", "core.worktree", str(tree))
    return tree


def separate_with(*options: str) -> Callable[[Path], Path]:
    def separate_tree(tmp_path: Path) -> Path:
        tree = separate(tmp_path)
        git(tree, "update-index", *options)
        return tree

    return separate_tree


def separate_in_sha256(tmp_path: Path) -> Path:
    options = (
        "--separate-git-dir",
        str(tmp_path / "tree.git"),
        "--object-format=sha256",
    )
    return make(tmp_path / "tree", *options)


def linked(tmp_path: Path) -> Path:
    git(make(tmp_path / "main"), "worktree", "add", "-q", str(tmp_path / "tree"))
    return tmp_path / "tree"


def linked_to_a_bare_one(tmp_path: Path) -> Path:
    git(
        tmp_path,
        "clone",
        "-q",
        "--bare",
        str(make(tmp_path / "main")),
        str(tmp_path / "bare"),
    )
    git(tmp_path / "bare", "worktree", "add", "-q", str(tmp_path / "tree"))
    return tmp_path / "tree"


def submodule(tmp_path: Path) -> Path:
    over = make(tmp_path / "over")
    git(over, "submodule", "add", "-q", str(make(tmp_path / "source")), "a/sub")
    return over / "a/sub"


def sparse_submodule(tmp_path: Path) -> Path:
    """git moves `core.worktree` into `config.worktree` for it."""
    tree = submodule(tmp_path)
    git(tree, "sparse-checkout", "set", "--no-cone", "/file0")
    return tree


def worktree_of_a_submodule(tmp_path: Path) -> Path:
    git(submodule(tmp_path), "worktree", "add", "-q", str(tmp_path / "tree"))
    return tmp_path / "tree"


def inner_folder(tmp_path: Path) -> Path:
    tree = make(tmp_path / "tree")
    (tree / ".git").rename(tree / "dotfiles")
    (tree / ".git").write_text("gitdir: dotfiles\n", encoding="utf-8")
    return tree


def linked_hooks(tmp_path: Path) -> Path:
    tree = make(tmp_path / "tree")
    shutil.rmtree(tree / ".git/hooks")
    (tree / ".git/hooks").symlink_to(tmp_path)
    return tree


def through_a_link(tmp_path: Path) -> Path:
    (tmp_path / "link").symlink_to(linked(tmp_path))
    return tmp_path / "link"


def borrowing_from_inside(tmp_path: Path) -> Path:
    tree = make(tmp_path / "tree")
    (tree / ".git/more").mkdir()
    (tree / ".git/objects/info/alternates").write_text(
        "# inside\n../more\n", encoding="utf-8"
    )
    return tree


@pytest.mark.parametrize(
    "kind",
    [
        *(ordinary, separate, separate_and_named),
        separate_with("--index-version=4"),
        separate_with("--skip-worktree", "LICENSE"),
        separate_in_sha256,
        *(
            linked,
            linked_to_a_bare_one,
            submodule,
            sparse_submodule,
            worktree_of_a_submodule,
        ),
        *(inner_folder, linked_hooks, through_a_link, borrowing_from_inside),
    ],
)
def test_a_tree_has_its_own_repository(
    tmp_path: Path, kind: Callable[[Path], Path]
) -> None:
    tree = kind(tmp_path)
    found = own_repository(tree)
    check_contents(found)
    says = git(tree, "rev-parse", "--absolute-git-dir", "--git-common-dir").splitlines()
    assert [str(found.folder), str(found.common)] == [
        os.path.realpath(tree / each) for each in says
    ]


def leads_by_a_file(tree: Path, other: Path) -> None:
    shutil.rmtree(tree / ".git")
    (tree / ".git").write_text(f"gitdir: {other}/.git\n", encoding="utf-8")


def leads_by_a_link(tree: Path, other: Path) -> None:
    shutil.rmtree(tree / ".git")
    (tree / ".git").symlink_to(other / ".git")


def leads_to_a_bare_one(tree: Path, other: Path) -> None:
    git(other, "clone", "-q", "--bare", ".", str(other.parent / "bare"))
    shutil.rmtree(tree / ".git")
    (tree / ".git").write_text("gitdir: ../bare\n", encoding="utf-8")


def leads_to_the_entry_of_another_tree(tree: Path, other: Path) -> None:
    git(other, "worktree", "add", "-q", str(other.parent / "linked"))
    shutil.rmtree(tree / ".git")
    (tree / ".git").write_text(
        f"gitdir: {other}/.git/worktrees/linked\n", encoding="utf-8"
    )


def leads_to_one_of_another_name(tree: Path, other: Path) -> None:
    """It names a tree, which is another one."""
    git(other, "config", "core.worktree", str(other))
    leads_by_a_file(tree, other)


def leads_to_a_separate_one(tree: Path, other: Path) -> None:
    """`git status` in the tree has taken up the one file that is the same in both."""
    git(other, "init", "-q", "--separate-git-dir", str(other.parent / "apart"))
    shutil.rmtree(tree / ".git")
    (tree / ".git").write_text(f"gitdir: {other.parent}/apart\n", encoding="utf-8")
    git(tree, "status")


def leads_by_an_inner_entry(tree: Path, other: Path) -> None:
    """An entry for a linked tree that the tree brings itself."""
    (tree / ".git").rename(tree / "git")
    entry = tree / "git/worktrees/x"
    entry.mkdir(parents=True)
    (entry / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (entry / "gitdir").write_text(f"{tree}/.git\n", encoding="utf-8")
    (entry / "commondir").write_text(f"{other}/.git\n", encoding="utf-8")
    (tree / ".git").write_text("gitdir: git/worktrees/x\n", encoding="utf-8")


def leads_by_a_common_folder(tree: Path, other: Path) -> None:
    (tree / ".git/commondir").write_text(f"{other}/.git\n", encoding="utf-8")


def leads_by_alternates(tree: Path, other: Path) -> None:
    (tree / ".git/objects/info/alternates").write_text(
        f"{other}/.git/objects\n", encoding="utf-8"
    )


def leads_by_relative_alternates(tree: Path, other: Path) -> None:
    text = "#\n\n../../../other/.git/objects\n"
    (tree / ".git/objects/info/alternates").write_text(text, encoding="utf-8")


def leads_by_alternates_of_alternates(tree: Path, other: Path) -> None:
    (tree / "more/info").mkdir(parents=True)
    (tree / ".git/objects/info/alternates").write_text("../../more\n", encoding="utf-8")
    (tree / "more/info/alternates").write_text(
        f"{other}/.git/objects\n", encoding="utf-8"
    )


def leads_by_quoted_alternates(tree: Path, other: Path) -> None:
    text = f'"{other}/.git/\\157bjects"\n'
    (tree / ".git/objects/info/alternates").write_text(text, encoding="utf-8")


def leads_by_links_in(*names: str) -> Callable[[Path, Path], None]:
    def leads_by_links(tree: Path, other: Path) -> None:
        for name in names:
            path = tree / ".git" / name
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            path.symlink_to(other / ".git" / name)

    return leads_by_links


def leads_by_an_object(tree: Path, other: Path) -> None:
    found = next(path for path in (other / ".git/objects").glob("??/*"))
    path = tree / ".git/objects" / found.parent.name / found.name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(found)


def leads_by_a_folder_of_objects(tree: Path, other: Path) -> None:
    found = next(path for path in (other / ".git/objects").glob("??"))
    path = tree / ".git/objects" / found.name
    shutil.rmtree(path, ignore_errors=True)
    path.symlink_to(found)


def leads_by_links_in_an_inner_store(tree: Path, other: Path) -> None:
    (tree / "store").mkdir()
    for folder in (other / ".git/objects").glob("??"):
        (tree / "store" / folder.name).symlink_to(folder)
    (tree / ".git/objects/info/alternates").write_text(
        "../../store\n", encoding="utf-8"
    )


def leads_by_a_link_to_links(tree: Path, other: Path) -> None:
    git(other, "gc", "-q")
    (tree / "packs").mkdir()
    for path in (other / ".git/objects/pack").iterdir():
        (tree / "packs" / path.name).symlink_to(path)
    shutil.rmtree(tree / ".git/objects/pack")
    (tree / ".git/objects/pack").symlink_to("../../packs")


@pytest.mark.parametrize(
    "lead",
    [
        *(leads_by_a_file, leads_by_a_link, leads_to_a_bare_one),
        *(leads_to_the_entry_of_another_tree, leads_to_one_of_another_name),
        *(leads_to_a_separate_one, leads_by_an_inner_entry, leads_by_a_common_folder),
        *(
            leads_by_alternates,
            leads_by_relative_alternates,
            leads_by_alternates_of_alternates,
        ),
        *(leads_by_quoted_alternates, leads_by_an_object, leads_by_a_folder_of_objects),
        *(leads_by_links_in_an_inner_store, leads_by_a_link_to_links),
        *(
            leads_by_links_in("objects/pack"),
            leads_by_links_in("index"),
            leads_by_links_in("HEAD"),
        ),
        *(leads_by_links_in("objects"), leads_by_links_in("refs", "packed-refs")),
        *(
            leads_by_links_in("config"),
            leads_by_links_in("info"),
            leads_by_links_in("info/exclude"),
        ),
    ],
)
def test_a_tree_that_leads_to_another_repository_is_refused(
    tmp_path: Path, other: Path, lead: Callable[[Path, Path], None]
) -> None:
    tree = make(tmp_path / "tree")
    lead(tree, other)
    with pytest.raises(ForeignRepository, match=r"it is not read|they are not read"):
        check_contents(own_repository(tree))


@pytest.mark.parametrize(
    "name",
    [
        "config",
        "index",
        "HEAD",
        "packed-refs",
        "objects/info/alternates",
        "objects/pack/x.idx",
    ],
)
@pytest.mark.parametrize("is_link", [False, True])
def test_no_named_pipe_in_a_repository_makes_git_wait(
    tmp_path: Path, name: str, is_link: bool
) -> None:
    tree = make(tmp_path / "tree")
    (tree / ".git" / name).unlink(missing_ok=True)
    if is_link:
        os.mkfifo(tree / "pipe")
        (tree / ".git" / name).symlink_to(tree / "pipe")
    else:
        os.mkfifo(tree / ".git" / name)
    with pytest.raises(ForeignRepository, match="neither a file nor a folder"):
        check_contents(own_repository(tree))


def test_links_that_stay_in_a_repository_are_followed(tmp_path: Path) -> None:
    tree = make(tmp_path / "tree")
    (tree / ".git/objects/pack").rename(tree / "packs")
    (tree / ".git/objects/pack").symlink_to("../../packs")
    (tree / "packs/round").symlink_to(".")
    (tree / ".git/HEAD").unlink()
    (tree / ".git/HEAD").symlink_to("refs/heads/main")
    check_contents(own_repository(tree))


def test_a_repository_without_a_sign_can_be_given_one(tmp_path: Path) -> None:
    tree = separate(tmp_path)
    (tmp_path / "tree.git/index").unlink()
    with pytest.raises(ForeignRepository) as told:
        own_repository(tree)
    words = str(told.value).rpartition("run `")[2].removesuffix("`").split()
    subprocess.run(words, check=True)
    assert own_repository(tree).folder == tmp_path / "tree.git"


@pytest.mark.parametrize("cut", [8, 12, 40, 70, 100, 150, 300])
def test_a_damaged_index_knows_nothing(tmp_path: Path, cut: int) -> None:
    tree = separate(tmp_path)
    index = tmp_path / "tree.git/index"
    data = index.read_bytes()
    index.write_bytes(data[:cut])
    with pytest.raises(ForeignRepository):
        own_repository(tree)


def test_a_repository_has_the_trees_that_name_it_too(
    tmp_path: Path, other: Path
) -> None:
    tree = linked(tmp_path)
    repository = own_repository(tmp_path / "main")
    assert repository.has_tree(tree)
    assert repository.has_tree(tmp_path / "main")
    assert not repository.has_tree(other)
    assert not repository.has_tree(tmp_path / "nowhere")
