"""`codex-py undo`, the real program."""

import json
import os
import re
import socket
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest

from codex_py.cli.help_pages import help_text
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies.store import stores
from tests.support.patching import killed_at, patch
from tests.support.program import run_codex_py

UPDATE = ("*** Update File: a", "-1", "+2", "*** Add File: sub/b", "+x")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    for name in ("home", "root"):
        (tmp_path / name).mkdir()
    (tmp_path / "root" / "a").write_text("1\n", encoding="utf-8")
    return Journal(tmp_path / "home", tmp_path / "root")


def undo(journal: Journal, *argv: str) -> subprocess.CompletedProcess[bytes]:
    return run_codex_py(["undo", *argv], journal.cwd.parent / "home", journal.cwd)


def outcome(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str, str]:
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_last_patch_is_undone_and_done_again(journal: Journal):
    patch(journal, *UPDATE)
    assert outcome(undo(journal)) == (
        0,
        "Undid patch 1:\nM a\nD sub/b\nTo do it again: codex-py undo 2\n",
        "",
    )
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "1\n"
    assert not (journal.cwd / "sub").exists()
    assert outcome(undo(journal, "2")) == (
        0,
        "Redid what undo 2 took back:\nM a\nA sub/b\nTo undo it: codex-py undo 3\n",
        "",
    )
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "2\n"


def test_there_may_be_nothing_to_undo(journal: Journal):
    assert outcome(undo(journal)) == (
        1,
        "",
        f"Error: nothing to undo: no patch and no turn changed anything in {journal.cwd}\n",
    )
    assert outcome(undo(journal, "--list")) == (0, "No patches are kept.\n", "")
    assert list((journal.cwd.parent / "home").iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "made"), [("a symbolic link", "link"), ("no folder", "file")]
)
def test_a_link_or_a_file_in_place_of_a_folder_is_named(
    journal: Journal, kind: str, made: str
) -> None:
    (journal.cwd / "sub").mkdir()
    (journal.cwd / "sub" / "b").write_text("x\n", encoding="utf-8")
    patch(journal, "*** Update File: sub/b", "-x", "+y")
    (journal.cwd / "sub" / "b").unlink()
    (journal.cwd / "sub").rmdir()
    if made == "link":
        (journal.cwd / "sub").symlink_to("/etc")
    else:
        (journal.cwd / "sub").touch()
    assert outcome(undo(journal, "--force")) == (
        7,
        "",
        f"Error: Failed to write file {journal.cwd}/sub/b: {journal.cwd}/sub is {kind} (os error 17)\n",
    )


def test_an_edit_since_stops_it_unless_forced(journal: Journal):
    patch(journal, *UPDATE)
    (journal.cwd / "a").write_text("2\nmine\n", encoding="utf-8")
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 2\n+mine\n"
    message = f"patch 1 was not undone: edited since: {journal.cwd}/a"
    assert outcome(undo(journal)) == (
        7,
        diff,
        f"Error: {message}; --force undoes it all the same, and keeps what it replaces\n",
    )
    told = undo(journal, "--json")
    assert told.returncode == 7
    assert json.loads(told.stdout) == {
        "error": {"code": "edited_since", "message": message},
        "diff": diff,
    }
    assert undo(journal, "--force").returncode == 0
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "1\n"


def test_of_many_edited_files_the_first_are_named(journal: Journal):
    names = [f"f{number:04}" for number in range(1020)]
    patch(
        journal, *(line for name in names for line in (f"*** Add File: {name}", "+x"))
    )
    for name in names:
        (journal.cwd / name).write_text("mine\n", encoding="utf-8")
    code, _, err = outcome(undo(journal))
    assert (code, err.count(", "), "f0019 and 1,000 more;" in err) == (7, 20, True)


def test_patches_are_listed_the_newest_first(journal: Journal):
    patch(journal, *UPDATE)
    undo(journal)
    patch(
        Journal(journal.cwd.parent / "home", journal.cwd.parent),
        *(line for n in range(5) for line in (f"*** Add File: \x1b[3{n}mn{n}", "+x")),
    )
    (journal.cwd.parent / "home/codex-py/journal/9.committed").write_bytes(b"?")
    listed = undo(journal, "--list").stdout.decode()
    root = str(journal.cwd)
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "T", listed).split("\n") == [
        f"ID  TIME                 STATE                {'DIRECTORY':{len(root)}}  FILES",
        f"3   T  committed            {journal.cwd.parent!s:{len(root)}}  "
        "\u241b[30mn0, \u241b[31mn1, \u241b[32mn2 and 2 more",
        f"2   T  undoes 1, committed  {root}  a, sub/b",
        f"1   T  undone               {root}  a, sub/b",
        "9                        damaged",
        "",
    ]
    rows = [
        json.loads(line)
        for line in undo(journal, "--list", "--json").stdout.splitlines()
    ]
    for row in rows:
        row.pop("time", None)
    files = {
        "committed": [
            {"path": f"{root}/a", "kind": "update"},
            {"path": f"{root}/sub/b", "kind": "delete"},
        ],
        "undone": [
            {"path": f"{root}/a", "kind": "update"},
            {"path": f"{root}/sub/b", "kind": "add"},
        ],
    }
    assert rows[1:] == [
        {
            "id": 2,
            "cwd": root,
            "state": "committed",
            "undoes": 1,
            "files": files["committed"],
        },
        {"id": 1, "cwd": root, "state": "undone", "files": files["undone"]},
        {"id": 9, "state": "damaged"},
    ]


def test_a_patch_is_shown_without_a_change(journal: Journal):
    patch(journal, *UPDATE)
    (journal.cwd / "a").write_text("mine\n", encoding="utf-8")
    diff = (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
        "diff --git a/sub/b b/sub/b\nnew file mode 100644\n--- /dev/null\n+++ b/sub/b\n@@ -0,0 +1 @@\n+x\n"
    )
    assert outcome(undo(journal, "--show")) == (0, diff, "")
    assert json.loads(undo(journal, "--show", "1", "--json").stdout)["diff"] == diff
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "mine\n"


def test_json_says_what_was_undone(journal: Journal):
    patch(journal, *UPDATE)
    assert json.loads(undo(journal, "--json").stdout) == {
        "undone": 1,
        "id": 2,
        "files": [
            {"path": f"{journal.cwd}/a", "kind": "update"},
            {"path": f"{journal.cwd}/sub/b", "kind": "delete"},
        ],
    }


def test_another_folder_may_be_named(journal: Journal):
    patch(Journal(journal.cwd.parent / "home", journal.cwd.parent), "*** Add File: x")
    assert undo(journal).returncode == 1
    assert undo(journal, "-C", "..").returncode == 0
    assert not (journal.cwd.parent / "x").exists()


def test_a_folder_that_is_not_there_is_told(journal: Journal):
    assert outcome(undo(journal, "-C", "missing")) == (
        2,
        "",
        "Error: cannot work in 'missing': No such file or directory\n",
    )


def test_an_interrupted_change_is_recovered_before_the_undo(journal: Journal):
    patch(journal, "*** Add File: first")
    for moment in range(40):
        assert killed_at(moment, lambda: patch(journal, *UPDATE))
        if (journal.cwd / "sub").exists():
            break
    assert outcome(undo(journal)) == (
        0,
        "Undid patch 1:\nD first\nTo do it again: codex-py undo 2\n",
        f"A patch in {journal.cwd} was cut off while it was written; it has been taken back.\n",
    )
    assert [path.name for path in journal.cwd.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["x"], "id: 'x' is no number; see --list"),
        (["--list", "1"], "--list stands alone"),
        (["--show", "--force"], "--show changes nothing, so there is nothing to force"),
        (["--forse"], "unknown option --forse. Did you mean --force?"),
    ],
)
def test_mistakes_are_told(journal: Journal, argv: list[str], message: str):
    assert outcome(undo(journal, *argv)) == (2, "", f"Error: {message}\n")


def test_help_is_printed(journal: Journal):
    assert outcome(undo(journal, "--help")) == (0, help_text("undo"), "")


def put_in_place(path: Path, kind: str) -> None:
    """Remove a file, and put something that is not a regular file in its place."""
    path.unlink()
    match kind:
        case "a named pipe":
            os.mkfifo(path)
        case "a folder":
            path.mkdir()
        case "a device":
            path.symlink_to("/dev/zero")
        case "a link that leads nowhere":
            path.symlink_to("nowhere")
        case _:
            # The address of a socket has at most 107 bytes; the folders of a test may be deeper.
            with socket.socket(socket.AF_UNIX) as server, chdir(path.parent):
                server.bind(path.name)


KINDS = (
    "a named pipe",
    "a folder",
    "a device",
    "a link that leads nowhere",
    "a socket",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["committed", "interrupted"])
def test_a_record_that_is_not_a_regular_file_is_named_as_damaged(
    journal: Journal, kind: str, state: str
) -> None:
    patch(journal, *UPDATE)
    patch(journal, "*** Update File: a", "-2", "+3")
    records = journal.home / "codex-py" / "journal"
    (records / "2.committed").rename(records / f"2.{state}")
    put_in_place(records / f"2.{state}", kind)
    code, listed, errors = outcome(undo(journal, "--list"))
    assert (code, errors) == (0, "")
    assert listed.splitlines()[-1].split() == ["2", "damaged"]
    sentence = (
        "Error: the record of patch 2 is damaged, so it cannot be undone;"
        " `codex-py undo 1` undoes the newest one before it\n"
    )
    assert outcome(undo(journal)) == (1, "", sentence)
    for argv in (["2"], ["2", "--show"], ["2", "--force"]):
        code, out, errors = outcome(undo(journal, *argv))
        assert (code, out) == (1, "")
        assert errors == f"Error: patch 2 cannot be read: it is {kind}\n"
    # The journal can still be written.
    patch(journal, "*** Update File: a", "-3", "+4")
    code, _, errors = outcome(undo(journal))
    assert (code, errors) == (0, "")
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "3\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["prepared", "applied", "writing"])
def test_an_unfinished_record_that_is_not_a_regular_file_is_named_once(
    journal: Journal, kind: str, state: str
) -> None:
    patch(journal, *UPDATE)
    record = journal.home / "codex-py" / "journal" / f"2.{state}"
    record.touch()
    put_in_place(record, kind)
    expected = ""
    if state != "writing":
        expected = (
            "A patch was cut off and cannot be taken back: its record is damaged"
            f" (it is {kind}).\n"
        )
    code, _, errors = outcome(undo(journal, "--list"))
    assert (code, errors) == (0, expected)
    code, _, errors = outcome(undo(journal, "--list"))
    assert (code, errors) == (0, "")
    assert outcome(undo(journal, "1"))[0] == 0


def test_a_record_may_be_a_link_to_a_regular_file(journal: Journal) -> None:
    patch(journal, *UPDATE)
    record = journal.home / "codex-py" / "journal" / "1.committed"
    elsewhere = journal.home / "elsewhere"
    record.rename(elsewhere)
    record.symlink_to(elsewhere)
    assert outcome(undo(journal))[0] == 0
    assert (journal.cwd / "a").read_text(encoding="utf-8") == "1\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_of_a_turn_that_is_not_a_regular_file_is_named_once(
    journal: Journal, kind: str
) -> None:
    patch(journal, *UPDATE)
    store = stores(journal.home) / "one"
    store.mkdir(parents=True)
    record = store / "thread.turn"
    record.touch()
    put_in_place(record, kind)
    sentence = f"A turn was cut off and cannot be undone: its record is damaged (it is {kind}).\n"
    code, _, errors = outcome(undo(journal, "--list"))
    assert (code, errors) == (0, sentence)
    code, _, errors = outcome(undo(journal))
    assert (code, errors) == (0, "")
