"""Places and line ends as in Codex 0.169, unless a test says otherwise.

Also tests `patch/report.py`.
"""

import pytest

from codex_py.errors import PatchError
from codex_py.patch.envelope.edit import edit_text
from codex_py.patch.envelope.reader import UpdateFile, parse_patch


def edited(text: str, *lines: str) -> str:
    return edit(text, *lines)[0]


def edit(text: str, *lines: str) -> tuple[str, tuple[str, ...]]:
    patch = "\n".join(
        ["*** Begin Patch", "*** Update File: f", *lines, "*** End Patch"]
    )
    (section,) = parse_patch(patch)
    assert isinstance(section, UpdateFile)
    new, reports = edit_text(text, section.hunks, "/p/f")
    return new, tuple(filter(None, [report.note() for report in reports]))


def failure(text: str, *lines: str) -> str:
    with pytest.raises(PatchError) as caught:
        edit(text, *lines)
    assert caught.value.kind == "match"
    return str(caught.value)


def test_a_header_moves_the_search_behind_its_line():
    text = "def f():\n  x\ndef g():\n  x\n"
    assert (
        edited(text, "@@ def g():", "-  x", "+  y") == "def f():\n  x\ndef g():\n  y\n"
    )


def test_headers_in_a_row_are_sought_in_turn():
    text = "class A:\n  def f():\n    x\nclass B:\n  def f():\n    x\n"
    changed = edited(text, "@@ class B:", "@@   def f():", "-    x", "+    y")
    assert changed == "class A:\n  def f():\n    x\nclass B:\n  def f():\n    y\n"


def test_the_search_only_moves_forward():
    text = "a\nb\n"
    assert failure(text, "@@", "-b", "@@", "-a").splitlines() == [
        "Failed to find expected lines in /p/f:",
        "a",
        "It is at line 1, but the search began at line 3, after the hunk or the @@ line before: hunks "
        "must be in the order of the file and may not share lines.",
    ]


def test_additions_alone_go_to_the_end():
    assert edited("a\nb", "@@", "+c", "@@", "+d", "@@", "-b", "+B") == "a\nB\nc\nd\n"


def test_additions_under_a_header_go_right_behind_it():
    # Codex puts them at the end of the file.
    assert edited("a\nb\n", "@@ a", "+x", "@@", "-b") == "a\nx\n"
    assert edited("a\nb\n", "@@ a", "+x", "*** End of File") == "a\nb\nx\n"


def test_end_of_file_is_strict():
    assert edited("a\nb\na\n", "-a", "+c", "*** End of File") == "a\nb\nc\n"
    assert failure("a\nb\n", "-a", "*** End of File").splitlines()[2:] == [
        "The lines are at line 1, which is not the end of the file (2 lines): leave out "
        "'*** End of File'."
    ]


def test_a_blank_line_too_many_is_forgiven():
    assert edited("a\nb", " a", "-", "+c") == "a\nc\nb\n"
    assert edited("a\nb\n", " a", "", "+c") == "a\n\nc\nb\n"
    assert edited("a\nb\n", "", "+c") == "\nc\na\nb\n"
    assert edited("a\nb\n", "@@ a", "-", "+c", "*** End of File") == "a\nc\nb\n"


def test_context_keeps_the_bytes_of_the_file():
    assert (
        edited("\tif x:  \r\n\t\told\r\n", " if x:", "-old", "+new")
        == "\tif x:  \r\nnew\r\n"
    )
    assert edited("say “hi”\nb\n", ' say "hi"', "-b") == "say “hi”\n"


def test_a_removed_and_added_line_of_equal_text_is_a_change():
    assert edited("a  \n", "-a", "+a") == "a\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\r\n", "x\nb\r\n"),
        ("a\r\nb\n", "x\r\nb\n"),
        ("a\rb\n", "x\rb\n"),
        ("a", "x\n"),
        ("a\r\nb", "x\r\nb\r\n"),
        ("a\x0bb\na", "a\x0bb\nx\n"),
    ],
)
def test_new_lines_get_the_first_terminator_and_the_last_line_one_too(
    text: str, expected: str
):
    assert edited(text, "-a", "+x") == expected


def test_a_context_only_hunk_still_ends_the_last_line():
    assert edited("a", " a") == "a\n"


def test_removing_all_lines_leaves_an_empty_text():
    assert edited("a\nb\n", "-a", "-b") == ""


def test_blank_lines_at_the_end_stay():
    assert edited("a\n\n\n", "-a", "+b") == "b\n\n\n"


def test_a_byte_order_mark_need_not_be_in_the_patch():
    # Codex finds line 1 only where the patch has the mark too.
    assert edited("\ufeffa\nb\n", "-a", "+x") == "\ufeffx\nb\n"
    assert edited("\ufeffa\nb\n", "+x", " a") == "\ufeffx\na\nb\n"
    assert edited("\ufeffa\nb\n", "-\ufeffa", "+x") == "x\nb\n"


def test_a_range_of_a_unified_diff_is_a_hint():
    # Codex looks for a line of this text.
    text = "x\n" * 9
    assert edited(text, "@@ -5,1 +5,1 @@", "-x", "+y") == "x\n" * 4 + "y\n" + "x\n" * 4
    text = "a\nx\nb\nx\n"
    assert edited(text, "@@ -1,1 +1,1 @@ b", "-x", "+y") == "a\nx\nb\ny\n"
    assert edited(text, "@@ -4,1 +4,1 @@ nowhere", "-x", "+y") == "a\nx\nb\ny\n"
    assert edited(text, "@@ -1,0 +2,1 @@", "+y") == "a\ny\nx\nb\nx\n"
    literal = "x\n-1,1 +1,1 @@ b\nx\n"
    assert edited(literal, "@@ -1,1 +1,1 @@ b", "-x") == "x\n-1,1 +1,1 @@ b\n"


def test_an_ambiguous_hunk_is_applied_at_the_first_place_and_says_so():
    assert edit("a\nb\na\nb\n", " a", "-b") == (
        "a\na\nb\n",
        ("/p/f: hunk 1 was applied at line 1 (it also fits at 3).",),
    )
    assert edit("a\nb\na\nb\n", "@@ a", "-b")[1] == ()


def test_a_lenient_match_says_so():
    assert edit("  a\n", "-a", "+b") == (
        "b\n",
        (
            "/p/f: hunk 1 was applied at line 1 (indentations differ, and added lines are as given).",
        ),
    )


def test_a_missing_header_names_the_nearest_line():
    assert failure("def foo(x, y):\n", "@@ def foo(x, z):", "-a") == (
        "Failed to find context 'def foo(x, z):' in /p/f\n"
        "The nearest place is line 1. First difference, line 1: the file has 'def foo(x, y):', "
        "the patch 'def foo(x, z):'."
    )


def test_missing_lines_name_the_first_that_differs():
    text = "a\nb\nc\nalpha\nbeta\ngamma\n"
    assert failure(text, " alpha", " beta", "-delta").splitlines()[1:] == [
        "alpha",
        "beta",
        "delta",
        "The nearest place is line 4. First difference, line 6: the file has 'gamma', the patch "
        "'delta'.",
    ]


def test_a_hunk_that_was_applied_before_is_recognised():
    assert failure("a\nx\n", " a", "-b", "+x").splitlines()[-1] == (
        "The lines that this hunk would make are already at line 1: it seems to be already applied."
    )


def test_every_hunk_that_does_not_fit_is_told_of():
    message = failure("a\nb\n", "@@", "-x", "@@", "-b", "@@ zz", "-y")
    assert message.startswith("Failed to find expected lines in /p/f:\nx\n")
    assert "\n\nFailed to find context 'zz' in /p/f\n" in message
