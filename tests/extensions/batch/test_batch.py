"""`codex-py batch` of the real program: what it keeps, what it runs again, and what is left after a kill.

Tests `extensions/batch/attempt.py`, `extensions/batch/batch_command.py`,
`extensions/batch/results.py`, `extensions/batch/tasks.py`, `extensions/batch/untrusted.py`
and `extensions/batch/view.py`.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from codex_py.extensions.batch.tasks import Task
from codex_py.testing import (
    Pause,
    RecordedRequest,
    Reply,
    ev_completed,
    ev_custom_tool_call,
)
from tests.support.codex_process import start_codex_py
from tests.support.hooks import DONE, command
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

_OPTIONS = ("--skip-git-repo-check", "-s", "danger-full-access")
_PATCH = [
    *ev_custom_tool_call(
        "p", "apply_patch", "*** Begin Patch\n*** Add File: made\n+text\n*** End Patch"
    ),
    ev_completed(),
]

_MEND = [
    *ev_custom_tool_call(
        "p",
        "apply_patch",
        "*** Begin Patch\n*** Update File: calc.py\n@@\n-    return a - b\n+    return a + b\n*** End Patch",
    ),
    ev_completed(),
]


_BAD_VERBOSITY = (
    r'`model_verbosity` must be one of `low`, `medium`, `high`, not `"a\U0000000Ab"`'
)
_BAD_SETTINGS: list[tuple[str, Any, str]] = [
    ("model", ["x"], "`model` must be a string"),
    ("model", "", "`model` '' names no model"),
    ("model", "mock/ ", "`model` 'mock/ ' names no model"),
    ("model_context_window", -1, "`model_context_window` must be an integer"),
    ("tool_output_token_limit", "abc", "`tool_output_token_limit` must be an integer"),
    ("parallel_tool_calls", "no", "`parallel_tool_calls` must be a boolean"),
    ("model_reasoning_effort", 5, "`model_reasoning_effort` must be a string"),
    ("model_verbosity", "a\nb", _BAD_VERBOSITY),
    ("budget.max_turns", "many", "`budget.max_turns`: 'many' is no amount"),
    ("budget.max_turns", [], "`budget.max_turns`: '[]' is no amount"),
]
"""Settings that are allowed in any row, bad values, and the reasons."""


def write_tasks(place: Workplace, tasks: Sequence[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(task) + "\n" for task in tasks)
    (place.cwd / "tasks.jsonl").write_text(text, encoding="utf-8")


def some_tasks(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"t{number}", "prompt": f"do {number}", **fields}
        for number in range(count)
    ]


def arguments(*options: str, output: str = "out.jsonl") -> list[str]:
    return ["batch", "tasks.jsonl", "-o", output, *options, "--", *_OPTIONS]


def batch(
    place: Workplace, *options: str, output: str = "out.jsonl"
) -> subprocess.CompletedProcess[bytes]:
    return run_codex_py(arguments(*options, output=output), place.home, place.cwd)


def start(place: Workplace, *options: str) -> subprocess.Popen[bytes]:
    return start_codex_py(
        arguments(*options), place.cwd, environment(place.home), real=True
    )


def commit_all(repo: Path) -> str:
    """Commit all files of a folder, which becomes a repository; the commit."""
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=repo, check=True)
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        head, cwd=repo, capture_output=True, encoding="utf-8", check=True
    ).stdout.strip()


def results(place: Workplace, output: str = "out.jsonl") -> dict[str, dict[str, Any]]:
    lines = (place.cwd / output).read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    by_id = {each["id"]: each for each in found}
    assert len(by_id) == len(found), "a task has two results"
    return by_id


def statuses(place: Workplace) -> dict[str, str]:
    return {name: each["status"] for name, each in results(place).items()}


def agents_of(driver: int) -> list[int]:
    """The agents that a batch runs just now; its other child is the guardian."""
    listed = Path(f"/proc/{driver}/task/{driver}/children").read_text("utf-8").split()
    return [
        int(pid)
        for pid in listed
        if b"\0exec\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pids: Sequence[int], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "an agent has outlived its batch"
        time.sleep(0.01)


def test_each_task_has_one_result_and_does_not_run_again(place: Workplace) -> None:
    (place.cwd / "other").mkdir()
    first, second, third = some_tasks(3)
    third.pop("prompt")
    (place.cwd / "prompt.md").write_text("from a file", encoding="utf-8")
    tasks = [
        first,
        {**second, "cwd": "other", "meta": [1]},
        {**third, "prompt_file": "prompt.md"},
    ]
    write_tasks(place, tasks)
    with ScriptedServer([_PATCH, DONE], each_thread=True) as server:
        place.configure(server)
        done = batch(place, "--json", "--trust-tasks")
        # The second request of one task may come before the first of another.
        last = [each.input[-1] for each in server.requests]
        prompts = {item["content"][0]["text"] for item in last if "content" in item}
        asked = len(server.requests)
        again = batch(place, "--trust-tasks")
        assert len(server.requests) == asked == 6
    assert (done.returncode, again.returncode) == (0, 0)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["type"] for each in events[:-1]} == {"batch.progress"}
    assert events[-1]["type"] == "batch.completed"
    assert (events[-1]["statuses"], events[-1]["exit_code"]) == ({"done": 3}, 0)
    assert prompts == {"do 0", "do 1", "from a file"}
    result = results(place)["t1"]
    assert (result["exit_code"], result["last_message"], result["meta"]) == (
        0,
        "done",
        [1],
    )
    assert "+text" in result["diff"]
    assert result["usage"]["output_tokens"] > 0
    assert [each["status"] for each in result["attempts"]] == ["done"]
    assert result["artefacts"] == "out/t1/1"
    assert sorted(
        each.name for each in (place.cwd / result["artefacts"]).iterdir()
    ) == [*("events.jsonl", "last_message.md", "patch.diff", "stderr")]
    assert (place.cwd / "other" / "made").read_text(encoding="utf-8") == "text\n"


def test_tasks_with_a_repository_work_in_trees_of_their_own(place: Workplace) -> None:
    repo = place.cwd / "repo"
    repo.mkdir()
    (repo / "old").write_text("1\n", encoding="utf-8")
    base = commit_all(repo)
    (repo / "old").write_text("2\n", encoding="utf-8")
    commit_all(repo)
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch hooked\n", encoding="utf-8")
    hook.chmod(0o755)
    script = [command("printf 'a\\0b' > binary; cat old > seen; git add seen"), DONE]
    write_tasks(place, some_tasks(2, repo="repo", base=base, verify="test -e binary"))
    with ScriptedServer(script, each_thread=True) as server:
        place.configure(server)
        assert batch(place, "--trust-tasks").returncode == 0
    for result in results(place).values():
        assert result["base"] == base
        assert "hooked" not in result["diff"]
        assert result["gates"][0]["status"] == "passed"
    copy = place.cwd / "copy"
    subprocess.run(["git", "clone", "-q", repo, copy], check=True)
    subprocess.run(["git", "checkout", "-q", base], cwd=copy, check=True)
    patch = place.cwd / "out" / "t0" / "1" / "patch.diff"
    subprocess.run(["git", "apply", patch], cwd=copy, check=True)
    assert (copy / "binary").read_bytes() == b"a\0b"
    assert (copy / "seen").read_text(encoding="utf-8") == "1\n"
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repo, capture_output=True, check=True
    )
    assert status.stdout == b""
    assert list((place.home / "worktrees").iterdir()) == []


def test_the_exit_code_of_an_agent_is_the_status_of_its_task(place: Workplace) -> None:
    gate, budget = {"verify": "false"}, {"max_tokens": 1}
    cases = [gate, budget, {"timeout": 0.01}, {"config": {"budget.max_turns": 1}}, {}]
    write_tasks(
        place,
        [{**task, **more} for task, more in zip(some_tasks(5), cases, strict=True)],
    )
    with ScriptedServer([_PATCH, *[DONE] * 4], each_thread=True) as server:
        place.configure(server)
        assert batch(place, "--trust-tasks").returncode == 1
    found = results(place)
    assert found["t2"].pop("exit_code") in {None, 143}
    assert {
        name: (each["status"], each.get("exit_code")) for name, each in found.items()
    } == {
        "t0": ("failed", 3),
        "t1": ("over_budget", 54),
        "t2": ("timeout", None),
        "t3": ("failed", 53),
        "t4": ("done", 0),
    }


def test_a_provider_without_a_key_ends_its_own_tasks_alone(place: Workplace) -> None:
    tasks = some_tasks(4)
    for task in tasks[:2]:
        task["provider"] = "other"
    write_tasks(place, tasks)
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write(
                f'[model_providers.other]\nname = "x"\nbase_url = "{server.base_url}"\n'
            )
            file.write('env_key = "NOT_SET"\n')
        done = batch(place, "--trust-tasks", "--limit", "other=1")
    assert done.returncode == 77
    assert statuses(place) == {"t2": "done", "t3": "done"}
    assert b"no further task ran with other" in done.stderr


def test_a_provider_that_serves_four_at_a_time_ends_no_task(place: Workplace) -> None:
    lock, in_flight = threading.Lock(), 0
    is_crowded = threading.Event()

    def answer(_: RecordedRequest) -> Reply:
        nonlocal in_flight
        with lock:
            in_flight += 1
            is_refused = in_flight > 4
        # The first four are held until a fifth comes, however slow this machine is.
        if is_refused:
            is_crowded.set()
        else:
            is_crowded.wait(60)
        with lock:
            in_flight -= 1
        if is_refused:
            return Reply(status=429, body=b'{"error":{"message":"slow down"}}')
        return Reply(events=DONE)

    write_tasks(place, some_tasks(12))
    with ScriptedServer([answer] * 100) as server:
        place.configure(server)
        assert batch(place, "--jobs", "8", "--retries", "0").returncode == 0
        assert len(server.requests) > 12
    assert set(statuses(place).values()) == {"done"}
    assert len(results(place)) == 12


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_agent_gets_another_try_and_a_killed_batch_leaves_nothing(
    place: Workplace,
) -> None:
    repo = place.cwd / "repo"
    repo.mkdir()
    (repo / "file").write_text("1\n", encoding="utf-8")
    commit_all(repo)
    write_tasks(place, some_tasks(2, repo="repo"))
    pauses = [Pause() for _ in range(5)]
    with ScriptedServer(
        [[pause, *DONE] for pause in pauses], check_prefix=False
    ) as server:
        place.configure(server, stream_idle_timeout_ms=100_000)
        driver = start(place)
        with driver:
            for pause in pauses[:2]:
                assert pause.reached.wait(60)
            os.kill(agents_of(driver.pid)[0], signal.SIGKILL)
            assert pauses[2].reached.wait(60)
            agents = agents_of(driver.pid)
            driver.kill()
        assert len(agents) == 2
        wait_until_gone(agents, 1.0)
        assert results(place) == {}
        assert len(list((place.home / "worktrees").iterdir())) == 2
        for pause in pauses:
            pause.until.set()
        assert batch(place).returncode == 0
    assert statuses(place) == {"t0": "done", "t1": "done"}
    assert list((place.home / "worktrees").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_lost_attempts_are_counted(place: Workplace) -> None:
    write_tasks(place, some_tasks(1))
    with ScriptedServer([command("kill -9 $PPID")] * 2) as server:
        place.configure(server)
        assert batch(place, "--retries", "1").returncode == 1
    result = results(place)["t0"]
    assert (result["status"], result["signal"]) == ("failed", signal.SIGKILL)
    assert result["error"]["message"] == "signal 9 ended it"
    assert [each["status"] for each in result["attempts"]] == ["lost", "lost"]


def test_an_interruption_ends_the_agents_and_keeps_what_is_done(
    place: Workplace,
) -> None:
    write_tasks(place, some_tasks(2))
    pause = Pause()
    with ScriptedServer([DONE, [pause, *DONE], DONE]) as server:
        place.configure(server)
        with start(place, "--jobs", "1", "--json") as driver:
            assert pause.reached.wait(60)
            driver.send_signal(signal.SIGINT)
            out, _ = driver.communicate(timeout=60)
        assert driver.returncode == 130
        assert json.loads(out.splitlines()[-1])["exit_code"] == 130
        assert statuses(place) == {"t0": "done"}
        assert batch(place).returncode == 0
    assert statuses(place) == {"t0": "done", "t1": "done"}


def test_a_second_batch_does_not_write_to_the_same_results(place: Workplace) -> None:
    write_tasks(place, some_tasks(1))
    pause = Pause()
    with ScriptedServer([[pause, *DONE]]) as server:
        place.configure(server)
        with start(place) as driver:
            assert pause.reached.wait(60)
            second = batch(place)
            pause.until.set()
    assert (driver.returncode, second.returncode) == (0, 75)
    assert second.stderr == b"Error: another batch writes to out.jsonl\n"


def test_a_place_that_cannot_be_written_ends_the_batch_and_fails_no_task(
    place: Workplace,
) -> None:
    write_tasks(place, some_tasks(2))
    (place.cwd / "out").mkdir()
    (place.cwd / "out" / "t1").write_text("in the way", encoding="utf-8")
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        done = batch(place, "--jobs", "1")
    assert done.returncode == 1
    assert done.stderr.endswith(b"/out/t1/1 cannot be written: Not a directory\n")
    assert statuses(place) == {"t0": "done"}


def test_a_torn_line_is_cut_and_its_task_runs_again(place: Workplace) -> None:
    write_tasks(place, some_tasks(2))
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        assert batch(place).returncode == 0
        file = place.cwd / "out.jsonl"
        file.write_bytes(file.read_bytes()[:-100])
        assert batch(place).returncode == 0
        assert len(server.requests) == 3
    assert statuses(place) == {"t0": "done", "t1": "done"}


def test_a_changed_task_runs_again_only_if_asked(place: Workplace) -> None:
    write_tasks(place, some_tasks(2))
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        assert batch(place).returncode == 0
        write_tasks(place, [some_tasks(1)[0], {"id": "t1", "prompt": "another"}])
        refused = batch(place)
        assert (refused.returncode, len(server.requests)) == (2, 2)
        assert b"1 tasks have changed since they ended, such as 't1'" in refused.stderr
        assert batch(place, "--redo", "changed").returncode == 0
        assert len(server.requests) == 3
    assert statuses(place) == {"t0": "done", "t1": "done"}


def test_shards_divide_the_tasks(place: Workplace) -> None:
    write_tasks(place, some_tasks(5))
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        for index in range(2):
            assert (
                batch(
                    place, "--shard", f"{index}/2", output=f"{index}.jsonl"
                ).returncode
                == 0
            )
        assert batch(place, "--only", "t1,t4", output="two.jsonl").returncode == 0
    assert [sorted(results(place, f"{name}.jsonl")) for name in ("0", "1", "two")] == [
        *(["t0", "t2", "t4"], ["t1", "t3"], ["t1", "t4"])
    ]


def test_a_shard_without_tasks_is_done(place: Workplace) -> None:
    write_tasks(place, some_tasks(2))
    done = batch(place, "--shard", "2/3")
    assert (done.returncode, results(place)) == (0, {})


def test_a_task_whose_folder_or_line_is_gone_meanwhile_fails_alone(
    place: Workplace,
) -> None:
    (place.cwd / "gone").mkdir()
    # The file is longer than what is read of it at once.
    tasks = [*some_tasks(2, meta="x" * 50_000), {"id": "last", "prompt": "go"}]
    tasks[1]["cwd"] = "gone"
    write_tasks(place, tasks)
    script = [
        command("rmdir gone; truncate -s 60000 tasks.jsonl; printf ' ' >> tasks.jsonl"),
        DONE,
    ]
    with ScriptedServer(script) as server:
        place.configure(server)
        assert batch(place, "--trust-tasks", "--jobs", "1").returncode == 1
    assert statuses(place) == {"t0": "done", "t1": "failed", "last": "failed"}
    assert (
        results(place)["last"]["error"]["message"]
        == "its line has changed since the batch began"
    )


def test_each_provider_that_was_stopped_is_named(place: Workplace) -> None:
    tasks = some_tasks(2)
    for task, name in zip(tasks, ("nowhere", "nobody"), strict=True):
        task["provider"] = name
    write_tasks(place, tasks)
    with ScriptedServer([]) as server:
        place.configure(server)
        done = batch(place, "--trust-tasks")
    assert done.returncode == 78
    for name in (b"nowhere", b"nobody"):
        assert b"no further task ran with " + name in done.stderr


def test_standard_input_that_is_closed_is_a_sentence(place: Workplace) -> None:
    words = [sys.executable, "-m", "codex_py", "batch", "-", "-o", "out.jsonl"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *words],
        cwd=place.cwd,
        env=environment(place.home),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, b"Error: there is no task to run\n")


def test_rows_of_swe_bench_become_predictions(place: Workplace) -> None:
    repo = place.cwd / "owner" / "name"
    repo.mkdir(parents=True)
    (repo / "file").write_text("1\n", encoding="utf-8")
    row = {
        "repo": "owner/name",
        "base_commit": commit_all(repo),
        "problem_statement": "mend it",
    }
    rows = [
        {"instance_id": f"owner__name-{n}", **row, "test_patch": "", "hints_text": ""}
        for n in (1, 2)
    ]
    write_tasks(place, rows)

    def answer(request: RecordedRequest) -> Any:
        return DONE if request.input[-1]["type"] != "message" else _PATCH

    refuse_one = Reply(status=400, body=b'{"error":{"message":"no"}}')
    with ScriptedServer([refuse_one, answer, answer]) as server:
        place.configure(server)
        assert (
            batch(place, "--jobs", "1", "--predictions", "preds.jsonl").returncode == 1
        )
    (prediction,) = (place.cwd / "preds.jsonl").read_text(encoding="utf-8").splitlines()
    found = json.loads(prediction)
    assert found.keys() == {"instance_id", "model_name_or_path", "model_patch"}
    assert (found["instance_id"], found["model_name_or_path"]) == (
        "owner__name-2",
        "gpt-5.5",
    )
    assert found["model_patch"].startswith("diff --git a/made b/made\n")
    nowhere = batch(place, "--predictions", "none/preds.jsonl")
    assert nowhere.stderr.endswith(
        b"Error: none/preds.jsonl cannot be written: No such file or directory\n"
    )


def test_failed_tasks_run_again_if_asked(place: Workplace) -> None:
    write_tasks(place, some_tasks(3))
    refuse = Reply(status=400, body=b'{"error":{"message":"no"}}')
    with ScriptedServer([DONE, refuse, DONE]) as server:
        place.configure(server)
        assert batch(place, "--jobs", "1", "--fail-fast").returncode == 1
        assert statuses(place) == {"t0": "done", "t1": "failed"}
        assert batch(place, "--redo", "failed", "--only", "t0,t1").returncode == 0
    assert statuses(place) == {"t0": "done", "t1": "done"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2 of tasks.jsonl: it is not JSON: "),
        ("[1]", "line 2 of tasks.jsonl: a task is a JSON object"),
        ("[" * 100_000, "line 2 of tasks.jsonl: "),
        (
            '{"id": "../x", "prompt": "x"}',
            "line 2 of tasks.jsonl: id: '../x' cannot be an id: use 1",
        ),
        (
            '{"id": "a b", "prompt": "x"}',
            "id: 'a b' cannot be an id: use 1 to 128 letters from A to Z",
        ),
        (
            '{"id": "\\u00e9", "prompt": "x"}',
            "id: 'é' cannot be an id: use 1 to 128 letters from A to Z",
        ),
        (
            '{"id": "x\\n", "prompt": "x"}',
            "cannot be an id: use 1 to 128 letters from A to Z",
        ),
        (
            '{"id": "", "prompt": "x"}',
            "id: '' cannot be an id: use 1 to 128 letters from A to Z",
        ),
        ('{"id": 3, "prompt": "x"}', "line 2 of tasks.jsonl: id: it must be a string"),
        ('{"prompt": "x"}', "line 2 of tasks.jsonl: id: it is missing"),
        (
            '{"id": "x", "prompt": "x", "priority": "high"}',
            "priority: it must be an integer",
        ),
        ('{"id": "x", "prompt": "x", "config": []}', "config: it must be an object"),
        (
            '{"id": "t0", "prompt": "x"}',
            "line 2 of tasks.jsonl: the id 't0' was there before",
        ),
        (
            '{"id": "x"}',
            "line 2 of tasks.jsonl: write either `prompt` or `prompt_file`",
        ),
        ('{"id": "x", "promt": "x"}', "unknown key 'promt'. Did you mean prompt?"),
        (
            '{"id": "x", "prompt": "x", "cwd": "nowhere"}',
            "there is no folder 'nowhere'",
        ),
        ('{"id": "x", "prompt": "x", "prompt_file": "y"}', "write either `prompt`"),
        (
            '{"id": "x", "prompt": "x", "cwd": ".", "repo": "."}',
            "write either `cwd` or `repo`",
        ),
        ('{"id": "x", "prompt": "x", "timeout": "soon"}', "timeout: "),
        (
            '{"id": "x", "prompt": "x", "env": ["NOT_SET"]}',
            "a variable is not set: NOT_SET",
        ),
        ('{"id": "x", "prompt": "\xff"}', "line 2 of tasks.jsonl: it is not JSON: "),
        ('{"id": "x", "prompt": "\\ud800"}', "line 2 of tasks.jsonl: it is not JSON: "),
        (
            '{"id": "x", "prompt": "x", "verify": "a\\u0000"}',
            "line 2 of tasks.jsonl: it has a NUL",
        ),
        ('{"id": "x", "prompt": "x", "repo": "."}', "'.' is in no git repository"),
        (
            '{"id": "x", "prompt": "x", "max_turns": 0}',
            "max_turns: '0' is no amount of responses",
        ),
        (
            '{"id": "x", "prompt": "x", "prompt": "y"}',
            "line 2 of tasks.jsonl: the key 'prompt' is repeated in one object",
        ),
        # Equal values, and another spelling of the key.
        (
            '{"id": "x", "prompt": "x", "pr\\u006fmpt": "x"}',
            "line 2 of tasks.jsonl: the key 'prompt' is repeated in one object",
        ),
        (
            '{"id": "x", "prompt": "x", "config": {"model": "a", "model": "b"}}',
            "line 2 of tasks.jsonl: the key 'model' is repeated in one object",
        ),
        (
            '{"id": "x", "prompt": "x", "meta": [{"a": {"b": null, "c": 1, "b": null}}]}',
            "line 2 of tasks.jsonl: the key 'b' is repeated in one object",
        ),
        # A column that is left out.
        (
            '{"instance_id": "x", "problem_statement": "x", "hints": 1, "hints": 2}',
            "line 2 of tasks.jsonl: the key 'hints' is repeated in one object",
        ),
        (
            '{"id": "x", "id": "x", "prompt": "x", "": 1, "": 2}',
            "line 2 of tasks.jsonl: the key 'id' is repeated in one object",
        ),
        (
            '{"id": "x", "prompt": "x", "KEY": 1, "KEY": 2}'.replace("KEY", "k" * 999),
            f"the key '{'k' * 80}…' is repeated in one object",
        ),
        *(
            (
                json.dumps({"id": "x", "prompt": "x", "config": {key: value}}),
                f"line 2 of tasks.jsonl: config: {reason}",
            )
            for key, value, reason in _BAD_SETTINGS
        ),
        ('{"id": "x", "prompt": "x", "model": ""}', "model: '' names no model"),
        # Two names of one column.
        (
            '{"id": "x", "prompt": "x", "problem_statement": "y"}',
            "line 2 of tasks.jsonl: unknown key 'problem_statement'",
        ),
    ],
)
def test_a_bad_task_file_runs_nothing(place: Workplace, line: str, reason: str) -> None:
    good = json.dumps(some_tasks(1)[0])
    (place.cwd / "tasks.jsonl").write_text(f"{good}\n{line}\n", encoding="latin-1")
    done = batch(place, "--trust-tasks")
    assert done.returncode == 2
    assert reason in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (place.cwd / "out.jsonl").exists()


@pytest.mark.parametrize(("key", "value", "reason"), _BAD_SETTINGS)
def test_a_bad_setting_of_a_stranger_runs_nothing(
    place: Workplace, key: str, value: Any, reason: str
) -> None:
    write_tasks(place, [{"id": "evil", "prompt": "x", "config": {key: value}}])
    done = batch(place)
    assert done.returncode == 2
    assert reason in done.stderr.decode()
    assert not (place.cwd / "out.jsonl").exists()


def test_a_row_whose_own_settings_do_not_work_fails_alone(place: Workplace) -> None:
    bad = {
        "id": "evil",
        "prompt": "x",
        "priority": 9,
        "model": "no-price",
        "max_cost": 1,
    }
    write_tasks(place, [bad, *some_tasks(1)])
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        assert batch(place, "--jobs", "1").returncode == 1
    assert statuses(place) == {"evil": "failed", "t0": "done"}
    assert results(place)["evil"]["exit_code"] == 78


_UNTRUSTED: list[tuple[dict[str, Any], str]] = [
    ({"verify": "touch ran"}, "line 2 'verify'"),
    ({"verify": ["true", "touch ran"]}, "line 2 'verify'"),
    ({"cwd": "inner"}, "line 2 'cwd'"),
    ({"cwd": "/"}, "line 2 'cwd'"),
    ({"env": ["HOME"]}, "line 2 'env'"),
    ({"provider": "other"}, "line 2 'provider'"),
    ({"repo": ".."}, "line 2 'repo' (it leads out of the working directory)"),
    ({"repo": "/nowhere"}, "line 2 'repo' (it leads"),
    ({"repo": "linked"}, "line 2 'repo' (it leads"),
    ({"repo": "inner/../../x"}, "line 2 'repo' (it leads"),
    ({"prompt_file": "/etc/passwd", "prompt": ""}, "line 2 'prompt_file' (it leads"),
    (
        {"prompt_file": "linked/config.toml", "prompt": ""},
        "line 2 'prompt_file' (it leads",
    ),
    ({"model": "other/m"}, "line 2 'model' (it names the provider 'other')"),
    ({"model": "ollama/m"}, "line 2 'model' (it names the provider 'ollama')"),
    ({"config": {"model": "other/m"}}, "line 2 'config.model' (it names the provider"),
    *(
        ({"config": {key: value}}, f"line 2 {f'config.{key}'!r}")
        for key, value in [
            ("notify", ["touch", "ran"]),
            ("mcp_servers.e.command", "touch"),
            ("mcp_servers.e.url", "http://127.0.0.1:1/"),
            ("model_provider", "other"),
            ("model_providers.mock.base_url", "http://127.0.0.1:1/v1"),
            ("model_providers.mock.auth.command", "touch"),
            ("model_fallbacks", ["other/m"]),
            ("openai_base_url", "http://127.0.0.1:1/v1"),
            ("sandbox_mode", "danger-full-access"),
            ("sandbox_mode", "read-only"),
            ("sandbox_workspace_write.writable_roots", ["/"]),
            ("sandbox_workspace_write.network_access", True),
            ("default_permissions", ":danger-full-access"),
            ("permissions.x.filesystem.'/'", "write"),
            ("protection.deny", []),
            ("protection.allow_domains", ["*"]),
            ("approval_policy", "on-request"),
            ("shell_environment_policy.set.BASH_ENV", "evil"),
            ("gates.verify", ["touch ran"]),
            ("gates.require_change", False),
            ("features.hooks", True),
            ("hooks.Stop", []),
            ("model_instructions_file", "/etc/passwd"),
            ("model_catalog_json", "/etc/passwd"),
            ("log_file", "/tmp/log"),
            ("otel.exporter.otlp-http.endpoint", "http://127.0.0.1:1/"),
            ("extensions.x", []),
            ("profile", "p"),
            ("web_search", "live"),
            ("budget.loop_guard", False),
            ("history.persistence", "none"),
            # Spelled in other ways.
            ("'notify'", ["touch", "ran"]),
            (" notify", ["touch", "ran"]),
            ('model_verbosity="low"\nnotify', ["touch", "ran"]),
            ("model_verbosity ", "low"),
            ("MODEL_VERBOSITY", "low"),
        ]
    ),
]


@pytest.mark.parametrize(("row", "named"), _UNTRUSTED)
def test_a_row_chooses_no_program_place_permission_or_provider(
    place: Workplace, row: dict[str, Any], named: str
) -> None:
    (place.cwd / "inner").mkdir()
    (place.cwd / "linked").symlink_to(place.home)
    write_tasks(place, [*some_tasks(1), {"id": "t1", "prompt": "x", **row}])
    with ScriptedServer([]) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write(
                '[model_providers.other]\nname = "x"\nbase_url = "http://127.0.0.1:1"\n'
            )
        done = batch(place)
    assert done.returncode == 2
    said = done.stderr.decode()
    assert said.startswith("Error: tasks.jsonl: 1 setting in 1 row could run a program")
    assert named in said
    assert said.endswith("If you have read them, add --trust-tasks\n")
    assert not (place.cwd / "out.jsonl").exists()
    assert not server.requests


def test_all_settings_that_need_trust_are_counted_and_the_first_are_named(
    place: Workplace,
) -> None:
    rows = some_tasks(
        40, env=["HOME"], config={"notify": ["x"], "model_verbosity": "low"}
    )
    write_tasks(place, [{"id": "good", "prompt": "x"}, *rows])
    done = batch(place)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "Error: tasks.jsonl: 80 settings in 40 rows could run a program, widen what it may do, or"
        " send it elsewhere: line 2 'env', line 2 'config.notify', line 3 'env', line 3"
        " 'config.notify' and 76 more. If you have read them, add --trust-tasks\n"
    )


def test_a_hostile_name_of_a_setting_does_not_reach_the_terminal_as_it_is(
    place: Workplace,
) -> None:
    key = "\x1b]0;x\x07" + "long" * 1000
    write_tasks(place, [{"id": "t", "prompt": "x", "config": {key: 1}}])
    done = batch(place)
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr
    assert len(done.stderr) < 400


def test_a_row_may_say_how_much_a_model_thinks_and_lower_limits(
    place: Workplace,
) -> None:
    repo = place.cwd / "repo"
    repo.mkdir()
    (repo / "file").write_text("1\n", encoding="utf-8")
    base = commit_all(repo)
    (place.cwd / "prompt.md").write_text("from a file", encoding="utf-8")
    config = {
        "model_reasoning_effort": "low",
        "model_verbosity": "low",
        "model": "small",
    }
    tasks = [
        {
            "id": "a",
            "prompt": "x",
            "repo": "repo",
            "base": base,
            "config": config,
            "timeout": "1m",
        },
        {
            "id": "b",
            "prompt_file": "prompt.md",
            "model": "owner/small",
            "meta": {"x": None},
        },
        {"id": "c", "prompt": "x", "config": {"budget.max_turns": 1}, "priority": -1},
    ]
    write_tasks(place, tasks)
    script = [_PATCH, DONE]
    with ScriptedServer(script, each_thread=True) as server:
        place.configure(server)
        assert batch(place, "--jobs", "1").returncode == 1
        asked = {each.body["model"]: each.body for each in server.requests}
    assert {name: each["exit_code"] for name, each in results(place).items()} == {
        "a": 0,
        "b": 0,
        "c": 53,
    }
    assert asked["small"]["reasoning"]["effort"] == "low"
    assert "owner/small" in asked


@pytest.mark.parametrize(
    ("row", "trust", "code"),
    [
        ({"max_turns": 9}, [], 53),
        ({"config": {"budget.max_turns": 9}}, [], 53),
        ({"max_turns": 9}, ["--trust-tasks"], 0),
        ({"config": {"budget.max_turns": 9}}, ["--trust-tasks"], 0),
    ],
)
def test_a_row_raises_a_limit_only_if_it_is_trusted(
    place: Workplace, row: dict[str, Any], trust: list[str], code: int
) -> None:
    write_tasks(place, some_tasks(1, **row))
    with ScriptedServer([_PATCH, DONE], each_thread=True) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write("[budget]\nmax_turns = 1\n")
        batch(place, *trust)
    assert results(place)["t0"]["exit_code"] == code


def test_a_row_lengthens_the_timeout_only_if_it_is_trusted(place: Workplace) -> None:
    write_tasks(place, some_tasks(1, timeout="1h"))
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        batch(place, "--timeout", "0.01")
        assert statuses(place) == {"t0": "timeout"}
        batch(place, "--timeout", "0.01", "--trust-tasks", "--redo", "failed")
    assert statuses(place) == {"t0": "done"}


@pytest.mark.parametrize("trust", [[], ["--trust-tasks"]])
def test_a_row_of_swe_bench_keeps_four_columns_whoever_trusts_it(
    place: Workplace, trust: list[str]
) -> None:
    (place.cwd / "file").write_text("1\n", encoding="utf-8")
    base = commit_all(place.cwd)
    row = {
        "instance_id": "a__b-1",
        "problem_statement": "theirs",
        "base_commit": base,
        "repo": ".",
    }
    ours = {
        "id": "x",
        "prompt": "ours",
        "cwd": "/",
        "env": ["NO"],
        "timeout": 0.01,
        "meta": 1,
    }
    runs = {
        "verify": "touch ran",
        "config": {"notify": ["touch", str(place.home / "ran")]},
    }
    write_tasks(place, [{**row, **ours, **runs, "prompt_file": "/etc/passwd"}])
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        done = batch(place, *trust, output="../home/out.jsonl")
        asked = server.requests[0].input[-1]["content"][0]["text"]
    assert (done.returncode, asked) == (0, "theirs")
    result = results(place, "../home/out.jsonl")["a__b-1"]
    assert (result["status"], result["meta"], result["base"]) == ("done", None, base)
    assert not (place.home / "ran").exists()


def test_a_link_that_is_turned_while_the_batch_runs_fails_its_task(
    place: Workplace,
) -> None:
    (place.home / "secret").write_text("SECRET", encoding="utf-8")
    (place.cwd / "p.md").write_text("fine", encoding="utf-8")
    write_tasks(place, [*some_tasks(1), {"id": "later", "prompt_file": "p.md"}])
    script = [command(f"ln -sf {place.home}/secret p.md"), DONE, DONE]
    with ScriptedServer(script) as server:
        place.configure(server)
        assert batch(place, "--jobs", "1").returncode == 1
        assert b"SECRET" not in b"".join(each.raw for each in server.requests)
    assert "needs --trust-tasks" in results(place)["later"]["error"]["message"]


@pytest.mark.parametrize("trust", [[], ["--trust-tasks"]])
def test_a_denied_file_is_no_prompt(place: Workplace, trust: list[str]) -> None:
    (place.cwd / ".env").write_text("SECRET=1", encoding="utf-8")
    write_tasks(place, [{"id": "a", "prompt_file": ".env"}])
    with ScriptedServer([]) as server:
        place.configure(server)
        words = [
            "batch",
            "tasks.jsonl",
            "-o",
            "out.jsonl",
            *trust,
            "--",
            "--deny",
            ".env",
        ]
        done = run_codex_py(words, place.home, place.cwd)
    assert done.returncode == 2
    assert b"line 1 of tasks.jsonl: '.env' is denied" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["tasks.jsonl"], "say where the results go"),
        (["tasks.jsonl", "-o", "out"], "must end in .jsonl"),
        (["nothing.jsonl", "-o", "out.jsonl"], "nothing.jsonl cannot be read"),
        (["tasks.jsonl", "-o", "out.jsonl", "--shard", "4/4"], "'4/4' is no shard"),
        (["tasks.jsonl", "-o", "out.jsonl", "--only", "t7"], "there is no task t7"),
        (
            ["tasks.jsonl", "-o", "out.jsonl", "--", "a prompt"],
            "behind `--` are options",
        ),
        (
            ["tasks.jsonl", "-o", "out.jsonl", "--", "--no-such"],
            "unknown option --no-such",
        ),
        (
            ["tasks.jsonl", "-o", "out.jsonl", "--", "--worktree"],
            "behind `--` are options",
        ),
        (
            ["tasks.jsonl", "-o", "out.jsonl", "--retries", "-1"],
            "'-1' is no number from 0",
        ),
        (["tasks.jsonl", "-o", "tasks.jsonl"], "line 1 of tasks.jsonl is no result"),
    ],
)
def test_a_mistake_in_the_command_line_runs_nothing(
    place: Workplace, words: list[str], reason: str
) -> None:
    write_tasks(place, some_tasks(1))
    before = (place.cwd / "tasks.jsonl").read_bytes()
    done = run_codex_py(["batch", *words], place.home, place.cwd)
    assert done.returncode == 2
    assert reason in done.stderr.decode()
    assert (place.cwd / "tasks.jsonl").read_bytes() == before


def test_the_documentation_has_the_keys_of_tasks_and_results(place: Workplace) -> None:
    text = (Path(__file__).parents[3] / "docs" / "batch.md").read_text(encoding="utf-8")
    tasks, result, *_ = re.findall(
        r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    keys = set(
        re.findall(
            r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))
        )
    )
    assert {each.name for each in fields(Task)} <= keys
    repo = place.cwd / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text(
        "def add(a, b):\n    return a - b\n", encoding="utf-8"
    )
    commit_all(repo)
    (place.cwd / "tests.md").write_text("Write tests", encoding="utf-8")
    (place.cwd / "tasks.jsonl").write_text(tasks, encoding="utf-8")
    with ScriptedServer([_MEND, DONE], each_thread=True) as server:
        place.configure(server)
        assert batch(place, "--trust-tasks", output="results.jsonl").returncode == 1
    made, shown = results(place, "results.jsonl")["add"], json.loads(result)
    assert list(made) == list(shown)
    same = ("id", "status", "diff", "usage", "gates", "artefacts", "model")
    assert {name: made[name] for name in same} == {name: shown[name] for name in same}


def test_json_that_cannot_be_written_is_an_error_and_the_tasks_end(
    place: Workplace,
) -> None:
    write_tasks(place, some_tasks(2))
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        with Path("/dev/full").open("wb") as full:
            program = start_codex_py(
                arguments("--json"),
                place.cwd,
                environment(place.home),
                stdout=full.fileno(),
            )
            _, told = program.communicate(timeout=120)
    assert program.returncode == 1
    assert told == (
        b"Error: Failed to write to standard output: No space left on device\n"
    )
    assert statuses(place) == {"t0": "done", "t1": "done"}


def test_json_that_nobody_reads_ends_with_the_code_of_a_closed_pipe(
    place: Workplace,
) -> None:
    write_tasks(place, some_tasks(1))
    reader, writer = os.pipe()
    os.close(reader)
    with ScriptedServer([DONE], each_thread=True) as server:
        place.configure(server)
        program = start_codex_py(
            arguments("--json"), place.cwd, environment(place.home), stdout=writer
        )
        os.close(writer)
        _, told = program.communicate(timeout=120)
    assert (program.returncode, told) == (141, b"")
    assert statuses(place) == {"t0": "done"}


def test_tasks_that_are_not_done_are_named_with_the_file_that_says_why(
    place: Workplace,
) -> None:
    write_tasks(place, some_tasks(7))
    refused = Reply(status=400, body=b'{"error": {"message": "no", "code": "no"}}')
    with ScriptedServer([refused], each_thread=True) as server:
        place.configure(server)
        done = batch(place, "--jobs", "1")
    assert done.returncode == 1
    named = ", ".join(f"t{number} (failed)" for number in range(5))
    told = f"Not done: {named} and 2 more. out.jsonl has the error of each; `--redo failed` runs them again.\n"
    assert done.stderr.decode().endswith(told)
