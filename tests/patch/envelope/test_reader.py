"""Behaviour of Codex 0.169's `apply_patch`, and where more is read than it reads."""

import pytest

from codex_py.errors import PatchError
from codex_py.patch.envelope.reader import (
    AddFile,
    DeleteFile,
    Hunk,
    UpdateFile,
    is_enveloped,
    parse_patch,
)

HEADERS = "'*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def hunk(
    *,
    headers: tuple[str, ...] = (),
    old: tuple[str, ...] = (),
    new: tuple[str, ...] = (),
    context: tuple[tuple[int, int], ...] = (),
    end_of_file: bool = False,
    line: int,
) -> Hunk:
    return Hunk(line, list(headers), list(old), list(new), list(context), end_of_file)


def refusal(text: str) -> str:
    with pytest.raises(PatchError) as caught:
        parse_patch(text)
    assert caught.value.kind == "parse"
    return str(caught.value)


def test_all_sections_are_read_in_order():
    text = enveloped(
        "*** Add File: a b.txt  ",
        "+one",
        "++two",
        "*** Delete File:  odd",
        "*** Update File: c",
        "*** Move to: d",
        "@@ def f():",
        " keep",
        "-old ",
        "+new",
        "",
        "@@",
        "-last",
        "*** End of File",
    )
    assert parse_patch(text) == (
        AddFile("a b.txt", "one\n+two\n"),
        DeleteFile(" odd"),
        UpdateFile(
            "c",
            "d",
            (
                hunk(
                    headers=("def f():",),
                    old=("keep", "old ", ""),
                    new=("keep", "new", ""),
                    context=((0, 0), (2, 2)),
                    line=8,
                ),
                hunk(old=("last",), end_of_file=True, line=13),
            ),
        ),
    )


def test_blanks_around_the_text_and_carriage_returns_are_dropped():
    text = (
        "\u3000\n"
        + enveloped("*** Add File: a", "+x\ry").replace("\n", "\r\n")
        + "\r\n\n"
    )
    assert parse_patch(text) == (AddFile("a", "x\ry\n"),)


@pytest.mark.parametrize("start", ["<<EOF", "<<'EOF'", '<<"EOF"'])
def test_a_heredoc_wrapper_is_taken_off(start: str):
    assert parse_patch(f"{start}\n{enveloped('*** Delete File: a')}\nEOF") == (
        DeleteFile("a"),
    )


def test_a_first_hunk_needs_no_marker_and_blank_lines_are_context():
    text = enveloped("*** Update File: a", "", "   ", "-x")
    section = UpdateFile(
        "a",
        None,
        (hunk(old=("", "  ", "x"), new=("", "  "), context=((0, 0), (1, 1)), line=3),),
    )
    assert parse_patch(text) == (section,)


def test_an_indented_header_is_context_in_an_update_and_a_header_elsewhere():
    update = hunk(
        old=("*** Add File: b",), new=("*** Add File: b",), context=((0, 0),), line=5
    )
    text = enveloped(
        "*** Add File: x",
        " *** Update File: a",
        "@@ ",
        " *** Add File: b",
        " *** Delete File: c",
    )
    (first, section) = parse_patch(text)
    assert first == AddFile("x", "")
    assert isinstance(section, UpdateFile)
    assert section.hunks[0].old_lines[0] == update.old_lines[0]


def test_the_last_line_ends_an_update_even_indented():
    text = "*** Begin Patch\n*** Update File: a\n+x\n   *** End Patch"
    assert parse_patch(text) == (UpdateFile("a", None, (hunk(new=("x",), line=3),)),)


def test_an_environment_is_passed_over():
    text = enveloped("*** Environment ID:e1", "*** Delete File: a")
    assert parse_patch(text) == (DeleteFile("a"),)


def test_an_end_of_file_line_before_any_hunk_is_ignored():
    text = enveloped("*** Update File: a", "*** End of File", "+x")
    assert parse_patch(text) == (UpdateFile("a", None, (hunk(new=("x",), line=4),)),)


def test_end_of_file_lines_may_come_before_a_move():
    text = enveloped(
        "*** Update File: a",
        "*** End of File",
        "*** End of File",
        "*** Move to: b",
        "+x",
    )
    assert parse_patch(text) == (UpdateFile("a", "b", (hunk(new=("x",), line=6),)),)


def test_a_patch_without_sections_is_read():
    assert parse_patch(enveloped()) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid patch: The last line of the patch must be '*** End Patch'"),
        ("x", "Invalid patch: The first line of the patch must be '*** Begin Patch'"),
        (
            "*** Begin Patch",
            "Invalid patch: The last line of the patch must be '*** End Patch'",
        ),
        (
            "*** Begin Patch\r*** End Patch",
            "Invalid patch: The first line of the patch must be '*** Begin Patch'",
        ),
        (
            "*** begin patch\n*** End Patch",
            "Invalid patch: The first line of the patch must be '*** Begin Patch'",
        ),
        (
            enveloped("*** End Patch", "*** Delete File: a"),
            "Invalid patch: The last line of the patch must be '*** End Patch'",
        ),
        (
            enveloped("*** Environment ID: "),
            "Invalid patch: apply_patch environment_id cannot be empty",
        ),
        (
            enveloped("*** Environment ID: a", "*** Environment ID: b"),
            "Invalid patch: apply_patch environment_id cannot be specified more than once",
        ),
        (
            enveloped("  garbage "),
            f"Invalid patch hunk on line 2: 'garbage' is not a valid hunk header. Valid hunk headers: {HEADERS}",
        ),
        (
            enveloped("*** Add File: a", "+x", "y"),
            f"Invalid patch hunk on line 4: 'y' is not a valid hunk header. Valid hunk headers: {HEADERS}",
        ),
        (
            enveloped("*** Add File: a", "+x", "", "+y"),
            f"Invalid patch hunk on line 4: '' is not a valid hunk header. Valid hunk headers: {HEADERS}",
        ),
        (
            enveloped("*** Add File: "),
            f"Invalid patch hunk on line 2: '*** Add File:' is not a valid hunk header. Valid hunk headers: {HEADERS}",
        ),
        (
            enveloped("*** Delete File: x", "*** Update File: a"),
            "Invalid patch hunk on line 3: Update file hunk for path 'a' is empty",
        ),
        (
            enveloped("*** Update File: a", "*** Move to: b"),
            "Invalid patch hunk on line 2: Update file hunk for path 'a' is empty",
        ),
        (
            enveloped("*** Update File: a", "@@ x"),
            "Invalid patch hunk on line 4: Update hunk does not contain any lines",
        ),
        (
            enveloped("*** Update File: a", "@@", "*** Delete File: b"),
            "Invalid patch hunk on line 4: Unexpected line found in update hunk: '*** Delete File: b'. "
            "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)",
        ),
        (
            enveloped("*** Update File: a", "@@", "*** Delete File: b \t"),
            "Invalid patch hunk on line 4: Unexpected line found in update hunk: '*** Delete File: b'. "
            "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)",
        ),
        (
            enveloped("*** Update File: a", "@@", "x \t"),
            "Invalid patch hunk on line 4: Unexpected line found in update hunk: 'x \t'. "
            "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)",
        ),
        (
            enveloped("*** Update File: a", "\tx"),
            "Invalid patch hunk on line 3: Unexpected line found in update hunk: '\tx'. Every line "
            "should start with ' ' (context line), '+' (added line), or '-' (removed line)",
        ),
        (
            enveloped("*** Update File: a", "-x", "\\ No newline at end of file"),
            "Invalid patch hunk on line 4: Expected update hunk to start with a @@ context marker, "
            "got: '\\ No newline at end of file'",
        ),
        (
            enveloped("*** Update File: a", "-x", "*** End of File", "-y"),
            "Invalid patch hunk on line 5: Expected update hunk to start with a @@ context marker, "
            "got: '-y'",
        ),
        (
            enveloped("*** Update File: a", "@@@", "-x"),
            "Invalid patch hunk on line 3: Unexpected line found in update hunk: '@@@'. Every line "
            "should start with ' ' (context line), '+' (added line), or '-' (removed line)",
        ),
    ],
)
def test_a_malformed_patch_is_refused_in_the_words_of_codex(text: str, message: str):
    assert refusal(text) == message


def test_an_error_keeps_its_line_and_reason_apart():
    with pytest.raises(PatchError) as caught:
        parse_patch(enveloped("*** Update File: a"))
    assert (caught.value.line, caught.value.reason) == (
        2,
        "Update file hunk for path 'a' is empty",
    )


def test_lone_surrogates_are_refused():
    assert refusal(enveloped("*** Add File: a", "+\ud800")) == (
        "Invalid patch: the patch is not valid Unicode text"
    )


def test_headers_in_a_row_belong_to_one_hunk():
    text = enveloped("*** Update File: a", "@@ class A:", "@@", "@@  def f():", "-x")
    section = UpdateFile(
        "a", None, (hunk(headers=("class A:", " def f():"), old=("x",), line=3),)
    )
    assert parse_patch(text) == (section,)


def test_blank_lines_between_sections_are_passed_over():
    text = enveloped("", "*** Add File: a", "+x", " ", "", "*** Delete File: b", "")
    assert parse_patch(text) == (AddFile("a", "x\n"), DeleteFile("b"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("```", "```"),
        ("Here is the patch:\n\n```diff", "```\nThat is all."),
        ("apply_patch <<'PATCH'", "PATCH"),
        ("\ufeff", ""),
    ],
)
def test_text_around_a_single_patch_is_removed(before: str, after: str):
    newline = "" if before == "\ufeff" else "\n"
    text = f"{before}{newline}{enveloped('*** Delete File: a')}\n{after}"
    assert parse_patch(text) == (DeleteFile("a"),)


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{enveloped('*** Delete File: a')}\n{enveloped('*** Delete File: b')}\n```",
        f"```\n{enveloped('*** Delete File: a')}\n+more\n```",
        f'bash -lc "apply_patch <<EOF\n{enveloped("*** Delete File: a")}\nEOF"',
        "prose\n*** Begin Patch\n*** Delete File: a",
    ],
)
def test_an_uncertain_patch_is_not_peeled(text: str):
    assert refusal(text).startswith("Invalid patch: The first line")


def test_a_bare_patch_is_told_by_its_first_and_last_line():
    assert is_enveloped("\n" + enveloped("anything") + "\n")
    assert not is_enveloped("x\n" + enveloped())
    assert not is_enveloped("")
