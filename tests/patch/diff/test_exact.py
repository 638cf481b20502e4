"""Tests `patch/diff/writer.py`."""

from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.diff.writer import exact_diff
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.unified.plan import plan_unified
from codex_py.protocol.patched_file import PatchedFile
from tests.patch.trees import commit_tree, git, git_diff, tree, write

ROOT = Path("/p")


def test_changes_are_written_as_git_writes_them():
    changes = [
        PatchedFile(ROOT / "new", "add", None, None, b"a\nb", new_mode=0o100755),
        PatchedFile(ROOT / "empty", "add", None, None, b""),
        PatchedFile(ROOT / "a b", "delete", None, b"a\n", None, old_mode=0o100644),
        PatchedFile(
            ROOT / "old",
            "update",
            ROOT / "d/\tnew",
            b"1\n2\xff\n",
            b"1\n3\r\n",
            old_mode=0o100644,
            new_mode=0o100755,
        ),
    ]
    assert exact_diff(changes, ROOT) == (
        b"diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n"
        b"+a\n+b\n\\ No newline at end of file\n"
        b"diff --git a/empty b/empty\nnew file mode 100644\n"
        b"diff --git a/a b b/a b\ndeleted file mode 100644\n--- a/a b\t\n+++ /dev/null\n"
        b"@@ -1 +0,0 @@\n-a\n"
        b'diff --git a/old "b/d/\\tnew"\nold mode 100644\nnew mode 100755\n'
        b'rename from old\nrename to "d/\\tnew"\n--- a/old\n+++ "b/d/\\tnew"\n'
        b"@@ -1,2 +1,2 @@\n 1\n-2\xff\n+3\r\n"
    )


def test_git_applies_it_byte_for_byte(tmp_path: Path):
    files = {
        "mod": b"\xff\0\r\n" * 9 + b"x",
        "over": b"1\n",
        "old name": b"same\n",
        "gone": b"x",
        "target": b"t\n",
        "mover": b"m\n",
        "quote\"'\\é": b"q\n",
        "blank": b"",
    }
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for root in (theirs, ours):
        write(root, files)
    (theirs / "old name").chmod(0o755)
    (ours / "old name").chmod(0o755)
    text = (
        "diff --git a/mod b/mod\n--- a/mod\n+++ b/mod\n@@ -10 +10,2 @@\n-x\n"
        "\\ No newline at end of file\n+y\n+z\n\\ No newline at end of file\n"
        "diff --git a/old name b/d/new name\nrename from old name\nrename to d/new name\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        'diff --git "a/quote\\"\'\\\\\\303\\251" "b/quote\\"\'\\\\\\303\\251"\n'
        "old mode 100644\nnew mode 100755\n"
        "diff --git a/blank b/blank\ndeleted file mode 100644\n"
        "diff --git a/e b/e\nnew file mode 100755\n"
    )
    plan = plan_unified(text, ours)
    plan.commit()
    git(theirs, "apply", "-", stdin=exact_diff(plan.changes, ours))
    assert tree(theirs) == tree(ours)
    envelope = (
        "*** Begin Patch\n*** Add File: over\n+2\n*** Update File: mover\n*** Move to: target\n-m\n+n\n"
        "*** End Patch"
    )
    plan = plan_patch(envelope, ours)
    plan.commit()
    git(theirs, "apply", "-", stdin=exact_diff(plan.changes, ours))
    assert tree(theirs) == tree(ours)


def test_a_large_change_is_complete(tmp_path: Path):
    old = b"".join(b"%d\n" % i for i in range(6000))
    new = b"".join(b"x%d\n" % i for i in range(7000))
    write(tmp_path, {"f": b"head\n" + old + b"tail"})
    change = PatchedFile(
        tmp_path / "f",
        "update",
        None,
        b"head\n" + old + b"tail",
        b"head\n" + new + b"tail",
    )
    git(tmp_path, "apply", "-", stdin=exact_diff([change], tmp_path))
    assert tree(tmp_path) == {"f": b"head\n" + new + b"tail"}


def test_a_git_diff_is_written_again_as_an_equivalent_diff(tmp_path: Path):
    write(tmp_path, {"a": b"1\n2\n", "b": b"x\n"})
    old = commit_tree(tmp_path)
    before = tree(tmp_path)
    write(tmp_path, {"a": b"1\n2\n3\n", "c": b"n"})
    (tmp_path / "b").unlink()
    diff = git_diff(tmp_path, old, commit_tree(tmp_path))
    after = tree(tmp_path)
    backwards = plan_unified(diff, tmp_path, reverse=True)
    git(tmp_path, "apply", "-", stdin=exact_diff(backwards.changes, tmp_path))
    assert tree(tmp_path) == before
    git(tmp_path, "apply", "-", stdin=diff)
    assert tree(tmp_path) == after


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (PatchedFile(Path("/q/x"), "add", None, None, b""), "/q/x is outside of /p"),
        (
            PatchedFile(ROOT / "x", "delete", None, None, None),
            "/p/x: its contents are not known",
        ),
        (
            PatchedFile(
                ROOT / "x",
                "update",
                ROOT / "z",
                b"y",
                b"y2",
                old_mode=0o120777,
                new_mode=0o100644,
            ),
            "/p/x: a symbolic link that gives way to a file of another name cannot be written as a diff",
        ),
        (
            PatchedFile(ROOT / "x", "delete", None, b"", None, old_mode=0o160000),
            "/p/x: the submodule's commit is not known",
        ),
    ],
)
def test_a_change_that_no_diff_can_express_is_refused(
    change: PatchedFile, message: str
):
    with pytest.raises(PatchError) as caught:
        exact_diff([change], ROOT)
    assert str(caught.value) == message
