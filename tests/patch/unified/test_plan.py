"""Also tests `patch/files/modes.py`, `patch/plan.py` and `patch/unified/target.py`."""

import shutil
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.plan import PatchPlan, writable_under
from codex_py.patch.report import HunkReport, Reject
from codex_py.patch.unified.content import ThreeWay
from codex_py.patch.unified.plan import plan_unified
from tests.patch.trees import commit_tree, git_diff, tree, write

FILES = {
    "mod": b"1\n2\n3\n",
    "gone": b"x\n",
    "empty": b"",
    "old name": b"".join(b"%d\n" % i for i in range(30)),
    "crlf": b"a\r\nb\r\nc\r\n",
    "latin": b"caf\xe9\nb\n",
    "bare": b"a\nb",
    "tool": b"#!/bin/sh\n",
    'q"\t\xc3\xa9'.encode("latin-1").decode(): b"q\n",
    "same": b"same\n" * 20,
}


def change_everything(root: Path) -> None:
    (root / "mod").write_bytes(b"1\nzwei\n3\n")
    (root / "gone").unlink()
    (root / "empty").unlink()
    (root / "new empty").touch()
    write(root, {"dir/new": b"fresh\nfile", "run": b"echo\n"})
    (root / "run").chmod(0o755)
    (root / "old name").rename(root / "dir" / "new name")
    with (root / "dir" / "new name").open("ab") as stream:
        stream.write(b"more\n")
    (root / "crlf").write_bytes(b"a\r\nB\r\nc\r\nd\n")
    (root / "latin").write_bytes(b"caf\xe9\n\xff")
    (root / "bare").write_bytes(b"a\nb\n")
    (root / "tool").chmod(0o755)
    (root / 'q"\té').write_bytes(b"Q\n")
    shutil.copy(root / "same", root / "copy")
    (root / "same").write_bytes(b"same\n" * 20 + b"x\n")


def changed_repository(
    tmp_path: Path,
) -> tuple[Path, bytes, dict[str, bytes], dict[str, bytes]]:
    """A directory as it was, the diff, and the trees before and after."""
    root = tmp_path / "repo"
    write(root, FILES)
    old = commit_tree(root)
    before = tree(root)
    work = tmp_path / "work"
    shutil.copytree(root, work, ignore=shutil.ignore_patterns(".git"))
    change_everything(root)
    return work, git_diff(root, old, commit_tree(root)), before, tree(root)


def apply(text: str | bytes, cwd: Path, **options: object) -> PatchPlan:
    planned = plan_unified(text, cwd, **options)  # pyright: ignore[reportArgumentType]
    planned.commit()
    return planned


def refusal(text: str, cwd: Path, **options: object) -> PatchError:
    before = tree(cwd)
    with pytest.raises(PatchError) as caught:
        apply(text, cwd, **options)
    assert tree(cwd) == before
    return caught.value


def changed(old: str, new: str, name: str = "f") -> str:
    return f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def test_every_kind_of_change_that_git_writes_is_applied_and_undone(tmp_path: Path):
    work, diff, before, after = changed_repository(tmp_path)
    for word in (
        b"rename from",
        b"copy from",
        b"new mode",
        b"\\ No newline",
        b"new file mode 100755",
    ):
        assert word in diff
    planned = apply(diff, work, strict=True)
    assert tree(work) == after
    assert planned.notes == ()
    apply(diff.decode(errors="surrogateescape"), work, reverse=True, strict=True)
    assert tree(work) == before


def test_a_diff_of_directories_by_diff_is_applied(tmp_path: Path):
    write(tmp_path / "work", {"a": b"1\n", "d/gone": b"x\n"})
    text = (
        "Only in old: z\ndiff -ruN old/a new/a\n"
        "--- old/a\t2020-01-01 10:00:00.0 +0100\n+++ new/a\t2020-01-01 11:00:00.0 +0100\n"
        "@@ -1 +1,2 @@\n 1\n+2\n"
        "--- old/d/gone\t2020-01-01 10:00:00.0 +0100\n+++ new/d/gone\t1970-01-01 01:00:00.0 +0100\n"
        "@@ -1 +0,0 @@\n-x\n"
        "--- old/e/new\t1970-01-01 01:00:00.0 +0100\n+++ new/e/new\t2020-01-01 10:00:00.0 +0100\n"
        "@@ -0,0 +1 @@\n+y\n"
    )
    planned = apply(text, tmp_path / "work")
    assert tree(tmp_path / "work") == {"a": b"1\n2\n", "e/new": b"y\n"}
    assert (
        planned.summary()
        == "Success. Updated the following files:\nA e/new\nM a\nD d/gone\n"
    )


@pytest.mark.parametrize(
    "stamp", ["\t(nonexistent)", "\t(revision 0)", "\t(revision 7)", ""]
)
def test_a_new_file_is_made_by_a_diff_of_subversion_or_one_without_times(
    tmp_path: Path, stamp: str
):
    write(tmp_path, {"f": b"1\n"})
    text = f"Index: d/new\n====\n--- d/new{stamp}\n+++ d/new\t(working copy)\n@@ -0,0 +1 @@\n+x\n"
    assert apply(text, tmp_path).summary().endswith("\nA d/new\n")
    assert tree(tmp_path) == {"f": b"1\n", "d/new": b"x\n"}


def test_a_diff_of_subversion_deletes_a_file(tmp_path: Path):
    write(tmp_path, {"f": b"1\n", "gone": b"x\n"})
    text = "--- gone\t(revision 7)\n+++ gone\t(nonexistent)\n@@ -1 +0,0 @@\n-x\n"
    apply(text, tmp_path)
    assert tree(tmp_path) == {"f": b"1\n"}
    apply(text, tmp_path, reverse=True)
    assert tree(tmp_path) == {"f": b"1\n", "gone": b"x\n"}


def test_a_hunk_at_the_start_makes_no_file_where_git_says_that_there_is_one(
    tmp_path: Path,
):
    text = "diff --git a/new b/new\n--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
    assert "No such file" in str(refusal(text, tmp_path))


def test_names_swapped_and_passed_on_are_renamed_at_once(tmp_path: Path):
    write(tmp_path, {"a": b"a\n", "b": b"b\n", "x": b"x\n", "y": b"y\n"})
    pairs = ("ab", "ba", "xy", "yz")
    text = "".join(
        f"diff --git a/{o} b/{n}\nrename from {o}\nrename to {n}\n" for o, n in pairs
    )
    apply(text, tmp_path)
    assert tree(tmp_path) == {"a": b"b\n", "b": b"a\n", "y": b"x\n", "z": b"y\n"}
    apply(text, tmp_path, reverse=True)
    assert tree(tmp_path) == {"a": b"a\n", "b": b"b\n", "x": b"x\n", "y": b"y\n"}


def test_commits_in_a_row_are_applied_one_after_the_other(tmp_path: Path):
    write(tmp_path, {"f": b"1\n"})
    apply(
        changed("1", "2") + "-- \n2.39\n\nFrom: x\n---\n" + changed("2", "3"), tmp_path
    )
    assert tree(tmp_path) == {"f": b"3\n"}


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("a/d/f", "b/d/f"), {}),
        (("d/f", "d/f"), {}),
        (("d/f.orig", "d/f"), {}),
        (("x/d/f", "y/d/f"), {}),
        (("x/y/d/f", "x/y/d/f"), {"strip": 2}),
        (("a/f", "b/f"), {"directory": "d"}),
        (("f", "f"), {"directory": "d", "strip": 0}),
    ],
)
def test_names_lead_to_the_file(
    tmp_path: Path, names: tuple[str, str], options: dict[str, object]
):
    write(tmp_path, {"d/f": b"1\n", "d/f.orig": b"1\n"})
    apply(f"--- {names[0]}\n+++ {names[1]}\n@@ -1 +1 @@\n-1\n+2\n", tmp_path, **options)
    assert tree(tmp_path) == {"d/f": b"2\n", "d/f.orig": b"1\n"}


@pytest.mark.parametrize("name", ["../f", "/tmp/f", "d/../../f"])
def test_names_may_not_lead_elsewhere(tmp_path: Path, name: str):
    error = refusal(f"--- {name}\n+++ {name}\n@@ -1 +1 @@\n-1\n+2\n", tmp_path, strip=0)
    assert (error.kind, str(error)) == (
        "refused",
        f"{name!r} leads out of the directory that is patched",
    )


def test_protected_files_are_refused(tmp_path: Path):
    with pytest.raises(PatchError) as caught:
        plan_unified(
            "--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+x\n",
            tmp_path,
        ).checked(writable_under([tmp_path]))
    assert caught.value.kind == "refused"


def test_a_diff_whose_line_ends_became_crlf_fits_both_kinds_of_file(tmp_path: Path):
    write(tmp_path, {"f": b"1\n", "g": b"1\r\n"})
    text = (changed("1", "2") + changed("1", "2", "g")).replace("\n", "\r\n")
    assert apply(text, tmp_path, strict=True).notes == ()
    assert tree(tmp_path) == {"f": b"2\n", "g": b"2\r\n"}


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", "empty", "No files were modified."),
        (
            "diff --git a/p b/p\nindex 1234..5678 100644\nGIT binary patch\nliteral 3\nxx\n",
            "parse",
            "Invalid patch hunk on line 5: the binary contents are damaged",
        ),
        (
            "diff --git a/p b/p\nindex 1234..5678\nBinary files a/p and b/p differ\n",
            "parse",
            "Invalid patch hunk on line 1: b/p: the diff has not all of the binary contents: "
            "`git diff --binary` writes them",
        ),
        (
            "diff --git a/p b/p\nnew file mode 040000\n",
            "parse",
            "Invalid patch hunk on line 1: b/p: 040000 is the mode of neither a file nor a link",
        ),
        (
            changed("1", "2", "missing"),
            "file",
            "Failed to read file to update {}/missing: No such file or directory (os error 2)",
        ),
        (
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+1\n",
            "match",
            "{}/f: the patch makes this file, which is there with the same contents: it seems to be "
            "already applied",
        ),
        (
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
            "match",
            "{}/f: the patch makes this file, which is there already",
        ),
        (
            "--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n",
            "match",
            "{}/g: it has other contents than those that the patch deletes (2 bytes more)",
        ),
    ],
)
def test_hunks_that_do_not_fit_are_refused(
    tmp_path: Path, text: str, kind: str, message: str
):
    write(tmp_path, {"f": b"1\n", "g": b"2\n3\n"})
    error = refusal(text, tmp_path)
    assert (error.kind, str(error)) == (kind, message.format(tmp_path))


def test_a_diff_of_an_empty_file_fits_no_other_if_strict(tmp_path: Path):
    write(tmp_path, {"f": b"1\n"})
    text = "diff --git a/f b/f\nindex e69de29..d00491f 100644\n--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+1\n"
    assert str(refusal(text, tmp_path, strict=True)) == (
        f"{tmp_path}/f: the patch is for an empty file, which it is not"
    )


def test_all_failures_are_told_and_nothing_is_written(tmp_path: Path):
    write(tmp_path, {"f": b"1\n", "g": b"1\n", "h": b"1\n"})
    text = changed("1", "2", "g") + changed("x", "y") + changed("p", "q", "h")
    message = str(refusal(text, tmp_path))
    assert (
        f"{tmp_path}/f: hunk 1 (line 8 of the patch) does not fit at line 1." in message
    )
    assert (
        f"{tmp_path}/h: hunk 1 (line 13 of the patch) does not fit at line 1."
        in message
    )


def test_hunks_that_fit_can_be_applied_alone(tmp_path: Path):
    write(tmp_path, {"f": b"1\n2\n", "g": b"1\n"})
    good, bad = "@@ -1 +1 @@\n-1\n+one\n", "@@ -2 +2 @@\n-x\n+y\n"
    planned = apply(
        f"--- a/f\n+++ b/f\n{good}{bad}" + changed("p", "q", "g"),
        tmp_path,
        partial=True,
    )
    assert tree(tmp_path) == {"f": b"one\n2\n", "g": b"1\n"}
    assert [(r.path, r.text) for r in planned.rejects] == [
        (tmp_path / "f", b"--- a/f\n+++ b/f\n@@ -2 +2 @@\n-x\n+y\n"),
        (tmp_path / "g", b"--- a/g\n+++ b/g\n@@ -1 +1 @@\n-p\n+q\n"),
    ]
    assert planned.hunks == (
        HunkReport(f"{tmp_path}/f", 1, 3, 1, 0),
        HunkReport(f"{tmp_path}/f", 2, 6, None),
        HunkReport(f"{tmp_path}/g", 1, 11, None),
    )
    assert isinstance(planned.rejects[0], Reject)


def test_a_patch_none_of_which_fits_is_an_error_even_so(tmp_path: Path):
    write(tmp_path, {"f": b"1\n"})
    assert refusal(changed("x", "y"), tmp_path, partial=True).kind == "match"


def test_the_place_of_a_hunk_is_noted_where_it_is_another(tmp_path: Path):
    write(tmp_path, {"f": b"0\n1\n"})
    assert apply(changed("1", "2"), tmp_path).notes == (
        f"{tmp_path}/f: hunk 1 was applied at line 2 (offset +1).",
    )


def test_a_file_that_went_its_own_way_is_merged(tmp_path: Path):
    base, ours, theirs = b"1\n2\n3\n", b"one\n2\n3\n", b"1\n2\nthree\n"
    write(tmp_path, {"f": ours})
    blobs = {"abc1234": base}
    merges: list[tuple[bytes, bytes, bytes]] = []

    def merge(mine: bytes, common: bytes, other: bytes) -> tuple[bytes, bool]:
        merges.append((mine, common, other))
        return b"merged\n", True

    text = "diff --git a/f b/f\nindex abc1234..def5678 100644\n--- a/f\n+++ b/f\n"
    text += "@@ -1,3 +1,3 @@\n 1\n 2\n-3\n+three\n"
    planned = apply(text, tmp_path, three_way=ThreeWay(blobs.get, merge))
    assert merges == [(ours, base, theirs)]
    assert tree(tmp_path) == {"f": b"merged\n"}
    assert planned.conflicts == (tmp_path / "f",)
    assert planned.notes == (
        f"{tmp_path}/f: merged with conflicts, which are marked in the file.",
    )


def test_a_file_is_not_merged_where_the_diff_fits_or_its_blob_is_unknown(
    tmp_path: Path,
):
    write(tmp_path, {"f": b"1\n"})

    def merge(mine: bytes, common: bytes, other: bytes) -> tuple[bytes, bool]:
        raise AssertionError

    text = "diff --git a/f b/f\nindex abc1234..def5678 100644\n" + changed("1", "2")
    apply(text, tmp_path, three_way=ThreeWay({"abc1234": b"x\n"}.get, merge))
    assert tree(tmp_path) == {"f": b"2\n"}
    with pytest.raises(PatchError):
        apply(text, tmp_path, three_way=ThreeWay(dict[str, bytes]().get, merge))


@pytest.mark.timeout(10)
def test_a_path_that_no_file_can_have_is_refused_at_once(tmp_path: Path):
    name = "a/" * 500_000 + "b"
    with pytest.raises(PatchError, match="4096 are the most"):
        plan_unified(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n", tmp_path)
