"""Links, submodules and directories, as `git apply` has them. Each expectation holds for git too.

Tests `patch/files/tree.py`, `patch/unified/content.py` and `patch/unified/tree.py`.
"""

import os
import shutil
import stat
from itertools import count
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.convert import reversed_diff
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.plan import plan_undo
from codex_py.patch.unified.plan import plan_unified
from tests.patch.trees import DIRECTORY, Node, Tree, entries, git, write_nodes
from tests.support.patching import killed_at, tree

END = "\\ No newline at end of file\n"
COMMIT = "Subproject commit 1234567890123456789012345678901234567890"


def git_header(name: str, *lines: str) -> str:
    return "".join(f"{line}\n" for line in (f"diff --git a/{name} b/{name}", *lines))


def added(name: str, text: str, mode: str = "100644") -> str:
    """`text` ends without a newline where it is that of a link."""
    end = END if mode == "120000" else ""
    header = git_header(name, f"new file mode {mode}", "--- /dev/null", f"+++ b/{name}")
    return f"{header}@@ -0,0 +1 @@\n+{text}\n{end}"


def deleted(name: str, text: str, mode: str = "100644") -> str:
    end = END if mode == "120000" else ""
    header = git_header(
        name, f"deleted file mode {mode}", f"--- a/{name}", "+++ /dev/null"
    )
    return f"{header}@@ -1 +0,0 @@\n-{text}\n{end}"


def updated(name: str, old: str, new: str, mode: str | None = None) -> str:
    end = END if mode == "120000" else ""
    lines = [f"index 1234567..89abcde {mode}"] if mode else []
    header = git_header(name, *lines, f"--- a/{name}", f"+++ b/{name}")
    return f"{header}@@ -1 +1 @@\n-{old}\n{end}+{new}\n{end}"


def renamed(old: str, new: str) -> str:
    return f"diff --git a/{old} b/{new}\nrename from {old}\nrename to {new}\n"


def a_file(text: str = "x\n", *, is_executable: bool = False) -> Node:
    return Node(text.encode(), is_executable=is_executable)


def a_link(target: str) -> Node:
    return Node(target.encode(), is_link=True)


def link(name: str, target: str) -> str:
    return added(name, target, "120000")


CASES: list[tuple[str, Tree, str, dict[str, Node | None]]] = [
    ("a link is made", {}, link("d/l", "x/y"), {"d": DIRECTORY, "d/l": a_link("x/y")}),
    ("one that leads out", {}, link("l", "/etc/passwd"), {"l": a_link("/etc/passwd")}),
    (
        "a link is led elsewhere",
        {"l": a_link("x")},
        updated("l", "x", "y", "120000"),
        {"l": a_link("y")},
    ),
    ("a link is deleted", {"d/l": a_link("x")}, deleted("d/l", "x", "120000"), {}),
    (
        "a link is renamed",
        {"l": a_link("f"), "f": a_file()},
        renamed("l", "m"),
        {"m": a_link("f"), "f": a_file()},
    ),
    (
        "a link is copied",
        {"l": a_link("x")},
        renamed("l", "m").replace("rename", "copy"),
        {"l": a_link("x"), "m": a_link("x")},
    ),
    (
        "a file becomes a link",
        {"a": a_file()},
        deleted("a", "x") + link("a", "y"),
        {"a": a_link("y")},
    ),
    (
        "a link becomes a file",
        {"a": a_link("y")},
        deleted("a", "y", "120000") + added("a", "x", "100755"),
        {"a": a_file(is_executable=True)},
    ),
    (
        "a link to a directory becomes a directory",
        {"a": a_link("o"), "o/x": a_file("o\n")},
        deleted("a", "o", "120000") + added("a/x", "x"),
        {"a": DIRECTORY, "a/x": a_file(), "o": DIRECTORY, "o/x": a_file("o\n")},
    ),
    (
        "a directory becomes a link",
        {"a/x": a_file()},
        link("a", "o") + deleted("a/x", "x"),
        {"a": a_link("o")},
    ),
    (
        "a directory becomes a file",
        {"a/b/x": a_file(), "a/y": a_file("y\n")},
        added("a", "z") + deleted("a/b/x", "x") + deleted("a/y", "y"),
        {"a": a_file("z\n")},
    ),
    (
        "a file becomes a directory",
        {"a": a_file()},
        renamed("a", "a/b"),
        {"a": DIRECTORY, "a/b": a_file()},
    ),
    (
        "a file takes the place of its directory",
        {"a/b": a_file()},
        renamed("a/b", "a"),
        {"a": a_file()},
    ),
    (
        "directories go with their last file",
        {"p/q/f": a_file(), "p/g": a_file(), "r/s/f": a_file()},
        deleted("p/q/f", "x") + renamed("r/s/f", "f"),
        {"p": DIRECTORY, "p/g": a_file(), "f": a_file()},
    ),
    (
        "a directory stays if another file comes",
        {"p/q/f": a_file()},
        deleted("p/q/f", "x") + added("p/q/g", "x"),
        {"p": DIRECTORY, "p/q": DIRECTORY, "p/q/g": a_file()},
    ),
    (
        "a submodule is an empty directory",
        {},
        added("s/m", COMMIT, "160000"),
        {"s": DIRECTORY, "s/m": DIRECTORY},
    ),
    (
        "a submodule with files stays",
        {"m/f": a_file()},
        deleted("m", COMMIT, "160000"),
        {"m": DIRECTORY, "m/f": a_file()},
    ),
    (
        "a submodule stays at its commit",
        {"m/f": a_file()},
        updated("m", COMMIT, COMMIT[::-1], "160000"),
        {"m": DIRECTORY, "m/f": a_file()},
    ),
    (
        "a file becomes a submodule",
        {"m": a_file()},
        deleted("m", "x") + added("m", COMMIT, "160000"),
        {"m": DIRECTORY},
    ),
]


@pytest.mark.parametrize(
    ("case", "old", "diff", "new"), CASES, ids=[case[0] for case in CASES]
)
def test_it_is_applied_and_undone_and_done_again(
    tmp_path: Path, case: str, old: Tree, diff: str, new: dict[str, Node | None]
):
    root = tmp_path / "root"
    write_nodes(root, old)
    before = entries(root)
    journal = Journal(tmp_path / "home", root)
    plan_unified(diff, root, strict=True).commit(journal)
    assert entries(root) == new, case
    plan_undo(journal).commit()
    assert entries(root) == before
    plan_undo(journal, 2).commit()
    assert entries(root) == new


@pytest.mark.parametrize(
    ("case", "old", "diff", "new"), CASES, ids=[case[0] for case in CASES]
)
def test_git_applies_it_and_its_reverse_as_we_do(
    tmp_path: Path, case: str, old: Tree, diff: str, new: dict[str, Node | None]
):
    write_nodes(tmp_path, old)
    before = entries(tmp_path)
    backwards = reversed_diff(diff, tmp_path)
    git(tmp_path, "apply", "-", stdin=diff.encode())
    assert entries(tmp_path) == new
    if "submodule" not in case:
        git(tmp_path, "apply", "-", stdin=backwards.encode())
        assert entries(tmp_path) == before


@pytest.mark.parametrize(
    ("old", "diff", "kind", "message"),
    [
        (
            {"o/f": a_file()},
            link("a", "o") + added("a/x", "x"),
            "file",
            "Failed to write file {}/a/x: it is beyond a symbolic link that the patch makes",
        ),
        (
            {"o/f": a_file()},
            added("a/x", "x") + link("a", "o"),
            "file",
            "Failed to write file {}/a/x: it is beyond a symbolic link that the patch makes",
        ),
        (
            {"a": a_link("o"), "o/x": a_file()},
            updated("a/x", "x", "y"),
            "refused",
            "{}/a/x is beyond a symbolic link",
        ),
        (
            {"a": a_link("o"), "o/x": a_file()},
            deleted("a/x", "x"),
            "refused",
            "{}/a/x is beyond a symbolic link",
        ),
        (
            {"a": a_link("/")},
            added("a/tmp/x", "x"),
            "refused",
            "{}/a/tmp/x is beyond a symbolic link",
        ),
        (
            {"l": a_link("o")},
            renamed("l", "m") + added("m/x", "x"),
            "file",
            "Failed to write file {}/m/x: it is beyond a symbolic link that the patch makes",
        ),
        (
            {"l": a_file()},
            updated("l", "x", "y", "120000"),
            "match",
            "{}/l: the patch takes it for a symbolic link, and it is a file",
        ),
        (
            {"l": a_link("f"), "f": a_file()},
            updated("l", "x", "y", "100644"),
            "match",
            "{}/l: the patch takes it for a file, and it is a symbolic link",
        ),
        (
            {"a": a_file()},
            git_header("a", "old mode 100644", "new mode 120000"),
            "parse",
            "Invalid patch: a: a file cannot become a symbolic link by a change of mode; "
            "it has to be deleted and made again",
        ),
        (
            {},
            git_header("l", "new file mode 120000"),
            "parse",
            "Invalid patch: l: a symbolic link cannot lead to ''",
        ),
        (
            {"l": a_link("x")},
            added("l", "y"),
            "match",
            "{}/l: the patch makes this file, which is there already",
        ),
        (
            {"a/x": a_file(), "a/y": a_file()},
            link("a", "o") + deleted("a/x", "x"),
            "file",
            "Failed to write file {}/a: Is a directory (os error 21)",
        ),
        (
            {"m/f": a_file()},
            deleted("m", COMMIT, "160000") + added("m", "x"),
            "file",
            "Failed to write file {}/m: Is a directory (os error 21)",
        ),
        (
            {},
            deleted("m", COMMIT, "160000"),
            "file",
            "Failed to read file to update {}/m: No such file or directory (os error 2)",
        ),
        (
            {"m": a_file()},
            deleted("m", COMMIT, "160000"),
            "match",
            "{}/m: the patch takes it for a submodule, and it is a file",
        ),
        (
            {"m": a_file()},
            added("m", COMMIT, "160000"),
            "match",
            "{}/m: the patch makes this file, which is there already",
        ),
        (
            {"d/f": a_file()},
            renamed("d", "e"),
            "match",
            "{}/d: a directory; the patch has to rename the files in it",
        ),
        (
            {"d/f": a_file()},
            updated("d", "x", "y"),
            "file",
            "Failed to read file to update {0}/d: path `{0}/d` is not a file",
        ),
    ],
)
def test_it_is_refused_and_nothing_is_changed(
    tmp_path: Path, old: Tree, diff: str, kind: str, message: str
):
    write_nodes(tmp_path, old)
    before = entries(tmp_path)
    with pytest.raises(PatchError) as caught:
        plan_unified(diff, tmp_path)
    assert (caught.value.kind, str(caught.value)) == (kind, message.format(tmp_path))
    assert entries(tmp_path) == before


def test_a_path_of_a_thousand_folders_is_one_like_others(tmp_path: Path):
    name = f"{'d/' * 1500}f"
    diff = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    [change] = plan_unified(diff, tmp_path).changes
    assert change.path == tmp_path / name


def test_a_diff_that_says_no_type_changes_what_a_link_leads_to(tmp_path: Path):
    write_nodes(tmp_path, {"l": a_link("d/f"), "d/f": a_file()})
    plan = plan_unified("--- l\n+++ l\n@@ -1 +1 @@\n-x\n+y\n", tmp_path)
    assert [change.path for change in plan.changes] == [tmp_path / "d" / "f"]
    plan.commit()
    assert entries(tmp_path) == {
        "l": a_link("d/f"),
        "d": DIRECTORY,
        "d/f": a_file("y\n"),
    }


def test_a_file_with_other_names_becomes_a_link_and_they_keep_it(tmp_path: Path):
    write_nodes(tmp_path, {"a": a_file()})
    os.link(tmp_path / "a", tmp_path / "b")
    plan_unified(deleted("a", "x") + link("a", "y"), tmp_path).commit()
    assert entries(tmp_path) == {"a": a_link("y"), "b": a_file()}


def test_a_directory_that_comes_back_has_its_permissions(tmp_path: Path):
    root = tmp_path / "root"
    write_nodes(root, {"d/e/f": a_file()})
    (root / "d" / "e").chmod(0o2750)
    (root / "d").chmod(0o711)
    journal = Journal(tmp_path / "home", root)
    plan_unified(renamed("d/e/f", "d"), root).commit(journal)
    assert entries(root) == {"d": a_file()}
    plan_undo(journal).commit()
    modes = [stat.S_IMODE((root / name).stat().st_mode) for name in ("d", "d/e")]
    assert modes == [0o711, 0o2750]


ALL_KINDS = (
    updated("led", "x", "y", "120000")
    + deleted("link", "x", "120000")
    + added("link", "real")
    + deleted("file", "x")
    + link("file", "led")
    + renamed("dir/deep/f", "dir")
    + renamed("name", "name/f")
    + deleted("last/f", "x")
    + added("sub", COMMIT, "160000")
    + deleted("was", COMMIT, "160000")
)


def restore(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    write_nodes(root, {"led": a_link("x"), "link": a_link("x"), "dir/deep/f": a_file()})
    write_nodes(root, {"file": a_file(), "name": a_file(), "last/f": a_file()})
    (root / "was").mkdir(0o701)
    for name in ("dir", "dir/deep", "last"):
        (root / name).chmod(0o750)


def test_it_is_all_done_or_not_at_all_whenever_it_is_killed(tmp_path: Path):
    root = tmp_path / "root"
    journal = Journal(tmp_path / "home", root)

    def patch() -> None:
        plan_unified(ALL_KINDS, root).commit(journal)

    def undo() -> None:
        plan_undo(journal).commit()

    restore(root)
    old = tree(root)
    patch()
    new = tree(root)
    for moment in count():
        restore(root)
        if not killed_at(moment, patch):
            break
        if moment % 7 == 3:
            killed_at(moment % 5, journal.recover)
        journal.recover()
        assert tree(root) in (old, new), f"killed at {moment}"
    for moment in count():
        if not killed_at(moment, undo):
            break
        journal.recover()
        if (now := tree(root)) != new:
            assert now == old, f"killed at {moment}"
            patch()
    assert tree(root) == old


def test_a_left_out_file_leaves_its_source(tmp_path: Path):
    write_nodes(tmp_path, {"a": a_file(), "d/f": a_file(), "g": a_file()})
    plan = plan_unified(
        renamed("a", "d") + updated("g", "x", "y"), tmp_path, partial=True
    )
    plan.commit()
    assert [reject.path for reject in plan.rejects] == [tmp_path / "a"]
    expected = {"a": a_file(), "d": DIRECTORY, "d/f": a_file(), "g": a_file("y\n")}
    assert entries(tmp_path) == expected


def test_writing_a_plan_does_not_change_what_it_says(tmp_path: Path):
    (tmp_path / "m").write_text("x\n", encoding="utf-8")
    diff = deleted("m", "x") + added("m", COMMIT, "160000")
    said = plan_unified(diff, tmp_path).changes
    plan = plan_unified(diff, tmp_path)
    plan.commit(Journal(tmp_path / "home", tmp_path))
    assert plan.changes == said
    assert (tmp_path / "m").is_dir()
