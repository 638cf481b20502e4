from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.convert import reversed_diff, to_envelope, to_unified
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.unified.plan import plan_unified
from tests.patch.trees import tree, write

ENVELOPE = """*** Begin Patch
*** Update File: mod
@@
 one
-two
+2
 three
*** Update File: crlf
@@
-a
+A
*** Delete File: gone
*** Update File: old
*** Move to: d/new
@@
-x
+y
*** Add File: fresh
+1
+2
*** End Patch
"""
FILES = {
    "mod": b"one\ntwo\nthree\n",
    "crlf": b"a\r\nb\r\n",
    "gone": b"g\n",
    "old": b"x\n",
}


def applied(files: dict[str, bytes], patch: str, root: Path) -> dict[str, bytes]:
    write(root, files)
    plan = plan_patch if patch.startswith("***") else plan_unified
    plan(patch, root).commit()
    return tree(root)


def test_an_envelope_is_written_as_a_git_diff(tmp_path: Path):
    write(tmp_path, FILES)
    assert to_unified(ENVELOPE, tmp_path) == (
        "diff --git a/mod b/mod\n--- a/mod\n+++ b/mod\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        "diff --git a/crlf b/crlf\n--- a/crlf\n+++ b/crlf\n@@ -1,2 +1,2 @@\n-a\r\n+A\r\n b\r\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-g\n"
        "diff --git a/old b/d/new\nrename from old\nrename to d/new\n--- a/old\n+++ b/d/new\n"
        "@@ -1 +1 @@\n-x\n+y\n"
        "diff --git a/fresh b/fresh\nnew file mode 100644\n--- /dev/null\n+++ b/fresh\n"
        "@@ -0,0 +1,2 @@\n+1\n+2\n"
    )


def test_there_and_back_does_the_same(tmp_path: Path):
    root = tmp_path / "root"
    write(root, FILES)
    diff = to_unified(ENVELOPE, root)
    envelope = to_envelope(diff, root)
    assert to_unified(envelope, root) == diff
    results = [
        applied(FILES, patch, tmp_path / f"{number}")
        for number, patch in enumerate((ENVELOPE, diff, envelope))
    ]
    assert results[0] == results[1] == results[2]


def test_hunks_that_would_fit_elsewhere_get_more_context(tmp_path: Path):
    old = b"start\n" + b"x\n" * 40
    files = {"f": old}
    write(tmp_path / "a", files)
    diff = "--- a/f\n+++ b/f\n@@ -30 +30 @@\n-x\n+y\n"
    envelope = to_envelope(diff, tmp_path / "a")
    assert envelope.count("\n x") > 6
    expected = b"start\n" + b"x\n" * 28 + b"y\n" + b"x\n" * 11
    assert applied(files, envelope, tmp_path / "b") == {"f": expected}


def test_an_empty_file_is_filled_and_moved(tmp_path: Path):
    files = {"f": b"", "g": b"z\n"}
    write(tmp_path / "a", files)
    diff = (
        "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+y\n"
        "diff --git a/g b/h\nsimilarity index 100%\nrename from g\nrename to h\n"
    )
    envelope = to_envelope(diff, tmp_path / "a")
    assert applied(files, envelope, tmp_path / "b") == {"f": b"y\n", "h": b"z\n"}


def test_a_copy_is_an_added_file(tmp_path: Path):
    files = {"f": b"x\n"}
    write(tmp_path / "a", files)
    diff = "diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n"
    envelope = to_envelope(diff, tmp_path / "a")
    assert envelope == "*** Begin Patch\n*** Add File: g\n+x\n*** End Patch\n"
    (tmp_path / "a" / "f").chmod(0o755)
    with pytest.raises(PatchError, match="that a new file has the mode 755"):
        to_envelope(diff, tmp_path / "a")


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        (
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n\\ No newline at end of file\n",
            "f: an envelope cannot say that the file ends without a newline",
        ),
        (
            "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
            "f: an envelope cannot say that its mode changes to 755",
        ),
        (
            "diff --git a/n b/n\nnew file mode 100755\n",
            "n: an envelope cannot say that a new file has the mode 755",
        ),
        (
            "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\r\n",
            "n: an envelope cannot say that lines of a new file end in CRLF",
        ),
        (
            "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n 1\n+2\r\n",
            "f: an envelope cannot say how its lines end: they would all end as the first does",
        ),
        (
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+\udcff\n",
            "f: an envelope cannot say what is not UTF-8",
        ),
    ],
)
def test_changes_that_an_envelope_cannot_express_are_refused(
    tmp_path: Path, diff: str, reason: str
):
    write(tmp_path, {"f": b"1\n"})
    (tmp_path / "f").chmod(0o644)
    with pytest.raises(PatchError) as caught:
        to_envelope(diff, tmp_path)
    assert caught.value.reason == f"{tmp_path}/{reason}"


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        (
            "diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-f\n"
            "\\ No newline at end of file\n",
            "l: an envelope cannot say what becomes of a symbolic link",
        ),
        (
            "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n"
            "+Subproject commit 1234567890123456789012345678901234567890\n",
            "m: an envelope cannot say what becomes of a submodule",
        ),
        (
            "diff --git a/d/f b/d\nrename from d/f\nrename to d\n",
            "d: an envelope cannot say that a file takes the place of a directory",
        ),
        (
            "diff --git a/f b/f/g\nrename from f\nrename to f/g\n",
            "f/g: an envelope cannot say that a directory takes the place of a file that is moved into it",
        ),
    ],
)
def test_entries_that_an_envelope_cannot_express_are_refused(
    tmp_path: Path, diff: str, reason: str
):
    write(tmp_path, {"f": b"1\n", "d/f": b"2\n"})
    (tmp_path / "l").symlink_to("f")
    with pytest.raises(PatchError) as caught:
        to_envelope(diff, tmp_path)
    assert caught.value.reason == f"{tmp_path}/{reason}"


def test_files_in_place_of_one_another_can_be_said(tmp_path: Path):
    files = {"f": b"1\n"}
    write(tmp_path / "a", files)
    diff = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n--- /dev/null\n+++ b/f/g\n@@ -0,0 +1 @@\n+2\n"
    envelope = to_envelope(diff, tmp_path / "a")
    assert applied(files, envelope, tmp_path / "b") == {"f/g": b"2\n"}


def test_an_empty_file_is_filled_with_what_an_envelope_can_say_only(tmp_path: Path):
    write(tmp_path, {"f": b""})
    with pytest.raises(PatchError, match="cannot say what is not UTF-8"):
        to_envelope("--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+\udcff\n", tmp_path)


def test_a_reversed_diff_undoes_and_its_reverse_does_again(tmp_path: Path):
    write(tmp_path, FILES)
    before = tree(tmp_path)
    diff = to_unified(ENVELOPE, tmp_path)
    backwards = reversed_diff(diff, tmp_path)
    plan_unified(diff, tmp_path).commit()
    after = tree(tmp_path)
    forwards = reversed_diff(backwards, tmp_path)
    plan_unified(backwards, tmp_path, strict=True).commit()
    assert tree(tmp_path) == before
    plan_unified(forwards, tmp_path, strict=True).commit()
    assert tree(tmp_path) == after
