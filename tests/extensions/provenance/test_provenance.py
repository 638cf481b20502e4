"""`blame-agent` and `provenance`, the real program in real repositories.

Tests `extensions/provenance/lines.py`, `extensions/provenance/provenance_command.py` and
`extensions/provenance/records.py`.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import codex_py
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.git import git
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
FIRST = "def first(value):\n    return value + 1\n"
AGENT = "def agent_wrote_this(value):\n    return value * 2\n"


def commit(place: Workplace, message: str = "work") -> str:
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-qm", message)
    return git(place.cwd, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def repository(place: Workplace) -> None:
    (place.cwd / "a.py").write_text(FIRST, encoding="utf-8")
    git(place.cwd, "init", "-qb", "main")
    commit(place)


def call(number: int, step: str) -> list[dict[str, Any]]:
    """A patch, or else a command."""
    if step.startswith("***"):
        text = f"*** Begin Patch\n{step}\n*** End Patch"
        return [*ev_custom_tool_call(f"c{number}", "apply_patch", text), ev_completed()]
    return [
        *ev_function_call(f"c{number}", "exec_command", {"cmd": step}),
        ev_completed(),
    ]


def turn(
    place: Workplace, *steps: str, args: Sequence[str] = ("Add a function",)
) -> str:
    """The id of the session."""
    with ScriptedServer(
        [*(call(n, step) for n, step in enumerate(steps)), DONE]
    ) as server:
        outcome = place.run(server, *args)
    assert (outcome.code, outcome.messages[-1]) == (0, "done")
    return next(
        each["thread_id"] for each in outcome.events if each["type"] == "thread.started"
    )


def add(name: str, text: str) -> str:
    return f"*** Add File: {name}\n" + "\n".join(
        f"+{line}" for line in text.splitlines()
    )


def append(name: str, last: str, text: str) -> str:
    lines = "\n".join(f"+{line}" for line in text.splitlines())
    return f"*** Update File: {name}\n@@\n {last}\n{lines}"


APPEND = append("a.py", "    return value + 1", AGENT)


def run(
    place: Workplace, *args: str, env: dict[str, str] | None = None
) -> tuple[int, str, str]:
    done = run_codex_py(args, place.home, place.cwd, env)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def blame(place: Workplace, name: str = "a.py", *args: str) -> list[tuple[str, str]]:
    """Each line, with its session, the number of the turn, and how."""
    code, out, err = run(place, "blame-agent", name, "--json", *args)
    assert (code, err) == (0, "")
    return [
        (
            row["text"],
            f"{row['session']} {row['turn']} {row['how']}" if "session" in row else "",
        )
        for row in json.loads(out)["lines"]
    ]


def whose(text: str, author: str = "") -> list[tuple[str, str]]:
    return [(line, author) for line in text.splitlines()]


def test_the_lines_of_a_patch_are_the_turns(place: Workplace):
    session = turn(place, APPEND)
    assert blame(place) == [*whose(FIRST), *whose(AGENT, f"{session} 1 patch")]


def write(place: Workplace, name: str, text: str) -> None:
    (place.cwd / name).write_text(text, encoding="utf-8")


def read(place: Workplace, name: str) -> str:
    return (place.cwd / name).read_text(encoding="utf-8")


def test_lines_that_a_person_changes_belong_to_the_person(place: Workplace):
    session = turn(place, APPEND)
    changed = AGENT.replace("* 2", "* 3")
    write(place, "a.py", f"import this\n{FIRST}# by Ada\n{changed}")
    assert blame(place) == [
        *whose(f"import this\n{FIRST}# by Ada\n"),
        ("def agent_wrote_this(value):", f"{session} 1 patch"),
        *whose("    return value * 3"),
    ]


def test_lines_that_a_command_changes_belong_to_the_turn_and_are_marked(
    place: Workplace,
):
    session = turn(
        place,
        "echo '# by a command' >> a.py",
        APPEND,
        "printf 'x = 1\\ny = 2\\n' > new.py",
    )
    assert blame(place) == [
        *whose(FIRST),
        *whose(AGENT, f"{session} 1 patch"),
        ("# by a command", f"{session} 1 command"),
    ]
    assert blame(place, "new.py") == whose("x = 1\ny = 2", f"{session} 1 command")
    out = run(place, "blame-agent", "a.py")[1]
    assert out.splitlines()[-1] == "1*  5  # by a command"


def test_two_sessions_and_turns_in_one_file(place: Workplace):
    one = turn(place, APPEND)
    two = turn(
        place,
        append("a.py", "    return value * 2", "def of_the_second(it):\n    return it"),
    )
    resume = ("resume", one, "Once more")
    turn(
        place,
        append("a.py", "    return it", "def of_the_third(that):\n    return that"),
        args=resume,
    )
    assert [author for _, author in blame(place)] == [
        *["", ""],
        *[f"{one} 1 patch"] * 2,
        *[f"{two} 1 patch"] * 2,
        *[f"{one} 2 patch"] * 2,
    ]
    found = json.loads(run(place, "blame-agent", "a.py", "--json")[1])
    assert [
        (each["session"], each["turn"], each["prompt"]) for each in found["turns"]
    ] == [
        (one, 1, "Add a function"),
        (two, 1, "Add a function"),
        (one, 2, "Once more"),
    ]


def test_undone_lines_are_not_claimed_until_they_are_redone(place: Workplace):
    session = turn(place, APPEND)
    assert run(place, "undo")[0] == 0
    assert blame(place) == whose(FIRST)
    write(place, "a.py", FIRST + AGENT)
    assert blame(place) == whose(FIRST + AGENT)
    write(place, "a.py", FIRST)
    assert run(place, "redo")[0] == 0
    assert blame(place) == [*whose(FIRST), *whose(AGENT, f"{session} 1 patch")]


LONG = "".join(
    f"    step_{n} = prepare_the_number({n}, of_all=things)\n" for n in range(12)
)


def test_moved_files_keep_their_lines(place: Workplace):
    session = turn(place, add("b.py", LONG))
    commit(place)
    git(place.cwd, "mv", "b.py", "moved.py")
    write(place, "moved.py", "# new\n" + LONG.replace("(3,", "(33,"))
    lines = blame(place, "moved.py")
    changed = {text for text, author in lines if not author}
    assert changed == {"# new", "    step_3 = prepare_the_number(33, of_all=things)"}
    assert {author for _, author in lines if author} == {f"{session} 1 patch"}
    commit(place)
    assert blame(place, "moved.py") == lines
    # A copy is not what the session wrote.
    write(place, "copy.py", read(place, "moved.py"))
    assert blame(place, "moved.py") == lines
    turn(
        place,
        "git mv moved.py again.py",
        append("again.py", "# new", "# newer, by the agent"),
    )
    by_line = dict(blame(place, "again.py"))
    assert by_line["    step_3 = prepare_the_number(33, of_all=things)"] == ""
    assert (
        by_line["    step_4 = prepare_the_number(4, of_all=things)"]
        == f"{session} 1 patch"
    )


def test_a_renamed_file_keeps_a_short_line(place: Workplace):
    write(place, "b.py", LONG)
    session = turn(place, append("b.py", LONG.splitlines()[5], "    short = 7"))
    commit(place)
    git(place.cwd, "mv", "b.py", "c.py")
    wanted = ("    short = 7", f"{session} 1 patch")
    assert [each for each in blame(place, "c.py") if each[1]] == [wanted]
    two = turn(place, append("c.py", LONG.splitlines()[9], "    other = 8"))
    other = ("    other = 8", f"{two} 1 patch")
    assert [each for each in blame(place, "c.py") if each[1]] == [wanted, other]


def test_a_copy_by_a_person_is_the_persons(place: Workplace):
    turn(place, add("b.py", LONG))
    write(place, "copy.py", LONG)
    assert blame(place, "copy.py") == whose(LONG)


def test_lines_that_a_turn_moves_keep_their_author(place: Workplace):
    write(place, "mine.py", LONG)
    commit(place)
    session = turn(
        place, "cat mine.py > moved.py; rm mine.py; echo '# the_end' >> moved.py"
    )
    assert blame(place, "moved.py") == [
        *whose(LONG),
        ("# the_end", f"{session} 1 command"),
    ]
    taken = LONG.splitlines()[4]
    turn(
        place,
        f"*** Update File: moved.py\n@@\n-{taken}\n*** Update File: a.py\n@@\n def first(value):\n+{taken}",
    )
    assert (taken, "") in blame(place)


def on_branch(place: Workplace) -> None:
    git(place.cwd, "checkout", "-qb", "topic")


def test_authors_survive_rebase_amend_squash_and_cherry_pick(place: Workplace):
    on_branch(place)
    session = turn(place, APPEND)
    commit(place, "one")
    turn(
        place,
        add("c.py", "SETTING = 'of_the_agent'"),
        args=("resume", session, "Settings"),
    )
    commit(place, "two")
    git(place.cwd, "checkout", "-q", "main")
    write(place, "a.py", f"# from main\n{FIRST}")
    commit(place, "main")
    git(place.cwd, "checkout", "-q", "topic")
    git(place.cwd, "rebase", "-q", "main")
    wanted = [*whose(f"# from main\n{FIRST}"), *whose(AGENT, f"{session} 1 patch")]
    assert blame(place) == wanted
    git(place.cwd, "reset", "-q", "--soft", "main")
    commit(place, "squashed")
    assert blame(place) == wanted
    write(place, "a.py", read(place, "a.py") + "# amended by Ada\n")
    git(place.cwd, "commit", "-q", "--amend", "-a", "--no-edit")
    assert blame(place) == [*wanted, *whose("# amended by Ada")]
    git(place.cwd, "checkout", "-q", "main")
    assert blame(place) == whose(f"# from main\n{FIRST}")
    assert blame(place, "a.py", "--rev", "topic") == [
        *wanted,
        *whose("# amended by Ada"),
    ]
    git(place.cwd, "cherry-pick", "topic")
    assert blame(place) == [*wanted, *whose("# amended by Ada")]
    assert blame(place, "c.py") == whose(
        "SETTING = 'of_the_agent'", f"{session} 2 patch"
    )


def test_lines_that_come_back_from_another_branch(place: Workplace):
    on_branch(place)
    one = turn(place, append("a.py", "    return value + 1", LONG))
    commit(place)
    git(place.cwd, "checkout", "-q", "main")
    two = turn(
        place, append("a.py", "def first(value):", '    """On the main branch."""')
    )
    commit(place)
    git(place.cwd, "merge", "-q", "topic", "-m", "merge")
    assert blame(place) == [
        ("def first(value):", ""),
        ('    """On the main branch."""', f"{two} 1 patch"),
        ("    return value + 1", ""),
        *whose(LONG, f"{one} 1 patch"),
    ]


def test_lines_that_git_brings_in_a_turn_do_not_belong_to_the_turn(place: Workplace):
    on_branch(place)
    write(place, "a.py", FIRST + LONG)
    write(place, "other.py", LONG)
    commit(place)
    # git knows when a commit was made to the second.
    old = {**os.environ, "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    author = ("-c", "user.email=ada@example.com", "-c", "user.name=Ada")
    words = ["git", *author, "commit", "-q", "--amend", "--no-edit"]
    subprocess.run(words, cwd=place.cwd, env=old, check=True)
    git(place.cwd, "checkout", "-q", "main")
    for line in ("git checkout -q topic", "git checkout -q main; git merge -q topic"):
        session = turn(place, f"{line}; echo '# of_the_turn' >> other.py")
        assert blame(place) == whose(FIRST + LONG)
        # Whoever switched the branch may have changed the file.
        assert blame(place, "other.py") == [
            *whose(LONG),
            ("# of_the_turn", f"{session} 1 unsure"),
        ]
        git(place.cwd, "checkout", "-q", "other.py")


def test_doubtful_lines_are_marked_and_in_no_record(place: Workplace):
    # Before the first command, nobody looks who else edits a patched file.
    turn(place, APPEND, "echo '# in_doubt' >> a.py")
    out = run(place, "blame-agent", "a.py")[1]
    assert [line[:2] for line in out.splitlines()[-2:]] == ["1 ", "1?"]
    commit(place)
    assert [*note(place)[0]["a.py"].values()] == [[3, 4]]


def test_a_session_that_was_deleted_is_named_by_its_id(place: Workplace):
    session = turn(place, APPEND)
    assert run(place, "delete", session, "--force")[0] == 0
    found = json.loads(run(place, "blame-agent", "a.py", "--json")[1])["turns"]
    assert [(each["session"], each["model"], each["prompt"]) for each in found] == [
        (session, None, "")
    ]


def test_without_undo_nothing_is_known(place: Workplace):
    turn(place, APPEND, args=("-c", "features.undo=false", "go"))
    assert blame(place) == whose(FIRST + AGENT)


def test_a_submodule_is_a_repository_of_its_own(place: Workplace, tmp_path: Path):
    source = Workplace(place.home, tmp_path / "source")
    source.cwd.mkdir()
    write(source, "s.py", FIRST)
    git(source.cwd, "init", "-qb", "main")
    commit(source)
    git(
        place.cwd,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(source.cwd),
        "sub",
    )
    commit(place)
    session = turn(place, append("sub/s.py", "    return value + 1", AGENT), APPEND)
    assert run(place, "blame-agent", "sub")[0::2] == (
        1,
        "Error: cannot read 'sub': it is a folder\n",
    )
    assert blame(place, "sub/s.py") == [
        *whose(FIRST),
        *whose(AGENT, f"{session} 1 patch"),
    ]
    inner = Workplace(place.home, place.cwd / "sub")
    commit(inner)
    commit(place)
    assert list(note(inner)[0]) == ["s.py"]
    assert list(note(place)[0]) == ["a.py"]


def test_a_formatter_that_rewrites_all(place: Workplace):
    one = turn(place, APPEND)
    two = turn(place, "sed -i 's/    /\\t/' a.py")
    tabs = (FIRST + AGENT).replace("    ", "\t").splitlines()
    assert blame(place) == [
        (tabs[0], ""),
        (tabs[1], f"{two} 1 command"),
        (tabs[2], f"{one} 1 patch"),
        (tabs[3], f"{two} 1 command"),
    ]
    write(place, "a.py", read(place, "a.py").replace("\t", "  "))
    assert [author for _, author in blame(place)] == ["", "", f"{one} 1 patch", ""]
    # Ends of lines are git's business.
    (place.cwd / "a.py").write_bytes(
        (place.cwd / "a.py").read_bytes().replace(b"\n", b"\r\n")
    )
    assert [author for _, author in blame(place)] == ["", "", f"{one} 1 patch", ""]


def test_common_lines_are_claimed_only_beside_others(place: Workplace):
    write(
        place, "c.c", "int one() {\n  return 1;\n}\n\nint three() {\n  return 3;\n}\n"
    )
    session = turn(place, append("c.c", "", "int two() {\n  return 2;\n}\n\n"))
    lines = blame(place, "c.c")
    assert [author for _, author in lines].count(f"{session} 1 patch") >= 3
    assert {text for text, author in lines if author} <= {
        "int two() {",
        "  return 2;",
        "}",
        "",
    }
    # What is left of the function is nobody's.
    write(
        place,
        "c.c",
        "int one() {\n  return 1;\n}\n\n}\n\nint three() {\n  return 3;\n}\n",
    )
    assert {author for _, author in blame(place, "c.c")} == {""}


def test_lines_of_forks_and_of_worktrees_name_their_session(place: Workplace):
    one = turn(place, APPEND)
    commit(place)
    two = turn(place, add("f.py", "FORKED = 'session'"), args=("fork", one, "Go on"))
    assert two != one
    assert blame(place, "f.py") == whose("FORKED = 'session'", f"{two} 2 patch")
    commit(place)
    three = turn(place, add("w.py", LONG), args=("--worktree=other", "Work elsewhere"))
    tree = next((place.home / "worktrees").glob("**/w.py")).parent
    there = Workplace(place.home, tree)
    assert blame(there, "w.py") == whose(LONG, f"{three} 1 patch")
    commit(there)
    branch = git(there.cwd, "rev-parse", "HEAD")
    git(place.cwd, "cherry-pick", branch)
    assert blame(place, "w.py") == whose(LONG, f"{three} 1 patch")
    git(place.cwd, "worktree", "remove", "--force", str(tree))
    assert blame(place, "w.py") == whose(LONG, f"{three} 1 patch")


KEY = re.compile(r"s_[0-9a-f]{14}::t_[0-9a-f]{14}")


def read_note(text: str) -> tuple[dict[str, dict[str, list[int]]], dict[str, Any]]:
    """An authorship log by the rules of the Git AI Standard v3.0.0: lines by file and session; and the metadata."""
    attested, _, metadata = text.partition("\n---\n")
    files: dict[str, dict[str, list[int]]] = {}
    entries: dict[str, list[int]] = {}
    for line in attested.splitlines():
        if not line.startswith(" "):
            name = line[1:-1] if line.startswith('"') else line
            assert (line != name) == any(character.isspace() for character in name)
            entries = files.setdefault(name, {})
            continue
        assert re.fullmatch(r"  \S+ [1-9]\d*(-[1-9]\d*)?(,[1-9]\d*(-[1-9]\d*)?)*", line)
        key, ranges = line.split()
        assert KEY.fullmatch(key)
        numbers: list[int] = []
        for each in ranges.split(","):
            start, _, end = each.partition("-")
            assert not end or int(start) < int(end)
            numbers += range(int(start), int(end or start) + 1)
        assert numbers == sorted(set(numbers))
        assert key not in entries
        entries[key] = numbers
    assert all(files.values())
    data = json.loads(metadata)
    assert data["schema_version"] == "authorship/3.0.0"
    assert data.keys() == {
        "schema_version",
        "git_ai_version",
        "base_commit_sha",
        "prompts",
        "sessions",
    }
    named = {key.split("::")[0] for entries in files.values() for key in entries}
    assert named == data["sessions"].keys()
    for record in data["sessions"].values():
        assert record.keys() == {"agent_id", "human_author"}
        assert record["agent_id"].keys() == {"tool", "id", "model"}
    assert data["prompts"] == {}
    return files, data


def note(
    place: Workplace, commit: str = "HEAD"
) -> tuple[dict[str, Any], dict[str, Any]]:
    assert run(place, "provenance", "--note", commit)[0] == 0
    return read_note(
        git(place.cwd, "notes", "--ref=refs/notes/ai", "show", commit) + "\n"
    )


def test_a_note_has_the_lines_that_its_commit_brings(place: Workplace):
    session = turn(
        place, APPEND, add("sub/my file.py", LONG), "echo 'by = command' > d.py"
    )
    first = commit(place)
    two = turn(
        place, append("a.py", "    return value * 2", "def later(x):\n    return x")
    )
    write(place, "a.py", read(place, "a.py") + "# Ada\n")
    commit(place)
    files, data = note(place, first)
    assert {name: list(entries.values()) for name, entries in files.items()} == {
        "a.py": [[3, 4]],
        "d.py": [[1]],
        "sub/my file.py": [list(range(1, 13))],
    }
    assert data["base_commit_sha"] == first
    key = "s_" + hashlib.sha256(f"codex-py:{session}".encode()).hexdigest()[:14]
    agent = {"tool": "codex-py", "id": session, "model": "gpt-5.5"}
    assert data["sessions"] == {
        key: {"agent_id": agent, "human_author": "Ada <ada@example.com>"}
    }
    again = git(place.cwd, "notes", "--ref=refs/notes/ai", "show", first)
    note(place, first)
    assert git(place.cwd, "notes", "--ref=refs/notes/ai", "show", first) == again
    files, data = note(place)
    assert (list(files), [*files["a.py"].values()]) == (["a.py"], [[5, 6]])
    assert [each["agent_id"]["id"] for each in data["sessions"].values()] == [two]
    assert git(place.cwd, "notes", "list") == ""
    assert git(place.cwd, "log", "-1", "--format=%cn", "refs/notes/ai") == "Ada"


def test_the_note_of_another_tool_stays(place: Workplace):
    turn(place, APPEND)
    commit(place)
    git(place.cwd, "notes", "--ref=refs/notes/ai", "add", "-m", "another's", "HEAD")
    code, out, err = run(place, "provenance", "--note")
    head = git(place.cwd, "rev-parse", "HEAD")
    message = f"Error: commit {head} has a note of another tool; --force replaces it\n"
    assert (code, out, err) == (1, "", message)
    assert run(place, "provenance", "--note", "--force")[0] == 0
    read_note(git(place.cwd, "notes", "--ref=refs/notes/ai", "show", "HEAD") + "\n")


RANGE = {
    "type": "object",
    "required": ["start_line", "end_line"],
    "properties": {
        key: {"type": "integer", "minimum": 1} for key in ("start_line", "end_line")
    },
    "additionalProperties": False,
}
CONTRIBUTOR = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["human", "ai", "mixed", "unknown"]},
        "model_id": {"type": "string", "maxLength": 250},
    },
    "additionalProperties": False,
}
CONVERSATION = {
    "type": "object",
    "required": ["ranges"],
    "properties": {
        "url": {"type": "string", "pattern": r"^[a-z][a-z0-9+.-]*:\S+$"},
        "contributor": CONTRIBUTOR,
        "ranges": {"type": "array", "items": RANGE},
    },
    "additionalProperties": False,
}
TRACE = Draft202012Validator(
    {
        "type": "object",
        "required": ["version", "id", "timestamp", "files"],
        "properties": {
            "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"},
            "id": {
                "type": "string",
                "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
            },
            "timestamp": {
                "type": "string",
                "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
            },
            "vcs": {
                "type": "object",
                "required": ["type", "revision"],
                "properties": {
                    "type": {"const": "git"},
                    "revision": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
                },
                "additionalProperties": False,
            },
            "tool": {
                "type": "object",
                "required": ["name", "version"],
                "properties": {key: {"type": "string"} for key in ("name", "version")},
                "additionalProperties": False,
            },
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["path", "conversations"],
                    "properties": {
                        "path": {"type": "string"},
                        "conversations": {"type": "array", "items": CONVERSATION},
                    },
                    "additionalProperties": False,
                },
            },
        },
        "additionalProperties": False,
    }
)
"""What the schema of Agent Trace asks for, as far as a record here has it: `schemas/trace-record.json` of
cursor/agent-trace."""


def traces(place: Workplace) -> list[dict[str, Any]]:
    found = [
        json.loads(line)
        for line in read(place, ".agent-trace/traces.jsonl").splitlines()
    ]
    for each in found:
        TRACE.validate(each)  # pyright: ignore[reportUnknownMemberType]
    return found


def test_traces_of_a_commit_and_of_the_work_tree(place: Workplace):
    session = turn(place, APPEND)
    head = commit(place)
    turn(place, add("new.py", LONG), args=("resume", session, "More"))
    for args in (("--work-tree",), ()):
        code, out, err = run(place, "provenance", "--trace", *args)
        assert (code, err) == (0, "")
        TRACE.validate(json.loads(out))  # pyright: ignore[reportUnknownMemberType]
    tree, of_commit = traces(place)
    model = {"type": "ai", "model_id": "mock/gpt-5.5"}

    def written(path: str, start: int, end: int) -> list[dict[str, Any]]:
        ranges = [{"start_line": start, "end_line": end}]
        conversation = {
            "url": f"urn:uuid:{session}",
            "contributor": model,
            "ranges": ranges,
        }
        return [{"path": path, "conversations": [conversation]}]

    assert of_commit["vcs"] == {"type": "git", "revision": head}
    assert of_commit["files"] == written("a.py", 3, 4)
    assert ("vcs" in tree, tree["files"]) == (False, written("new.py", 1, 12))


def test_trailers_are_printed_and_added_by_a_hook(place: Workplace):
    session = turn(place, APPEND)
    wanted = f"Codex-Py-Session: {session}\nModel: gpt-5.5\n"
    told = "No line of what is staged is known to be a session's.\n"
    assert run(place, "provenance", "--trailer") == (0, "", told)
    git(place.cwd, "add", "-A")
    assert run(place, "provenance", "--trailer") == (0, wanted, "")
    hook = place.cwd / ".git/hooks/prepare-commit-msg"
    command = shlex.join(
        [sys.executable, "-m", "codex_py", "provenance", "--trailer", "--message"]
    )
    hook.write_text(f'#!/bin/sh\nexec {command} "$1"\n', encoding="utf-8")
    hook.chmod(0o755)
    # git gives the hook an index of its own.
    write(place, "a.py", read(place, "a.py") + "# Ada\n")
    author = ("-c", "user.email=ada@example.com", "-c", "user.name=Ada")
    env = environment(
        place.home, {"PYTHONPATH": str(Path(codex_py.__file__).parents[1])}
    )
    words = ["git", *author, "commit", "-qam", "Add a function\n\nSee: there"]
    subprocess.run(words, cwd=place.cwd, env=env, check=True)
    message = git(place.cwd, "log", "-1", "--format=%B").strip()
    assert message == f"Add a function\n\nSee: there\n{wanted}".strip()
    assert run(place, "provenance", "--trailer", "HEAD") == (0, wanted, "")
    subprocess.run(
        [*words[:-2], "-q", "--amend", "--no-edit"], cwd=place.cwd, env=env, check=True
    )
    assert git(place.cwd, "log", "-1", "--format=%B").strip() == message
    write(place, "a.py", FIRST)
    subprocess.run(
        [*words[:-1], "Not by a session"], cwd=place.cwd, env=env, check=True
    )
    assert git(place.cwd, "log", "-1", "--format=%B").strip() == "Not by a session"


def test_a_merge_brings_only_what_no_parent_has(place: Workplace):
    on_branch(place)
    session = turn(place, append("a.py", "    return value + 1", LONG))
    commit(place)
    git(place.cwd, "checkout", "-q", "main")
    write(place, "a.py", f"# main\n{FIRST}")
    commit(place)
    git(place.cwd, "merge", "-q", "--no-commit", "topic")
    turn(
        place,
        append("a.py", "def first(value):", "    # resolved_by_the_agent"),
        args=("resume", session, "x"),
    )
    commit(place, "merge")
    files, _ = note(place)
    assert [*files["a.py"].values()] == [[3]]


def test_mistakes_are_one_sentence(place: Workplace, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("x\n", encoding="utf-8")
    (place.cwd / "binary").write_bytes(b"\0\1")
    with (place.cwd / "huge").open("wb") as file:
        file.truncate(11 << 20)
    (place.cwd / "link").symlink_to(outside / "f")
    assert run(place, "blame-agent", "missing") == (
        1,
        "",
        "Error: cannot read 'missing': No such file or directory\n",
    )
    told = f"Error: {outside} is in no git repository\n"
    assert run(place, "blame-agent", str(outside / "f")) == (2, "", told)
    assert run(place, "blame-agent", "binary")[0::2] == (
        1,
        "Error: 'binary' is no text: it has no lines to tell of\n",
    )
    assert run(place, "blame-agent", "huge")[0::2] == (
        1,
        "Error: cannot read 'huge': it is larger than 10 MB\n",
    )
    assert run(place, "blame-agent", "link")[0::2] == (
        1,
        f"Error: cannot read 'link': it is a link that leads out of {place.cwd}\n",
    )
    assert run(place, "blame-agent", ".")[0::2] == (
        1,
        "Error: cannot read '.': it is a folder\n",
    )
    assert run(place, "blame-agent", "a.py") == (
        0,
        "No line of a.py is known to be a session's.\n",
        "",
    )
    assert run(place, "blame-agent")[0] == 2
    assert run(place, "provenance")[0::2] == (
        2,
        "Error: say one of --note, --trace and --trailer\n",
    )
    head = commit(place)
    assert run(place, "blame-agent", "huge", "--rev", "HEAD")[0::2] == (
        1,
        f"Error: cannot read 'huge': it is not in commit {head}, or too large\n",
    )
    told = f"Error: there is no commit 'nope' in {place.cwd}\n"
    assert run(place, "provenance", "--note", "nope") == (2, "", told)
    assert run(place, "provenance", "--trace")[0] == 0
    code, out, err = run(place, "blame-agent", "a.py", env={"PATH": str(outside)})
    assert (code, out, err) == (1, "", "Error: git is not installed\n")


def test_a_repository_without_a_commit_is_read(place: Workplace):
    shutil.rmtree(place.cwd / ".git")
    git(place.cwd, "init", "-q")
    session = turn(place, APPEND)
    assert blame(place)[2:] == whose(AGENT, f"{session} 1 patch")
    told = f"Error: there is no commit yet in {place.cwd}\n"
    assert run(place, "provenance", "--note") == (2, "", told)
    git(place.cwd, "add", "-A")
    assert f"Codex-Py-Session: {session}\n" in run(place, "provenance", "--trailer")[1]
    assert run(place, "provenance", "--trace", "--work-tree")[0] == 0
    assert traces(place)[0]["files"][0]["path"] == "a.py"


def test_of_a_deleted_session_only_its_id_and_the_time_are_known(place: Workplace):
    session = turn(place, APPEND)
    shutil.rmtree(place.home / "sessions")
    row = run(place, "blame-agent", "a.py")[1].splitlines()[0]
    assert re.fullmatch(rf"1  {session} +1  [-0-9]+ [0-9:+]+", row)


def test_a_damaged_journal_is_told(place: Workplace):
    turn(place, APPEND)
    for path in (place.home / "codex-py/journal").glob("*.committed"):
        path.write_bytes(path.read_bytes()[:-3])
    code, out, err = run(place, "blame-agent", "a.py")
    assert (code, out) == (0, "No line of a.py is known to be a session's.\n")
    assert (
        err == "Of the journal, 2 entries are damaged: what they wrote is not known.\n"
    )


def test_denied_files_are_not_shown(place: Workplace):
    turn(place, add("secret.txt", LONG), APPEND)
    commit(place)
    place.home.joinpath("config.toml").write_text(
        'default_permissions = "p"\n[permissions.p.filesystem]\n'
        '":workspace_roots" = { "." = "write", "secret.txt" = "deny" }\n',
        encoding="utf-8",
    )
    told = "Error: cannot read 'secret.txt': Permission denied\n"
    assert run(place, "blame-agent", "secret.txt") == (1, "", told)
    assert run(place, "blame-agent", "secret.txt", "--rev", "HEAD")[0::2] == (1, told)
    assert [*note(place)[0]] == ["a.py"]


def test_nothing_that_the_repository_names_is_run(place: Workplace, tmp_path: Path):
    turn(place, APPEND)
    commit(place)
    mark = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n", encoding="utf-8")
    script.chmod(0o755)
    for key in (
        "trailer.Model.command",
        "trailer.Model.cmd",
        "diff.external",
        "filter.f.clean",
        "gpg.program",
        "diff.d.textconv",
        "core.fsmonitor",
        "core.editor",
        "core.pager",
    ):
        git(place.cwd, "config", key, str(script))
    git(place.cwd, "config", "log.showSignature", "true")
    git(place.cwd, "config", "trailer.Model.key", "Model")
    write(place, ".gitattributes", "*.py filter=f diff=d\n")
    for name in ("reference-transaction", "post-rewrite", "prepare-commit-msg"):
        path = place.cwd / ".git/hooks" / name
        path.symlink_to(script)
    message = tmp_path / "message"
    message.write_text("Subject\n", encoding="utf-8")
    for args in (
        ("--note",),
        ("--trace",),
        ("--trace", "--work-tree"),
        ("--trailer", "HEAD"),
        ("--trailer", "--message", str(message)),
    ):
        code, _, err = run(
            place, "provenance", *args, env={"CODEX_THREAD_ID": str(uuid.uuid4())}
        )
        assert (code, err) == (0, "")
    run(place, "blame-agent", "a.py")
    assert "Codex-Py-Session: " in message.read_text(encoding="utf-8")
    assert not mark.exists()
