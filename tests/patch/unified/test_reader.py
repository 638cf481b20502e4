from io import StringIO

import pytest
from unidiff.patch import PatchSet

from codex_py.errors import PatchError
from codex_py.patch.unified.hunks import DiffHunk, FileDiff
from codex_py.patch.unified.reader import read_diff


def one(text: str) -> FileDiff:
    (file,) = read_diff(text.encode())
    return file


def error(text: str) -> str:
    with pytest.raises(PatchError) as caught:
        read_diff(text.encode())
    assert caught.value.kind == "parse"
    return str(caught.value)


PLAIN = "--- f.orig\t2020-01-01 10:00:00\n+++ f\t2020-01-02 10:00:00\n@@ -1,3 +1,3 @@ def x\n a\n-b\n+c\n d\n"


def test_a_plain_diff_is_read():
    assert vars(one(PLAIN)) == {
        "line": 1,
        "operation": "update",
        "old_name": "f.orig",
        "new_name": "f",
        "is_git": False,
        "has_prefix": True,
        "old_mode": None,
        "new_mode": None,
        "old_blob": None,
        "new_blob": None,
        "hunks": [
            DiffHunk(
                line=3,
                old_start=1,
                new_start=1,
                body=[b" a\n", b"-b\n", b"+c\n", b" d\n"],
                old=[b"a\n", b"b\n", b"d\n"],
                new=[b"a\n", b"c\n", b"d\n"],
                leading=1,
                trailing=1,
            ),
        ],
        "is_binary": False,
        "halves": [],
        "has_crlf": False,
    }


def test_text_around_a_diff_is_passed_over():
    text = f"From: me\n\nA message - with\n+ marks\n---\n f | 2 +-\n\n{PLAIN}-- \n2.39.5\n\nbye\n"
    assert one(text).hunks[0].old == one(PLAIN).hunks[0].old


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            "old mode 100644\nnew mode 100755\n",
            ("update", "a/x y", "b/x y", 0o100644, 0o100755),
        ),
        (
            "new file mode 100755\nindex 0000000..e69de29\n",
            ("add", "a/x y", "b/x y", None, 0o100755),
        ),
        ("deleted file mode 100644\n", ("delete", "a/x y", "b/x y", 0o100644, None)),
        ("rename from x y\nrename to z\n", ("rename", "x y", "z", None, None)),
        ('copy from x y\ncopy to "\\tz"\n', ("copy", "x y", "\tz", None, None)),
        (
            "index 1234567..89abcde 100644\n",
            ("update", "a/x y", "b/x y", 0o100644, 0o100644),
        ),
    ],
)
def test_headers_of_git_are_read(header: str, expected: tuple[object, ...]):
    file = one(f"diff --git a/x y b/x y\nsimilarity index 100%\n{header}")
    assert (
        file.operation,
        file.old_name,
        file.new_name,
        file.old_mode,
        file.new_mode,
    ) == expected


def test_new_and_deleted_files_of_plain_diffs_are_told_by_name_or_by_time():
    for name, time in (("/dev/null", ""), ("f", "\t1970-01-01 01:00:00 +0100")):
        assert one(f"--- {name}{time}\n+++ f\n@@ -0,0 +1 @@\n+x\n").operation == "add"
        assert (
            one(f"--- f\n+++ {name}{time}\n@@ -1 +0,0 @@\n-x\n").operation == "delete"
        )
    assert one("--- f\t2020-01-01\n+++ f\n@@ -0,0 +1 @@\n+x\n").operation == "update"


def test_a_last_line_without_newline_has_none():
    hunk = one(
        "--- f\n+++ f\n@@ -1,2 +1,2 @@\n x\n-a\n\\ No newline at end of file\n+b\n\\ Kein Zeilenende\n"
    ).hunks[0]
    assert (hunk.old, hunk.new) == ([b"x\n", b"a"], [b"x\n", b"b"])


def test_lines_that_look_like_headers_are_lines():
    text = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n--- a\n-@@ -1 +1 @@\n+++ b\n+diff --git a/x b/x\n"
    hunk = one(text).hunks[0]
    assert (hunk.old, hunk.new) == (
        [b"-- a\n", b"@@ -1 +1 @@\n"],
        [b"++ b\n", b"diff --git a/x b/x\n"],
    )


def test_an_empty_line_in_a_hunk_is_empty_context():
    assert one("--- f\n+++ f\n@@ -1,2 +1,3 @@\n\n+x\n a\n").hunks[0].old == [
        b"\n",
        b"a\n",
    ]


def test_bytes_stay_as_they_are():
    (file,) = read_diff(
        b"--- caf\xe9\n+++ caf\xe9\n@@ -1 +1 @@\n-\xff\r\n+\0\x85\x0c\n"
    )
    assert (file.old_name, file.hunks[0].old, file.hunks[0].new) == (
        "caf\udce9",
        [b"\xff\r\n"],
        [b"\0\x85\x0c\n"],
    )


_DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


# As `git apply`: the names of a file count where a hunk follows.
@pytest.mark.parametrize(
    "before",
    [
        "The header was:\n--- old/name\n+++ new/name\nok.\n---\n f | 2 +-\n\n",
        "The header was:\n--- a/f\n+++ b/f\nok.\n\n",
        "--- x\n+++ y\n--- v\n+++ w\nthe end\n",
        "> --- a/f\n> +++ b/f\n> @@ -1 +1 @@\n> -a\n> +b\n\n",
        "*** Begin Patch\n*** Update File: f\n--- q\n+++ r\n*** End Patch\n",
    ],
)
@pytest.mark.parametrize("diff", [_DIFF, _DIFF.partition("\n")[2]])
def test_text_that_quotes_the_names_of_a_file_is_text(before: str, diff: str):
    (file,) = read_diff(f"{before}{diff}-- \n2.39.2\n".encode())
    assert (file.old_name, len(file.hunks)) == ("a/f", 1)
    assert len(read_diff(f"{diff}\n{before}".encode())) == 1
    first, second = read_diff(f"{diff}\n{before}{diff}".encode())
    assert (first.hunks[0].new, second.hunks[0].new) == ([b"b\n"], [b"b\n"])


@pytest.mark.parametrize("before", ["", _DIFF])
def test_a_hunk_behind_quoted_names_belongs_to_no_file(before: str):
    text = f"{before}--- x\n+++ y\nwords\n@@ -1 +1 @@\n-a\n+b\n"
    assert "a hunk without the names of a file" in error(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk without the names of a file"),
        ("--- f\n+++ f\n@@ -a +b @@\n", "line 3: '@@ -a +b @@' is no hunk header"),
        ("--- f\n+++ f\n", "line 1: the diff ends before the first hunk of this file"),
        (
            "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n",
            "line 3: the diff is cut short: the hunk should",
        ),
        (
            "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n```\n",
            "line 5: the hunk should have 3 old and 3 new",
        ),
        (
            "--- f\n+++ f\n@@ -1 +1,3 @@\n-a\n-b\n+c\n",
            "line 3: the hunk has more lines than the 1",
        ),
        (
            "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n+c\n",
            "line 3: the hunk is longer than its header says",
        ),
        (
            "diff --cc f\nindex 1,2..3\n",
            "line 1: combined diffs, which git makes of merges",
        ),
        (
            "diff --git a/x b/y\nindex 1234..5678\n",
            "line 1: the name of the file cannot be told",
        ),
    ],
)
def test_a_diff_that_is_damaged_is_refused_by_line(text: str, message: str):
    assert f"Invalid patch hunk on {message}" in error(text)


def test_hunks_are_read_as_unidiff_reads_them():
    text = (
        PLAIN
        + PLAIN.replace("f", "g")
        + "@@ -8,0 +9,2 @@\n+x\n+y\n@@ -20 +22 @@\n-p\n+q\n"
    )
    theirs = [
        (
            hunk.source_start,
            hunk.target_start,
            [line.value for line in hunk.source_lines()],
            [line.value for line in hunk.target_lines()],
        )
        for file in PatchSet(StringIO(text, newline="\n"))
        for hunk in file
    ]
    ours = [
        (
            hunk.old_start,
            hunk.new_start,
            [line.decode() for line in hunk.old],
            [line.decode() for line in hunk.new],
        )
        for file in read_diff(text.encode())
        for hunk in file.hunks
    ]
    assert ours == theirs
