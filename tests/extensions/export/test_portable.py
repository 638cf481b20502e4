"""Sessions that are exported in one place and imported in another, here and in Codex.

Tests `app/patching.py` and `extensions/export/portable.py`.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.extensions.export.portable import (
    map_strings,
    marks_to_paths,
    paths_to_marks,
)
from codex_py.filesystem.private import record_folders
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.codex import CODEX, needs_codex
from tests.support.program import KEY, Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

GIT = (
    "git",
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@example.com",
    "-c",
    "commit.gpgsign=false",
)
ANSWER = [*ev_message("Go on."), ev_completed()]
GITHUB = f"ghp_{'a1' * 18}"


def sessions(place: Workplace, *words: str) -> tuple[int, str, str]:
    done = run_codex_py(["sessions", *words], place.home, place.cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def other(tmp_path: Path) -> Workplace:
    """The machine that a session is taken to; its folder has characters that JSON escapes."""
    place = Workplace(tmp_path / "other" / "home", tmp_path / "other" / 'my "repo" \\é')
    place.home.mkdir(parents=True)
    place.cwd.mkdir()
    return place


@pytest.fixture
def exported(place: Workplace) -> Path:
    """A named session with paths, keys and changes of files, as a portable file."""
    place.cwd.joinpath("notes.txt").write_text("one\n", encoding="utf-8")
    commit(place.cwd)
    here = place.cwd
    command = f"cat {here}/notes.txt {here}.bak {here}/notes.txt.; echo {KEY} {GITHUB}"
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-one\n+two\n*** Add File: new.txt\n+x\n*** End Patch\n"
    replies = [
        [
            *ev_function_call(
                "c1", "exec_command", {"cmd": command, "workdir": str(here)}
            ),
            ev_completed(),
        ],
        [*ev_custom_tool_call("c2", "apply_patch", patch), ev_completed()],
        [*ev_message(f"Done in {here}."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        thread_id = place.run(
            server, f"Look at {here}/, {place.home}/x and {place.home.parent}."
        ).events[0]["thread_id"]
    index = {
        "id": thread_id,
        "thread_name": "my work",
        "updated_at": "2026-11-20T17:52:59Z",
    }
    (place.home / "session_index.jsonl").write_text(
        json.dumps(index) + "\n", encoding="utf-8"
    )
    code, _, told = sessions(
        place, "export", "my work", "--portable", "-o", "../s.jsonl"
    )
    assert code == 0
    assert re.fullmatch(r"\d+ keys were replaced by \[redacted\]\.\n", told)
    return here.parent / "s.jsonl"


def commit(folder: Path) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


def test_a_portable_session_has_no_paths_and_no_keys(
    place: Workplace, exported: Path
) -> None:
    text = exported.read_text(encoding="utf-8")
    assert KEY not in text
    assert GITHUB not in text
    mark = json.loads(text.splitlines()[0])["mark"]
    without = text.replace(f"{place.cwd}.bak", "")
    assert str(place.cwd.parent) not in without.replace(f"{mark}:home>.bak", "")
    assert f"cat {mark}:cwd>/notes.txt" in text
    assert f"Look at {mark}:cwd>/, {mark}:codex_home>/x and {mark}:home>." in text


def test_the_name_of_a_portable_session_has_no_keys(
    place: Workplace, exported: Path
) -> None:
    index = place.home / "session_index.jsonl"
    index.write_text(
        index.read_text("utf-8").replace("my work", f"try {GITHUB}"), "utf-8"
    )
    assert sessions(place, "export", "--last", "--portable", "-o", "again")[0] == 0
    assert exported.exists()
    assert (
        json.loads((place.cwd / "again").read_bytes().splitlines()[0])["name"]
        == "try [redacted]"
    )


def test_an_import_takes_no_name_of_another_session(
    exported: Path, other: Workplace
) -> None:
    with ScriptedServer([ANSWER]) as server:
        own = other.run(server, "Hello").events[0]["thread_id"]
    entry = {"id": own, "thread_name": "my work", "updated_at": "2026-11-20T17:52:59Z"}
    index = other.home / "session_index.jsonl"
    index.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    code, text, told = sessions(other, "import", str(exported))
    assert code == 0
    assert "The name 'my work' is in use here: the imported session has none." in told
    assert own in sessions(other, "show", "my work")[1]
    imported = text.split()[-1].rstrip(".")
    assert sessions(other, "show", imported)[0] == 0
    assert "my work" not in sessions(other, "show", imported)[1]


def test_a_session_goes_on_in_another_folder(exported: Path, other: Workplace) -> None:
    code, text, told = sessions(other, "import", str(exported))
    thread_id = text.split()[-1].rstrip(".")
    assert (code, text) == (0, f"Imported session {thread_id}.\n")
    assert told.startswith(
        "It brought changes of files. To apply them: codex-py apply -C "
    )
    assert other.home / "codex-py" / "imports" in record_folders(other.home)
    with ScriptedServer([ANSWER] * 2) as server:
        other.run(server, "resume", "my work", "Now?")
        other.rerun("resume", "--last", "And now?")
    history = server.requests[0].input
    assert f"Done in {other.cwd}." in json.dumps(history, ensure_ascii=False).replace(
        '\\"', '"'
    ).replace("\\\\", "\\")
    (call,) = [item for item in history if item["type"] == "function_call"]
    arguments = json.loads(call["arguments"])
    assert arguments["workdir"] == str(other.cwd)
    assert arguments["cmd"].startswith(f"cat {other.cwd}/notes.txt ")
    assert arguments["cmd"].endswith("; echo [redacted] [redacted]")
    assert server.requests[1].headers["thread-id"] == thread_id


def take_over(place: Workplace, exported: Path, *words: str) -> None:
    """Import a session, and run the command that applies the changes of files."""
    told = sessions(place, "import", str(exported), *words)[2]
    command = shlex.split(told.partition("To apply them: ")[2])
    done = run_codex_py(command[1:], place.home, place.cwd)
    assert done.returncode == 0, done.stderr


def test_changes_of_files_come_along(exported: Path, other: Workplace) -> None:
    notes, below = other.cwd / "notes.txt", other.cwd / "below"
    notes.write_text("one\n", encoding="utf-8")
    below.mkdir()
    commit(other.cwd)
    take_over(other, exported, "--cwd", "below")
    assert notes.read_text(encoding="utf-8") == "two\n"
    assert (other.cwd / "new.txt").read_text(encoding="utf-8") == "x\n"


def test_files_come_along_as_they_are_or_are_named(
    place: Workplace, other: Workplace
) -> None:
    here = place.cwd
    (here / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (here / "long.txt").write_text("a\n" * 3000, encoding="utf-8")
    commit(here)
    with ScriptedServer([ANSWER]) as server:
        place.run(server, "prompt")
    (here / "run.sh").chmod(0o755)
    (here / "long.txt").write_text("b\n" * 3000, encoding="utf-8")
    (here / "empty").touch()
    (here / "link").symlink_to("run.sh")
    (here / "large").write_text("a\n" * 600_000, encoding="utf-8")
    (here / "image").write_bytes(b"\x89PNG\0")
    code, _, told = sessions(
        place, "export", "--last", "--portable", "-o", "../s.jsonl"
    )
    assert (code, told) == (
        0,
        "Files did not come along because they are too large, unreadable or not UTF-8: large, image.\n",
    )
    (other.cwd / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (other.cwd / "long.txt").write_text("a\n" * 3000, encoding="utf-8")
    take_over(other, here.parent / "s.jsonl")
    assert sorted(path.name for path in other.cwd.iterdir()) == [
        "empty",
        "link",
        "long.txt",
        "run.sh",
    ]
    assert (other.cwd / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (other.cwd / "long.txt").read_text(encoding="utf-8") == "b\n" * 3000
    assert (other.cwd / "empty").read_bytes() == b""
    assert (other.cwd / "link").readlink() == Path("run.sh")


def test_an_import_replaces_nothing(place: Workplace, exported: Path) -> None:
    (original,) = (place.home / "sessions").rglob("*.jsonl")
    before = original.read_bytes()
    code, text, told = sessions(place, "import", str(exported))
    assert code == 0
    thread_id = text.split()[-1].rstrip(".")
    assert "is here already; this is a copy of it." in told
    assert original.read_bytes() == before
    (copy,) = (place.home / "sessions").rglob(f"*{thread_id}.jsonl")
    meta = json.loads(copy.read_text(encoding="utf-8").splitlines()[0])["payload"]
    assert meta["id"] == thread_id
    assert meta["forked_from_id"] in original.name


def _header(**fields: Any) -> Callable[[list[Any]], None]:
    return lambda lines: lines[0].update(fields)


def _meta(**fields: Any) -> Callable[[list[Any]], None]:
    return lambda lines: lines[1]["payload"].update(fields)


def _lines(start: int, end: int, *values: Any) -> Callable[[list[Any]], None]:
    return lambda lines: lines.__setitem__(slice(start, end), values)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            _header(format="x"),
            "it is not a session of `codex-py sessions export --portable`",
        ),
        (_header(thread_id="../../../x"), "its header is damaged"),
        (_header(mark=".*"), "its header is damaged"),
        (_header(patch="x" * 9_000_000), "its header is damaged"),
        (_meta(id="../../../x"), "it is damaged"),
        (
            _meta(id="01a203cb-596c-7124-9651-e9fe666d07cf"),
            "it has the metadata of another session",
        ),
        (_meta(timestamp="../../x"), "it is damaged"),
        (_meta(timestamp="0002-01-01T00:00:00Z"), "its date is not valid"),
        (
            _meta(history_base={"thread_id": "x", "end_ordinal_exclusive": 1}),
            "it is a part of a session",
        ),
        (_lines(3, 4, [1]), "line 4 is not one of a session"),
        (_lines(3, 4, {"type": "x"}), "line 4 is not one of a session"),
        (_lines(1, 99), "it is damaged"),
        (_lines(0, 99), "it is not a session of"),
    ],
)
def test_a_hostile_file_is_refused_in_a_sentence(
    exported: Path, other: Workplace, spoil: Callable[[list[Any]], None], reason: str
) -> None:
    lines = [
        json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()
    ]
    spoil(lines)
    exported.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    code, text, told = sessions(other, "import", str(exported))
    assert (code, text) == (65, "")
    assert told.startswith(f"Error: cannot import {exported}: {reason}")
    assert told.count("\n") == 1
    assert [path for path in other.home.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "contents", [b"root:x:0:0::/root:/bin/sh\n", b"", b"[" * 100_000, b"\0\xff"]
)
def test_a_file_of_another_kind_is_not_called_damaged(
    other: Workplace, contents: bytes
) -> None:
    file = other.home.parent / "passwd"
    file.write_bytes(contents)
    code, _, told = sessions(other, "import", str(file))
    assert code == 65
    assert told == (
        f"Error: cannot import {file}: it is not a session of"
        " `codex-py sessions export --portable`\n"
    )


def test_a_file_that_is_none_or_too_large_is_refused(other: Workplace) -> None:
    pipe, large = other.home.parent / "pipe", other.home.parent / "large"
    os.mkfifo(pipe)
    large.touch()
    os.truncate(large, 2 << 30)
    for path, code, reason in (
        (pipe, 1, "it is a named pipe"),
        (other.home, 1, "it is a folder"),
        (other.home / "nothing", 1, "No such file or directory"),
        (large, 65, "it has more than 1 GB"),
    ):
        assert sessions(other, "import", str(path)) == (
            code,
            "",
            f"Error: cannot import {path}: {reason}\n",
        )


def test_a_session_speaks_for_no_other(exported: Path, other: Workplace) -> None:
    lines = [
        json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()
    ]
    victim = "01a203cb-596c-7124-9651-e9fe666d07cf"
    lines[1]["payload"] |= {
        "continues_id": victim,
        "parent_thread_id": victim,
        "source": {"subagent": {"thread_spawn": {"parent_thread_id": victim}}},
    }
    exported.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    assert sessions(other, "import", str(exported))[0] == 0
    (path,) = (other.home / "sessions").rglob("*.jsonl")
    meta = path.read_text(encoding="utf-8").splitlines()[0]
    assert victim not in meta
    assert json.loads(meta)["payload"]["source"] == "cli"


@pytest.mark.parametrize("made_by_codex", [False, True])
@needs_codex
def test_codex_resumes_what_was_imported(
    place: Workplace,
    other: Workplace,
    request: pytest.FixtureRequest,
    made_by_codex: bool,
) -> None:
    assert CODEX is not None

    def codex(where: Workplace, *words: str) -> None:
        done = subprocess.run(
            [CODEX or "", "exec", "--skip-git-repo-check", *words],
            cwd=where.cwd,
            env=environment(where.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()

    if made_by_codex:
        with ScriptedServer(
            [[*ev_message(f"In {place.cwd}."), ev_completed()]], check_prefix=False
        ) as server:
            place.configure(server)
            codex(place, "hello")
        file = place.cwd.parent / "s.jsonl"
        assert (
            sessions(place, "export", "--last", "--portable", "-o", str(file))[0] == 0
        )
    else:
        file = request.getfixturevalue("exported")
    text = sessions(other, "import", str(file))[1]
    with ScriptedServer([ANSWER], check_prefix=False) as server:
        other.configure(server)
        codex(other, "resume", text.split()[-1].rstrip("."), "Go on")
    said = json.dumps(server.requests[0].input, ensure_ascii=False)
    assert json.dumps(f"n {other.cwd}.", ensure_ascii=False)[1:-1] in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/a", "@:cwd>"),
        ("see /w/a.", "see @:cwd>."),
        ("file:///w/a/x.py:3", "file://@:cwd>/x.py:3"),
        ('"/w/a"', '"@:cwd>"'),
        (
            "/w/ab /w/a.bak /w/a-b /x/w/a ~/w/a",
            "@:home>/ab @:home>/a.bak @:home>/a-b /x/w/a ~/w/a",
        ),
        ("/w/.codex/auth.json /w", "@:codex_home>/auth.json @:home>"),
        ("/we", "/we"),
    ],
)
def test_whole_components_of_paths_are_replaced(text: str, expected: str) -> None:
    places = {
        "/w/a": "cwd",
        "/w/.codex/": "codex_home",
        "/w": "home",
        "/": "home",
        "": "home",
    }
    change = paths_to_marks("@", places)
    assert change(text) == expected
    back = marks_to_paths("@", {"cwd": "/w/a", "codex_home": "/w/.codex", "home": "/w"})
    assert back(expected) == text


def test_json_in_arguments_stays_json() -> None:
    call = {
        "arguments": json.dumps({"cmd": "cat /a", "n": 1}),
        "/a": ["/a"],
        "encrypted_content": "/a",
    }
    changed = map_strings(call, lambda text: text.replace("/a", '/"b"'))
    assert json.loads(changed["arguments"]) == {"cmd": 'cat /"b"', "n": 1}
    assert changed['/"b"'] == ['/"b"']
    assert changed["encrypted_content"] == "/a"
