"""Places as `git apply` and `patch` choose them, unless a test says otherwise."""

import pytest

from codex_py.patch.match import Level
from codex_py.patch.report import HunkReport
from codex_py.patch.unified.apply import Applied, apply_hunks
from codex_py.patch.unified.reader import read_diff

PATH = "/p/f"


def apply(data: str, *hunks: str, strict: bool = False) -> Applied:
    (file,) = read_diff(("--- f\n+++ f\n" + "".join(hunks)).encode())
    return apply_hunks(data.encode(), file.hunks, PATH, strict=strict)


def result(data: str, *hunks: str) -> str:
    applied = apply(data, *hunks)
    assert not applied.failures
    return applied.data.decode()


def failure(data: str, *hunks: str, strict: bool = False) -> str:
    applied = apply(data, *hunks, strict=strict)
    assert applied.data.decode() == data
    ((_hunk, reason),) = applied.failures
    return reason


def numbered(*numbers: int) -> str:
    return "".join(f"{number}\n" for number in numbers)


FIFTH = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
NINE = numbered(*range(1, 10))


def test_a_hunk_goes_where_it_says():
    applied = apply(NINE, FIFTH)
    assert applied.data.decode() == NINE.replace("5", "five")
    assert applied.reports == [HunkReport(PATH, 1, 3, 2, 0)]


def test_a_hunk_goes_to_the_nearest_place_that_fits():
    block = "a\nb\nc\n"
    applied = apply(
        "x\n" + block + "x\n" * 5 + block, "@@ -8,3 +8,3 @@\n a\n-b\n+B\n c\n"
    )
    assert applied.data.decode() == "x\n" + block + "x\n" * 5 + "a\nB\nc\n"
    assert applied.reports == [HunkReport(PATH, 1, 3, 10, 2, also_at=(2,))]


def test_the_next_hunk_is_moved_as_the_one_before_was():
    text = "new\n" * 2 + "a\n" + "s\n" * 9
    hunks = ("@@ -1,2 +1,2 @@\n-a\n+A\n s\n", "@@ -5 +5 @@\n-s\n+S\n")
    applied = apply(text, *hunks)
    assert applied.data.decode() == "new\n" * 2 + "A\n" + "s\n" * 3 + "S\n" + "s\n" * 5
    assert [(report.placed, report.offset) for report in applied.reports] == [
        (3, 2),
        (7, 2),
    ]


def test_a_hunk_without_trailing_context_belongs_at_the_end():
    hunk = "@@ -1,2 +1,3 @@\n a\n b\n+c\n"
    assert result("a\nb\na\nb\n", hunk) == "a\nb\na\nb\nc\n"
    # `git apply` refuses what is not at the end.
    assert result("a\nb\nx\n", hunk) == "a\nb\nc\nx\n"


def test_outer_context_may_differ_by_two_lines():
    text = NINE.replace("2", "two").replace("8", "eight").replace("7", "seven")
    applied = apply(text, FIFTH)
    assert applied.data.decode() == text.replace("5", "five")
    assert applied.reports == [HunkReport(PATH, 1, 3, 2, 0, fuzz=2)]
    assert apply(text.replace("4", "four"), FIFTH).failures


def test_fuzz_leaves_something_to_find():
    assert apply("x\n" * 5, "@@ -1,2 +1,3 @@\n a\n+new\n b\n").failures


def test_blanks_may_differ_last_of_all():
    applied = apply(
        "\tif x:\n\t\told\nend\n", "@@ -1,3 +1,3 @@\n if x:\n-old\n+new\n end\n"
    )
    assert applied.data.decode() == "\tif x:\nnew\nend\n"
    assert applied.reports == [HunkReport(PATH, 1, 3, 1, 0, level=Level.INDENTATION)]
    # An exact place with fuzz is preferred to a lenient one without.
    text = " a\nb\nc\nd\ne\n"
    assert apply(text, "@@ -1,5 +1,5 @@\n a\n b\n-c\n+C\n d\n e\n").reports[0].fuzz == 1


def test_added_lines_end_as_those_around_them_do():
    hunk = "@@ -1,2 +1,3 @@\n a\n+x\n b\n"
    assert result("a\r\nb\r\n", hunk) == "a\r\nx\r\nb\r\n"
    with_crlf = "".join(line + "\r\n" for line in hunk.splitlines())
    assert result("a\nb\n", with_crlf) == "a\nx\nb\n"


@pytest.mark.parametrize(
    ("data", "hunk", "expected"),
    [
        ("y\n", "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", "x\ny\n"),
        (
            "\n\ny\n",
            "@@ -1 +1,2 @@\n \n+x\n\\ No newline at end of file\n",
            "\nx\n\ny\n",
        ),
        ("y", "@@ -1,0 +2 @@\n+x\n", "y\nx\n"),
    ],
)
def test_lines_are_not_joined_where_a_newline_is_missing_that_others_follow(
    data: str, hunk: str, expected: str
):
    """A diff that is for another end of the file than it has."""
    assert result(data, hunk) == expected


def test_only_the_first_failures_are_explained():
    hunks = [f"@@ -{n} +{n} @@\n-x{n}\n+y\n" for n in range(1, 8)]
    reasons = [reason for _, reason in apply(NINE, *hunks).failures]
    assert reasons[4] == (
        f"{PATH}: hunk 5 (line 15 of the patch) does not fit at line 5. "
        "Nothing in the file (9 lines) resembles these lines."
    )
    assert (
        reasons[5] == f"{PATH}: hunk 6 (line 18 of the patch) does not fit at line 6."
    )


def test_a_newline_at_the_end_is_heeded_and_not_invented():
    marker = "\\ No newline at end of file\n"
    assert result("a\nb", f"@@ -2 +2 @@\n-b\n{marker}+c\n") == "a\nc\n"
    assert result("a\nb\n", f"@@ -2 +2 @@\n-b\n+c\n{marker}") == "a\nc"
    assert result("a\nb", f"@@ -1,2 +1,2 @@\n-a\n+x\n b\n{marker}") == "x\nb"
    # The diff knows nothing of the missing newline.
    assert result("a\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n") == "x\nb"
    assert result("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n") == "a\nb\nc\n"


def test_hunks_without_context_go_by_their_numbers():
    assert (
        result("x\n" * 4, "@@ -2,0 +3 @@\n+y\n", "@@ -4 +5 @@\n-x\n+z\n")
        == "x\nx\ny\nx\nz\n"
    )
    assert result("", "@@ -0,0 +1 @@\n+y\n") == "y\n"


def test_bytes_that_are_not_touched_stay():
    (file,) = read_diff(b"--- f\n+++ f\n@@ -1,3 +1,3 @@\n \xff\r\n-a\n+\xfe\n \x85\n")
    applied = apply_hunks(b"new\n\xff\r\na\n\x85\n\0\r", file.hunks, PATH, strict=False)
    assert applied.data == b"new\n\xff\r\n\xfe\n\x85\n\0\r"


def test_a_guessed_place_is_refused_if_strict():
    moved = "0\n" + NINE
    assert not apply(moved, FIFTH, strict=True).failures
    assert failure(moved + NINE, FIFTH, strict=True) == (
        "/p/f: hunk 1 does not fit at line 2, but at several others: 3, 12."
    )
    assert failure(NINE.replace("2", "two"), FIFTH, strict=True) == (
        "/p/f: hunk 1 does not fit exactly: at line 2, some of its context differs."
    )
    assert failure("a\n", "@@ -5,0 +6 @@\n+x\n", strict=True) == (
        "/p/f: hunk 1 should go to line 6, which the file does not have."
    )


LAST = "@@ -1,2 +1,3 @@\n a\n b\n+c\n"
FIRST = "@@ -1,2 +1,3 @@\n+c\n a\n b\n"


def test_a_hunk_with_context_on_one_side_is_at_that_end_of_the_file_if_strict():
    assert apply("a\nb\nx\na\nb\n", LAST, strict=True).reports == [
        HunkReport(PATH, 1, 3, 4, 3)
    ]
    assert apply("a\nb\nx\na\nb\n", FIRST, strict=True).reports == [
        HunkReport(PATH, 1, 3, 1, 0)
    ]
    assert failure("a\nb\nx\n", LAST, strict=True) == (
        "/p/f: hunk 1 is for the end of a file; where it fits, at line 1, others follow."
    )
    assert failure("x\na\nb\n", FIRST, strict=True) == (
        "/p/f: hunk 1 is for the beginning of a file; it fits at line 2."
    )
    # Without any context, there is only the line number to go by.
    bare = "@@ -2 +2 @@\n-b\n+c\n"
    assert not apply("a\nb\nx\n", bare, strict=True).failures
    assert failure("a\nx\nb\n", bare, strict=True) == (
        "/p/f: hunk 1 does not fit at line 2, and has no context that says it goes to 3."
    )


def test_hunks_that_fit_are_applied_without_the_others():
    bad = "@@ -7 +7 @@\n-x\n+y\n"
    applied = apply(NINE, "@@ -1 +1 @@\n-1\n+one\n", bad, "@@ -9 +9 @@\n-9\n+nine\n")
    assert applied.data.decode() == NINE.replace("1", "one").replace("9", "nine")
    assert [report.placed for report in applied.reports] == [1, None, 9]


@pytest.mark.parametrize(
    ("data", "hunks", "reason"),
    [
        (
            NINE.replace("5", "V"),
            (FIFTH,),
            "/p/f: hunk 1 (line 3 of the patch) does not fit at line 2. The nearest place is line 2. "
            "First difference, line 5: the file has 'V', the patch '5'.",
        ),
        (
            NINE.replace("5", "five"),
            (FIFTH,),
            "/p/f: hunk 1 (line 3 of the patch) does not fit at line 2. The lines that this hunk would make "
            "are already at line 2: it seems to be already applied.",
        ),
    ],
)
def test_a_failure_names_the_hunk_and_the_difference(
    data: str, hunks: tuple[str, ...], reason: str
):
    assert failure(data, *hunks) == reason


def test_hunks_may_not_share_lines():
    applied = apply(NINE, FIFTH, "@@ -8 +8 @@\n-8\n+eight\n")
    ((_, reason),) = applied.failures
    assert "It is at line 8, but the search began at line 9" in reason
