"""Also tests `protocol/protected.py`."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.layout import Layout, Roots, absent_names, layout, resolve_roots
from tests.sandbox.local_backends import workspace


def view(policy: SandboxPolicy, *own: Path, tmpdir: str = "") -> Layout:
    return layout(resolve_roots(policy, tmpdir), own, offline=True)


def test_read_only_gives_nothing(tmp_path: Path) -> None:
    policy = replace(workspace(tmp_path), mode="read-only")
    assert view(policy, tmp_path) == Layout((), (), (), offline=True)


def test_links_to_roots_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    roots = resolve_roots(workspace(tmp_path / "link", tmp_path / "missing"), "")
    assert roots == Roots((tmp_path / "real",))


@pytest.mark.parametrize("tmpdir", ["", "relative"])
def test_only_a_full_path_is_a_folder_for_temporary_files(
    tmp_path: Path, tmpdir: str
) -> None:
    policy = SandboxPolicy("workspace-write", (tmp_path,), exclude_slash_tmp=True)
    assert resolve_roots(policy, tmpdir).temporary == ()


def test_folders_for_temporary_files_keep_their_names(tmp_path: Path) -> None:
    work, temporary = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    policy = SandboxPolicy("workspace-write", (work,), exclude_slash_tmp=True)
    roots = resolve_roots(policy, str(temporary))
    assert roots == Roots((work,), (temporary,))
    assert absent_names(roots) == [
        work / name for name in (".git", ".agents", ".codex", ".claude", ".aws")
    ]


def test_folders_between_two_roots_cannot_be_moved(tmp_path: Path) -> None:
    inner = tmp_path / "a/b/inner"
    (inner / ".git").mkdir(parents=True)
    assert view(workspace(inner, tmp_path)) == Layout(
        (tmp_path, tmp_path / "a", tmp_path / "a/b", inner),
        (inner / ".git",),
        (),
        offline=True,
    )


def test_our_own_files_are_protected_where_they_could_be_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    seen = view(
        workspace(tmp_path), tmp_path / "home", tmp_path / "missing", Path("/usr")
    )
    assert seen.protected == (tmp_path / "home",)


def test_a_link_with_a_protected_name_stays_and_leads_to_what_is_protected(
    tmp_path: Path,
) -> None:
    (tmp_path / "a/store").mkdir(parents=True)
    (tmp_path / ".agents").symlink_to("a/store")
    assert view(workspace(tmp_path)) == Layout(
        (tmp_path, tmp_path / "a"),
        (tmp_path / "a/store",),
        (),
        offline=True,
        links=(tmp_path / ".agents",),
    )


def test_nothing_is_created_at_the_target_of_a_link_with_a_protected_name(
    tmp_path: Path,
) -> None:
    for name, target in (
        (".git", "later/git"),
        (".agents", "/missing"),
        (".codex", ".codex"),
    ):
        (tmp_path / name).symlink_to(target)
    roots = resolve_roots(workspace(tmp_path), "")
    assert absent_names(roots) == [
        tmp_path / "later",
        tmp_path / ".claude",
        tmp_path / ".aws",
    ]
    (tmp_path / "later").mkdir()
    assert absent_names(roots) == [
        tmp_path / "later",
        tmp_path / ".claude",
        tmp_path / ".aws",
    ]
    links = tuple(tmp_path / name for name in (".git", ".agents", ".codex"))
    assert layout(roots, (), offline=True).links == links


def test_folders_around_what_is_protected_cannot_be_moved(tmp_path: Path) -> None:
    (tmp_path / "a/b/ours").mkdir(parents=True)
    seen = view(workspace(tmp_path), tmp_path / "a/b/ours", tmp_path / "a")
    assert (seen.writable, seen.protected) == (
        (tmp_path,),
        (tmp_path / "a", tmp_path / "a/b/ours"),
    )
    seen = view(workspace(tmp_path), tmp_path / "a/b/ours")
    assert seen.writable == (tmp_path, tmp_path / "a", tmp_path / "a/b")


def test_a_pointer_to_a_git_folder_protects_that_too(tmp_path: Path) -> None:
    tree, git = tmp_path / "tree", tmp_path / "main/.git"
    tree.mkdir()
    (git / "worktrees/tree").mkdir(parents=True)
    (git / "worktrees/tree/commondir").write_text("../..\n", encoding="ascii")
    (tree / ".git").write_text(
        "gitdir: ../main/.git/worktrees/tree\n", encoding="ascii"
    )
    seen = view(workspace(tmp_path, tree))
    assert set(seen.protected) == {tree / ".git", git, git / "worktrees/tree"}


@pytest.mark.parametrize("text", ["", "no pointer", "gitdir: /missing"])
def test_a_pointer_that_leads_nowhere_is_protected_itself(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / ".git").write_text(text, encoding="ascii")
    assert view(workspace(tmp_path)).protected == (tmp_path / ".git",)


def test_a_pointer_to_a_folder_of_pipes_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: made", encoding="ascii")
    (tmp_path / "made").mkdir()
    os.mkfifo(tmp_path / "made/commondir")
    seen = view(workspace(tmp_path))
    assert seen.protected == (tmp_path / ".git", tmp_path / "made")


def test_a_root_that_was_replaced_is_left_out(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    roots = resolve_roots(workspace(tmp_path, inner), "")
    inner.rmdir()
    inner.symlink_to("/etc")
    assert layout(roots, (), offline=True).writable == (tmp_path,)


def test_names_are_protected_up_to_the_folder_that_can_be_written(
    tmp_path: Path,
) -> None:
    work, temporary = tmp_path / "tmp/project/a", tmp_path / "tmp"
    (temporary / "project/.git").mkdir(parents=True)
    (temporary / ".aws").mkdir()
    work.mkdir()
    policy = SandboxPolicy("workspace-write", (work,), exclude_slash_tmp=True)
    roots = resolve_roots(policy, str(temporary))
    seen = layout(roots, (), offline=True)
    assert seen.protected == (temporary / ".aws", temporary / "project/.git")
    assert seen.writable == (temporary, temporary / "project", work)
    # None in the folder for temporary files itself, which is everybody's.
    assert {path.parent for path in absent_names(roots)} == {
        work,
        temporary / "project",
    }


@pytest.mark.parametrize("root", ["", "rules", "codex-py/journal"])
def test_the_home_and_its_settings_are_no_workspace(tmp_path: Path, root: str) -> None:
    for name in ("rules", "codex-py/journal", "skills"):
        (tmp_path / name).mkdir(parents=True)
    policy = workspace(tmp_path / root, tmp_path / "skills")
    assert resolve_roots(policy, str(tmp_path), tmp_path).all == (tmp_path / "skills",)
