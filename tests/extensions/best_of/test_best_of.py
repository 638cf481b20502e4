"""`exec --best-of N`: several attempts, of which the best is applied, and nothing else changes.

Tests `extensions/best_of/attempt.py`, `extensions/best_of/choice.py`, `extensions/best_of/best_of.py`,
`extensions/best_of/options.py`, `extensions/best_of/variations.py`, `extensions/best_of/attempt_table.py`,
`app/worktrees/snapshot.py` and `app/patching.py`.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.command_line.parsing import parse_arguments
from codex_py.errors import UsageError
from codex_py.testing import RecordedRequest, ev_completed, ev_function_call, ev_message
from tests.support.codex_process import start_codex_py
from tests.support.git import git
from tests.support.hooks import DONE, command
from tests.support.lifeline import Lifeline
from tests.support.packages import install_package, run_with
from tests.support.program import Outcome, Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

REFERENCES = "refs/codex-py"


@pytest.fixture
def place(place: Workplace) -> Workplace:
    write(place.cwd / "a.txt", "one\n")
    write(place.cwd / ".gitignore", "*.o\n")
    git(place.cwd, "init", "-q", "-b", "main")
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-qm", "one")
    return place


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def tree(place: Workplace) -> str:
    """The git tree of all files but ignored ones."""
    index = str(place.home / "index")
    git(place.cwd, "read-tree", "--empty", GIT_INDEX_FILE=index)
    git(place.cwd, "add", "-A", GIT_INDEX_FILE=index)
    return git(place.cwd, "write-tree", GIT_INDEX_FILE=index).strip()


def state(place: Workplace) -> dict[str, Any]:
    """What belongs to the user: nothing of it may change."""
    dot_git = place.cwd / ".git"
    found: dict[str, Any] = {
        name: (dot_git / name).read_bytes() for name in ("index", "HEAD", "config")
    }
    found["names"] = sorted(path.name for path in dot_git.iterdir())
    found["status"] = git(
        place.cwd, "status", "--porcelain", "-uall", GIT_OPTIONAL_LOCKS="0"
    )
    for words in (
        ("for-each-ref",),
        ("stash", "list"),
        ("worktree", "list"),
        ("reflog",),
    ):
        found[" ".join(words)] = git(place.cwd, *words)
    files = subprocess.run(
        [
            "find",
            ".",
            "-path",
            "./.git",
            "-prune",
            "-o",
            "-printf",
            "%p %y %m %l %T@\n",
        ],
        cwd=place.cwd,
        check=True,
        capture_output=True,
    )
    return {**found, "files": sorted(files.stdout.splitlines())}


def is_clean(place: Workplace) -> bool:
    """Nothing of ours is left."""
    left = [
        *(place.home / "worktrees").glob("*"),
        *(place.home / "codex-py/undo").glob("*"),
    ]
    return not left and not git(place.cwd, "for-each-ref", REFERENCES)


def by_model(**replies: Sequence[Any]) -> Callable[[RecordedRequest], Sequence[Any]]:
    return lambda request: replies[request.fields["model"]]


def run(
    place: Workplace,
    script: Sequence[Any],
    *options: str,
    prompt: tuple[str, ...] = ("go",),
    stdin: bytes = b"",
) -> tuple[Outcome, ScriptedServer]:
    """Play the script for each attempt."""
    with ScriptedServer(script, each_thread=True) as server:
        place.configure(server)
        given = ("exec", "--json", "-s", "danger-full-access", *options, *prompt)
        ended = run_codex_py(given, place.home, place.cwd, stdin=stdin)
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    return Outcome(ended.returncode, events, ended.stderr.decode()), server


def result(outcome: Outcome) -> dict[str, Any]:
    assert outcome.types.count("best.completed") == 1
    assert outcome.types[-1] == "best.completed"
    return outcome.events[-1]


def facts(outcome: Outcome, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(each[name] for name in names) for each in result(outcome)["attempts"]]


DIRTY = """
printf 'staged\\n' >> a.txt; git add a.txt; printf 'unstaged\\n' >> a.txt
printf 'mode' > run.sh; git add run.sh; chmod +x run.sh
git mv old.txt 'new n\u00e4me.txt'; rm gone.txt; ln -sfn a.txt link
printf 'a\\0b\\377' > bin; printf 'later' > later; git add -N later
mkdir -p deep/er; printf 'x' > 'deep/er/tab\tname'; printf 'x' > '-dash'; printf 'o' > ignored.o
"""


def make_dirty(place: Workplace) -> None:
    for name in ("old.txt", "gone.txt"):
        write(place.cwd / name, f"{name}\n" * 9)
    (place.cwd / "link").symlink_to("old.txt")
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-qm", "two")
    script = ["bash", "-ec", DIRTY]
    env = {"PATH": os.environ["PATH"], "HOME": str(place.home)}
    subprocess.run(script, cwd=place.cwd, env=env, check=True)


def test_attempts_begin_with_what_is_not_committed_and_the_repository_stays_as_it_is(
    place: Workplace,
) -> None:
    make_dirty(place)
    before = state(place)
    same = f"diff -r --no-dereference -x .git -x '*.o' . {place.cwd} && test -x run.sh"
    outcome, _ = run(
        place,
        [command(f"{same} && touch made"), DONE],
        "--best-of",
        "2",
        "--no-apply",
        "--verify",
        f"test -e made && diff -r --no-dereference -x .git -x made -x '*.o' . {place.cwd}",
    )
    assert (outcome.code, state(place)) == (0, before), outcome.err
    assert facts(outcome, "passed", "state", "diff_lines") == [(True, "done", 0)] * 2
    assert (result(outcome)["winner"], result(outcome)["applied"]) == (1, False)
    assert is_clean(place)


CHANGES = """
printf 'two\\n' >> a.txt; rm gone.txt; mv old.txt 'n\u00e4w \"q\" name'; ln -sfn gone2 link; ln -s / root
printf 'x\\0\\377' > bin; head -c 5000 /dev/urandom > big; chmod +x run.sh; mkdir d; printf 'in' > 'd/ b'
cp a.txt c.txt; printf '' > empty; printf 'crlf\\r\\n' > crlf
"""


def test_the_change_of_the_winner_is_applied_exactly_and_undone_as_one(
    place: Workplace,
) -> None:
    for name in ("old.txt", "gone.txt", "run.sh"):
        write(place.cwd / name, f"{name}\n" * 9)
    (place.cwd / "link").symlink_to("old.txt")
    (place.cwd / "bin").write_bytes(b"a\0b")
    old = tree(place)
    script = [
        command(
            f"{CHANGES} git write-tree; git add -A; git write-tree > {place.home}/tree"
        ),
        DONE,
    ]
    outcome, _ = run(place, script, "--best-of", "1")
    assert (outcome.code, result(outcome)["applied"]) == (0, True), outcome.err
    assert (
        tree(place) == (place.home / "tree").read_text(encoding="utf-8").strip() != old
    )
    assert is_clean(place)
    undone = run_codex_py(["undo"], place.home, place.cwd)
    assert (undone.returncode, tree(place)) == (0, old), undone.stderr
    patch = result(outcome)["attempts"][0]["patch"]
    git(place.cwd, "apply", patch)
    assert tree(place) == (place.home / "tree").read_text(encoding="utf-8").strip()


def test_an_attempt_that_passes_through_ignored_files_alone_does_not_pass(
    place: Workplace,
) -> None:
    before = state(place)
    outcome, server = run(
        place,
        [command("touch x.o b.txt"), DONE],
        "--best-of",
        "2",
        "--verify",
        "test -e x.o",
    )
    assert (outcome.code, state(place)) == (3, before)
    assert len(server.requests) == 4, "the gate of the attempt itself passed"
    why = "verify: test -e x.o: exit code 1 in a clean checkout"
    assert facts(outcome, "state", "passed", "why") == [("done", False, why)] * 2
    for (patch,) in facts(outcome, "patch"):
        assert "b.txt" in Path(patch).read_text(encoding="utf-8")
    assert result(outcome)["winner"] is None


REQUIRING = """
from __future__ import annotations
from codex_py.api.tables import ClaimedTable, Layers, Verification, key

class Required(ClaimedTable):
    file: str | None = key("A file that must be there.")

    @classmethod
    def verification(cls, layers: Layers) -> Verification:
        name = layers.merged()["required"]["file"]
        return Verification([f"test -e {name}"], 10)
"""


@pytest.mark.parametrize(("name", "code"), [("b.txt", 0), ("x.o", 3)])
def test_a_table_of_a_package_may_require_scripts_of_every_attempt(
    place: Workplace, tmp_path: Path, name: str, code: int
) -> None:
    packages = tmp_path / "packages"
    points = {"codex_py.tables": {"required": "codex_py_required:Required"}}
    install_package(packages, "codex_py_required", REQUIRING, points)
    options = ("-s", "danger-full-access", "-c", f"required.file={name}")
    with ScriptedServer([command("touch x.o b.txt"), DONE], each_thread=True) as server:
        place.configure(server)
        done = run_with(packages, place, "exec", *options, "--best-of", "1", "go")
    assert done.returncode == code, done.stderr
    assert (place.cwd / "b.txt").exists() == (code == 0)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("exec", "--jobs", "2", "go"), "--jobs has no effect without --best-of"),
        (
            ("exec", "--junit", "x", "--vary", "a=1"),
            "--vary has no effect without --best-of",
        ),
        (("--best-of", "2"), "--best-of is for new sessions of `codex-py exec`"),
        (
            ("exec", "resume", "x", "--best-of", "2"),
            "--best-of is for new sessions of `codex-py exec`",
        ),
        (
            ("exec", "--best-of", "0", "go"),
            "--best-of and --jobs take whole numbers from 1",
        ),
        (
            ("exec", "--best-of", "2", "--worktree", "go"),
            "--best-of does not go with --worktree",
        ),
    ],
)
def test_options_that_do_not_go_together(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arguments(argv)
    assert str(caught.value) == message


def test_attempts_differ_and_the_best_score_wins(place: Workplace) -> None:
    ends = {name: [*ev_message(f"I am {name}"), ev_completed()] for name in "ab"}
    script = [
        by_model(a=command("echo 1 > n"), b=command("echo 22 > n; echo 2 > m")),
        by_model(**ends),
    ]
    outcome, server = run(
        place,
        script,
        *(
            "--best-of",
            "4",
            "--vary",
            "model=a,b",
            "--vary",
            "effort=low,high",
            "--jobs",
            "2",
        ),
        *("--score", "echo looking; echo score=$(cat n)", "-o", "said.md"),
    )
    assert outcome.code == 0, outcome.err
    varied = [("a", "low"), ("b", "low"), ("a", "high"), ("b", "high")]
    assert facts(outcome, "varied") == [({"effort": e, "model": m},) for m, e in varied]
    sent = {
        (r.fields["model"], r.fields["reasoning"]["effort"]) for r in server.requests
    }
    assert sent == set(varied)
    assert facts(outcome, "score", "diff_lines") == [(1, 1), (22, 2)] * 2
    assert (result(outcome)["winner"], result(outcome)["why"]) == (
        2,
        "of the 4 that passed, it is the first",
    )
    assert (place.cwd / "said.md").read_text(encoding="utf-8") == "I am b"
    assert (place.cwd / "n").read_text(encoding="utf-8") == "22\n"
    numbers = [event["attempt"] for event in outcome.events[:-1]]
    assert {numbers.count(number) for number in (1, 2, 3, 4)} == {7}, "one is a warning"
    assert (
        "2        model=b effort=low" in outcome.err
        or "2        effort=low model=b" in outcome.err
    )


@pytest.mark.parametrize("options", [(), ("--approve-for-me",)])
def test_attempts_have_the_options_of_extensions(
    place: Workplace, options: tuple[str, ...]
) -> None:
    ended, server = run(place, [DONE], "--best-of", "1", *options)
    assert ended.code == 0, ended.err
    # Without the option, nobody is asked.
    is_asked = "on-request" in str(server.requests[0].input)
    assert is_asked is bool(options)


def test_a_smaller_diff_wins_but_not_against_one_that_changes_nothing(
    place: Workplace,
) -> None:
    works = by_model(a=command("seq 9 > n"), b=command("seq 3 > n"), c=command("true"))
    outcome, _ = run(place, [works, DONE], "--best-of", "3", "--vary", "model=a,b,c")
    assert facts(outcome, "diff_lines") == [(9,), (3,), (0,)]
    assert (result(outcome)["winner"], result(outcome)["why"]) == (
        2,
        "of the 3 that passed, its diff is the smallest",
    )


def test_a_binary_file_counts_as_a_line(place: Workplace) -> None:
    outcome, _ = run(
        place, [command("head -c 999 /dev/zero > n; seq 3 > m"), DONE], "--best-of", "1"
    )
    assert facts(outcome, "diff_lines") == [(4,)]


def test_a_forbidden_path_loses(place: Workplace) -> None:
    works = by_model(a=command("echo > t.py"), b=command("seq 9 > n"))
    options = ("--forbid-path", "t.py", "--verify-tries", "0", "--vary", "model=a,b")
    outcome, _ = run(place, [works, DONE], "--best-of", "2", *options)
    why = "forbid-path: t.py: t.py must stay as it was"
    assert facts(outcome, "state", "why", "exit_code") == [
        ("gate failed", why, 3),
        ("done", None, 0),
    ]
    assert result(outcome)["winner"] == 2


def test_the_score_has_to_be_a_number(place: Workplace) -> None:
    works = by_model(a=command("echo nan > n"), b=command("echo -1e3 > n"))
    options = (
        "--best-of",
        "2",
        "--vary",
        "model=a,b",
        "--score",
        "echo score=$(cat n)",
    )
    outcome, _ = run(place, [works, DONE], *options)
    assert facts(outcome, "score") == [(None,), (-1000.0,)]
    assert (outcome.code, result(outcome)["winner"]) == (0, 2)
    none, _ = run(
        place,
        [command("echo x > m"), DONE],
        "--best-of",
        "2",
        "--score",
        "echo 5; exit 1",
    )
    assert (none.code, result(none)["winner"], (place.cwd / "m").exists()) == (
        2,
        None,
        False,
    )
    assert (
        "no attempt has a score: --score: exit code 1, and its last line is '5'"
        in none.err
    )


JUNIT = (
    "mkdir -p out; printf '<testsuites><testsuite>%s</testsuite></testsuites>' "
    "\"$(cat cases)\" > out/r.o; echo '<' > out/broken.o"
)
CASE, FAILED = '<testcase name="a"/>', '<testcase name="b"><failure/></testcase>'


def test_tests_rank_by_their_junit_reports(place: Workplace) -> None:
    works = by_model(
        a=command(f"echo '{CASE}{FAILED}' > cases"),
        b=command(f"echo '{CASE}{CASE}' > cases"),
    )
    options = ("--vary", "model=a,b", "--verify", JUNIT, "--junit", "out/*.o")
    outcome, _ = run(place, [works, DONE], "--best-of", "2", *options)
    assert facts(outcome, "passed_tests", "failed_tests") == [(1, 1), (2, 0)]
    assert (result(outcome)["winner"], result(outcome)["why"]) == (
        2,
        "of the 2 that passed, fewer of its tests failed",
    )


@pytest.mark.parametrize("pattern", ["/nowhere/*.xml", "", "a**b", "../*"])
def test_no_pattern_of_reports_ends_the_run(place: Workplace, pattern: str) -> None:
    outcome, _ = run(
        place, [command("echo > b"), DONE], "--best-of", "1", "--junit", pattern
    )
    assert (outcome.code, facts(outcome, "passed_tests")) == (0, [(None,)]), outcome.err


ODD_REPORTS = (
    "mkfifo pipe.xml; mkdir folder.xml; ln -s /dev/zero zero.xml; printf '\\377\\376<' > wide.xml;"
    " echo '<?xml version=\"1.0\" encoding=\"none\"?><x/>' > encoded.xml; echo '<x>' > open.xml"
)


def test_a_file_that_is_no_junit_report_is_left_out(place: Workplace) -> None:
    good = f"{ODD_REPORTS}; echo '<x>{CASE}</x>' > good.xml"
    options = ("--best-of", "1", "--verify", good, "--junit", "**/*.xml")
    outcome, _ = run(place, [command("echo > b"), DONE], *options)
    assert (outcome.code, facts(outcome, "passed_tests")) == (0, [(1,)]), outcome.err


def test_the_judge_decides_among_equals(place: Workplace) -> None:
    judging: list[str] = []

    def reply(request: RecordedRequest) -> Sequence[Any]:
        text = str(request.fields["input"])
        if "<change attempt=" in text:
            judging.append(text)
            return [
                *ev_message('{"attempt": 1, "reason": "it is whole"}'),
                ev_completed(),
            ]
        return by_model(a=command("seq 9 > n"), b=command("seq 3 > n"))(request)

    options = ("--vary", "model=a,b", "-c", 'model="a"', "--judge", "--verify", "true")
    outcome, _ = run(
        place, [reply, DONE], "--best-of", "2", *options, prompt=("the task",)
    )
    assert (result(outcome)["winner"], result(outcome)["why"]) == (
        1,
        "the judge says: it is whole",
    )
    assert len(judging) == 1
    assert "the task" in judging[0]
    assert "+9" in judging[0]


def test_a_judge_without_an_answer_is_a_warning(place: Workplace) -> None:
    judge = [*ev_message("2, I think"), ev_completed()]
    works = by_model(
        **{"a": command("seq 9 > n"), "b": command("seq 3 > n"), "gpt-5.5": judge}
    )
    options = ("--vary", "model=a,b", "--judge")
    with ScriptedServer(
        [works, by_model(**{"a": DONE, "b": DONE, "gpt-5.5": judge})], each_thread=True
    ) as server:
        place.configure(server)
        given = ("exec", "-s", "danger-full-access", "--best-of", "2", *options, "go")
        ended = run_codex_py(given, place.home, place.cwd)
    assert (ended.returncode, ended.stdout) == (0, b"done\n")
    assert b"warning: the judge has chosen none: " in ended.stderr
    assert (
        b"Attempt 2 is applied: of the 2 that passed, its diff is the smallest.\n"
        in ended.stderr
    )


@pytest.mark.parametrize(
    ("script", "told"),
    [("true", "changes nothing"), ("echo 1 > n", "is the best, and is not applied")],
)
def test_why_the_best_is_not_applied_is_said(
    place: Workplace, script: str, told: str
) -> None:
    works = by_model(**{"gpt-5.5": command(script)})
    outcome, _ = run(place, [works, DONE], "--best-of", "2", "--no-apply")
    assert outcome.code == 0, outcome.err
    assert f"Attempt 1 {told}: of the 2 that passed, it is the first.\n" in outcome.err


def test_prompts_vary(place: Workplace) -> None:
    write(place.cwd / "p1", "first, with a comma")
    options = ("--best-of", "2", "--vary", "prompt=@p1,second")
    _, server = run(place, [DONE], *options, prompt=())
    prompts = {r.fields["input"][-1]["content"][0]["text"] for r in server.requests}
    assert prompts == {"first, with a comma", "second"}


def test_all_attempts_share_one_budget(place: Workplace) -> None:
    large = [*ev_message("done"), ev_completed(input_tokens=70_000, cached=0)]
    options = ("--best-of", "3", "--max-tokens", "100k", "--jobs", "1")
    outcome, server = run(place, [large], *options)
    assert facts(outcome, "state")[0] == ("done",)
    assert facts(outcome, "state")[2] in {("over budget",), ("not begun",)}
    assert len(server.requests) <= 2
    assert (outcome.code, result(outcome)["winner"]) == (0, 1)


def test_a_running_attempt_ends_when_another_has_used_the_budget(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        up = f"{line.hold} touch {tmp_path}/up; sleep 100"
        # The server counts what nobody could expect.
        large = [
            *ev_function_call("c", "exec_command", {"cmd": f"{line.hold} sleep 100"}),
            ev_completed(input_tokens=100_000, cached=0),
        ]

        def reply(request: RecordedRequest) -> Sequence[Any]:
            if request.fields["model"] == "b":
                return command(up)
            while not (tmp_path / "up").exists():
                time.sleep(0.01)
            return large

        options = (
            "--best-of",
            "3",
            "--jobs",
            "2",
            "--max-tokens",
            "95k",
            "--vary",
            "model=a,b",
        )
        outcome, _ = run(place, [reply], *options)
        line.wait_until_dead()
    assert facts(outcome, "state") == [
        ("over budget",),
        ("over budget",),
        ("not begun",),
    ]
    assert is_clean(place)


def test_the_time_is_for_all(place: Workplace, tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line:
        options = ("--best-of", "3", "--jobs", "2", "--max-time", "3s")
        outcome, _ = run(place, [command(f"{line.hold} sleep 100")], *options)
        line.wait_until_dead()
    assert facts(outcome, "state") == [
        ("over budget",),
        ("over budget",),
        ("not begun",),
    ]
    assert outcome.code == 55


def test_a_failure_of_all_has_its_own_code(place: Workplace) -> None:
    outcome, _ = run(place, [], "--best-of", "2")
    assert outcome.code == 69
    assert facts(outcome, "state", "passed") == [("failed", False)] * 2


def test_changes_made_meanwhile_are_merged(place: Workplace) -> None:
    write(place.cwd / "a.txt", "".join(f"{n}\n" for n in range(20)))
    user = f"sed -i 's/^1$/user/' {place.cwd}/a.txt; sed -i 's/^18$/agent/' a.txt"
    outcome, _ = run(place, [command(user), DONE], "--best-of", "1")
    assert outcome.code == 0, outcome.err
    lines = (place.cwd / "a.txt").read_text(encoding="utf-8").split("\n")
    assert (lines[1], lines[18]) == ("user", "agent")


@pytest.mark.parametrize("is_by_attribute", [True, False])
def test_a_file_whose_line_ends_git_converts_is_changed(
    place: Workplace, is_by_attribute: bool
) -> None:
    if is_by_attribute:
        write(place.cwd / ".gitattributes", "*.txt text eol=crlf\n")
    else:
        git(place.cwd, "config", "core.autocrlf", "true")
    (place.cwd / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-qm", "two")
    outcome, _ = run(place, [command("sed -i s/one/1/ a.txt"), DONE], "--best-of", "1")
    assert outcome.code == 0, outcome.err
    assert (place.cwd / "a.txt").read_bytes() == b"1\r\ntwo\r\n"


def test_a_change_that_does_not_fit_any_more_is_named(place: Workplace) -> None:
    user = f"echo user > {place.cwd}/a.txt; echo agent > a.txt; echo new > b.txt"
    outcome, _ = run(place, [command(user), DONE], "--best-of", "1")
    assert (outcome.code, git(place.cwd, "status", "--porcelain")) == (7, " M a.txt")
    patch = result(outcome)["attempts"][0]["patch"]
    assert result(outcome)["applied"] is False
    assert patch in outcome.err
    assert "+agent" in Path(patch).read_text(encoding="utf-8")


def test_worktrees_can_be_elsewhere(place: Workplace, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    options = (
        "--best-of",
        "1",
        "--worktrees",
        str(elsewhere),
        "-s",
        "workspace-write",
        "-C",
        "sub",
    )
    (place.cwd / "sub").mkdir()
    write(place.cwd / "sub" / "x", "x")
    outcome, _ = run(
        place, [command(f"pwd > y; touch {place.cwd}/bad"), DONE], *options
    )
    assert outcome.code == 0, outcome.err
    assert str(elsewhere) in (place.cwd / "sub" / "y").read_text(encoding="utf-8")
    assert not (place.cwd / "bad").exists()
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--best-of", "0"), 2, "--best-of and --jobs take whole numbers from 1"),
        (("--best-of", "x"), 2, "no whole number"),
        (("--jobs", "2"), 2, "--jobs has no effect without --best-of"),
        (
            ("--best-of", "2", "--worktree"),
            2,
            "--best-of does not go with --worktree",
        ),
        (
            ("--best-of", "2", "--vary", "foo=1,2"),
            2,
            "--vary: there is no setting `foo`",
        ),
        (
            ("--best-of", "2", "--vary", "modle=a,b"),
            2,
            "--vary: there is no setting `modle`; did you mean `model`?",
        ),
        (
            ("--best-of", "2", "--vary", "model=a,b", "--vary", "tools.foo=1,2"),
            2,
            "--vary: there is no setting `tools.foo`",
        ),
        (
            ("--best-of", "2", "--vary", "model"),
            2,
            "--vary: write KEY=VALUE,VALUE, not 'model'",
        ),
        (
            ("--best-of", "2", "--vary", "model=a,"),
            2,
            "--vary: write KEY=VALUE,VALUE, not 'model=a,'",
        ),
        (
            ("--best-of", "2", "--vary", "prompt=@p"),
            2,
            "--vary prompt=… takes the place of PROMPT",
        ),
        (("--best-of", "2", "--vary", "sandbox_mode=x"), 78, "sandbox_mode"),
        (("--best-of", "2", "--worktrees", "none"), 2, "cannot work in 'none'"),
        (
            ("--best-of", "2", "-C", "/"),
            2,
            "--best-of needs a git repository, and / is in none",
        ),
    ],
)
def test_mistakes_change_nothing(
    place: Workplace, options: tuple[str, ...], code: int, sentence: str
) -> None:
    before = state(place)
    ended = run_codex_py(
        ["exec", "--skip-git-repo-check", *options, "go"], place.home, place.cwd
    )
    assert ended.returncode == code, ended.stderr
    assert sentence in ended.stderr.decode()
    assert (state(place), is_clean(place)) == (before, True)


def test_a_prompt_that_is_not_there_is_a_mistake(place: Workplace) -> None:
    ended = run_codex_py(
        ["exec", "--best-of", "2", "--vary", "prompt=@no"], place.home, place.cwd
    )
    assert ended.returncode == 2
    assert b"--vary: cannot read 'no': No such file or directory" in ended.stderr


def test_outside_of_a_repository_there_are_no_attempts(
    place: Workplace, tmp_path: Path
) -> None:
    ended = run_codex_py(["exec", "--best-of", "2", "go"], place.home, tmp_path)
    assert (ended.returncode, ended.stderr.count(b"\n")) == (2, 1)
    assert b"--best-of needs a git repository, and " in ended.stderr


def test_only_new_sessions_of_exec_have_attempts(place: Workplace) -> None:
    for words in (["exec", "resume", "--last"], ["review", "x"], []):
        ended = run_codex_py([*words, "--best-of", "2"], place.home, place.cwd)
        assert ended.returncode == 2
        assert b"--best-of is for new sessions of `codex-py exec`" in ended.stderr


def start(place: Workplace, *options: str) -> "subprocess.Popen[bytes]":
    given = ("exec", "-s", "danger-full-access", "--best-of", "2", *options, "go")
    return start_codex_py(given, place.cwd, environment(place.home))


def test_an_interrupt_ends_all_attempts_within_a_second(
    place: Workplace, tmp_path: Path
) -> None:
    before = state(place)
    with (
        Lifeline(tmp_path) as line,
        ScriptedServer([command(f"{line.hold} sleep 100")], each_thread=True) as server,
    ):
        place.configure(server)
        with start(place) as program:
            line.wait_until_up(2)
            began = time.monotonic()
            program.send_signal(signal.SIGINT)
            line.wait_until_dead()
            took_s = time.monotonic() - began
            _, err = program.communicate()
    assert program.returncode == 130, err
    assert took_s < 2, "one second, and a busy machine"
    assert (state(place), is_clean(place)) == (before, True), err


def test_a_kill_leaves_no_agent_and_the_next_command_sweeps(
    place: Workplace, tmp_path: Path
) -> None:
    before = state(place)
    with (
        Lifeline(tmp_path) as line,
        ScriptedServer([command(f"{line.hold} sleep 100")], each_thread=True) as server,
    ):
        place.configure(server)
        with start(place, "--verify", "true") as program:
            line.wait_until_up(2)
            program.kill()
            line.wait_until_dead()
            program.communicate()
    assert not is_clean(place)
    listed = run_codex_py(["worktree", "list"], place.home, place.cwd)
    assert listed.stdout.startswith(b"There are no worktrees."), listed
    assert (state(place), is_clean(place)) == (before, True)


def test_a_kill_at_any_moment_leaves_all_or_nothing(place: Workplace) -> None:
    for number in range(30):
        write(place.cwd / f"f{number}", "old\n")
    old = tree(place)
    change = "for f in f*; do echo new > $f; done; git add -A; git write-tree > $CODEX_HOME/tree"
    seen: set[str] = set()
    with ScriptedServer([command(change), DONE], each_thread=True) as server:
        place.configure(server)
        journal = place.home / "codex-py" / "journal"
        for delay_s in (0.0, 0.002, 0.01):
            with start(place) as program:
                # It writes to the journal when it applies the change.
                while program.poll() is None and not list(journal.glob("*.prepared")):
                    time.sleep(0.0005)
                time.sleep(delay_s)
                program.kill()
                program.communicate()
            listed = run_codex_py(["undo", "--show"], place.home, place.cwd)
            new = (place.home / "tree").read_text(encoding="utf-8").strip()
            assert tree(place) in {old, new}, listed
            seen.add(tree(place))
            git(place.cwd, "reset", "-q", "--hard")
            for number in range(30):
                write(place.cwd / f"f{number}", "old\n")
    assert seen
