import subprocess
from pathlib import Path

from codex_py.patch.diff.writer import git_diff
from codex_py.protocol.patched_file import PatchedFile

ROOT = Path("/p")


def test_every_kind_of_change_is_shown_as_git_shows_it():
    changes = [
        PatchedFile(ROOT / "new", "add", None, None, b"a\nb"),
        PatchedFile(ROOT / "gone", "delete", None, b"a\n", None),
        PatchedFile(ROOT / "old", "update", ROOT / "d/new", b"1\n2\n", b"1\n3\n"),
        PatchedFile(Path("/q/x"), "update", None, b"same\n", b"same\n"),
        PatchedFile(ROOT / "bin", "delete", None, b"\0", None),
    ]
    assert git_diff(changes, ROOT) == (
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        "\\ No newline at end of file\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        "diff --git a/old b/d/new\nrename from old\nrename to d/new\n--- a/old\n+++ b/d/new\n"
        "@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
        "diff --git a/q/x b/q/x\n"
        "diff --git a/bin b/bin\ndeleted file mode 100644\nBinary files differ\n"
    )


def test_line_numbers_are_right_far_into_a_file(tmp_path: Path):
    old = "".join(f"{i}\n" for i in range(100))
    new = old.replace("50\n", "x\ny\n").replace("80\n", "")
    diff = git_diff(
        [PatchedFile(tmp_path / "f", "update", None, old.encode(), new.encode())],
        tmp_path,
    )
    assert [line for line in diff.splitlines() if line.startswith("@@")] == [
        "@@ -48,7 +48,8 @@",
        "@@ -78,7 +79,6 @@",
    ]
    (tmp_path / "f").write_text(old, encoding="utf-8")
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    assert (tmp_path / "f").read_text(encoding="utf-8") == new


def test_large_changes_are_only_named():
    old = b"".join(b"%d\n" % i for i in range(5000))
    new = b"".join(b"x%d\n" % i for i in range(6000))
    assert git_diff([PatchedFile(ROOT / "f", "update", None, old, new)], ROOT) == (
        "diff --git a/f b/f\nNot shown: 5000 lines from line 1 become 6000\n"
    )
    assert git_diff(
        [PatchedFile(ROOT / "f", "update", None, b"a" * 4_200_000, b"b")], ROOT
    ) == ("diff --git a/f b/f\nNot shown: 4200000 bytes become 1\n")


def test_the_whole_diff_is_bounded():
    change = PatchedFile(ROOT / "f", "add", None, None, b"x" * 600_000)
    diff = git_diff([change] * 3, ROOT)
    assert diff.endswith(
        "diff --git a/f b/f\nnew file mode 100644\nNot shown: the diff is too long\n"
    )
    assert len(diff) < 1_300_000
