"""The action, from a workflow to annotations, outputs and a red job; and the key, looked for everywhere."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_py.testing import Reply, ev_completed, ev_custom_tool_call, ev_message
from tests.action.conftest import KEY, git
from tests.support.hooks import DONE, command
from tests.support.privileges import respect_processes
from tests.support.server import ScriptedServer
from tests.support.workflow_runner import Job, JobResult

MENDS = [
    *ev_custom_tool_call(
        "p",
        "apply_patch",
        "*** Begin Patch\n*** Update File: basket.py\n@@\n-    return subtotal - discount\n"
        "+    return subtotal * (100 - discount) / 100\n*** End Patch",
    ),
    ev_completed(),
]
LIES = [*ev_message("All tests pass now.\n::error::said by the model"), ev_completed()]
FINDING: dict[str, Any] = {
    "findings": [
        {
            "title": "[P1] The discount may be above 100",
            "body": "The sum is negative then:\nsee the tests.",
            "confidence_score": 0.9,
            "priority": 1,
            "code_location": {
                "absolute_file_path": "basket.py",
                "line_range": {"start": 7, "end": 7},
            },
        }
    ],
    "overall_correctness": "patch is incorrect",
    "overall_explanation": "One problem.",
    "overall_confidence_score": 0.8,
}
REVIEW = json.dumps(FINDING)


def workflow(server: ScriptedServer, *, depth: str = "1", **inputs: str) -> str:
    given = {
        "openai-api-key": "${{ secrets.KEY }}",
        "prompt": "Mend the tests",
        "responses-api-endpoint": f"{server.base_url}/responses",
        **inputs,
    }
    checkout = {"persist-credentials": "false", "fetch-depth": depth}
    steps: list[dict[str, Any]] = [
        {"uses": "actions/checkout@v5", "with": checkout},
        {"id": "codex", "uses": "your-org/codex-py@main", "with": given},
    ]
    return yaml.safe_dump({"jobs": {"mend": {"steps": steps}}})


def outputs(result: JobResult) -> Mapping[str, str]:
    return result.steps["codex"]["outputs"]


def messages(result: JobResult) -> list[tuple[str, str]]:
    return [(each.level, each.message) for each in result.annotations]


def test_a_job_mends_the_tests(start: Callable[..., Job]) -> None:
    with ScriptedServer([MENDS, DONE]) as server:
        options = {
            "verify": "python3 -m unittest -q",
            "forbid-path": "test_*",
            "max-turns": "9",
        }
        job = start()
        result = job.run(workflow(server, **options), "mend")
    assert (result.conclusion, messages(result)) == ("success", []), result.log
    assert outputs(result)["final-message"] == "done"
    assert outputs(result)["exit-code"] == "0"
    patch = outputs(result)["patch"]
    assert "+    return subtotal * (100 - discount) / 100\n" in patch
    git = ["git", "apply", "--reverse", "--check", "-"]
    subprocess.run(git, cwd=job.workspace, input=patch.encode(), check=True)
    assert "`verify: python3 -m unittest -q` | passed" in result.summary
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert result.left_behind == []


def test_a_job_is_red_where_the_model_lies_about_the_tests(
    start: Callable[..., Job],
) -> None:
    with ScriptedServer([LIES] * 3) as server:
        result = start().run(workflow(server, verify="python3 -m unittest -q"), "mend")
    error = "verify: python3 -m unittest -q: exit code 1 (exit code 3)"
    assert messages(result) == [
        ("error", error),
        ("error", "Process completed with exit code 3."),
    ]
    assert result.conclusion == "failure"
    assert outputs(result)["exit-code"] == "3"
    assert "FAILED (failures=" in result.log
    # What it prints is no command to the runner.
    assert "::error::said by the model" in result.log


HUNT = """
import os
from pathlib import Path
key = bytes(reversed(b"%s"))
read = 0
for folder in Path("/proc").glob("[0-9]*"):
    # The test itself plays the runner, which knows the key.
    if folder.name in {str(os.getpid()), "%d"}:
        continue
    for name in ("environ", "cmdline"):
        try:
            text = (folder / name).read_bytes()
        except OSError:
            continue
        read += 1
        if key in text:
            print("found in", name, "of", folder.name)
    try:
        maps = (folder / "maps").read_text(encoding="utf-8").splitlines()
        with open(folder / "mem", "rb", 0) as memory:
            for line in maps:
                words = line.split()
                if not words[1].startswith("rw") or line.endswith("[vvar]"):
                    continue
                start, end = (int(each, 16) for each in words[0].split("-"))
                memory.seek(start)
                if key in memory.read(end - start):
                    print("found in the memory of", folder.name, (folder / "cmdline").read_bytes())
    except OSError:
        continue
for root in (os.environ["HOME"], os.environ["RUNNER_TEMP"], os.getcwd()):
    for path in Path(root).rglob("*"):
        try:
            if path.is_file() and key in path.read_bytes():
                print("found in", path)
        except OSError:
            continue
for name, value in os.environ.items():
    if key in value.encode():
        print("found in", name)
print("read", read, "files of processes")
"""


@pytest.mark.parametrize("sandbox", ["workspace-write", "danger-full-access"])
def test_the_key_is_nowhere(start: Callable[..., Job], sandbox: str) -> None:
    hunt = HUNT % (KEY[::-1], os.getpid())
    with ScriptedServer([command(f"python3 - <<'END'{hunt}END"), DONE]) as server:
        inputs = {"sandbox": sandbox, "safety-strategy": "unsafe"}
        result = start(limit=respect_processes).run(workflow(server, **inputs), "mend")
        (output,) = (
            item["output"]
            for item in server.requests[1].input
            if item["type"].endswith("_output")
        )
    assert result.conclusion == "success", result.log
    assert "found" not in output, output
    (read,) = re.findall(r"read (\d+) files of processes", output)
    assert int(read) > 2
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(result.all_outputs)
    assert KEY not in result.summary
    # Once: the runner shows the variables of the step, which people see with a mask.
    assert result.raw_log.count(KEY) == 1
    assert KEY not in result.log
    assert result.left_behind == []
    (token,) = re.findall('"token": "(.*?)"', str(result.all_outputs))
    assert token not in result.log


@pytest.mark.parametrize("sandbox", ["workspace-write", "danger-full-access"])
def test_commands_do_not_read_the_tokens_of_the_step(
    start: Callable[..., Job], sandbox: str
) -> None:
    name, token = "ACTIONS_ID_TOKEN_REQUEST_TOKEN", uuid.uuid4().hex
    looks = f"cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a ^{name}=; env; echo :end"
    with ScriptedServer([command(looks), DONE]) as server:
        inputs = {"sandbox": sandbox, "safety-strategy": "unsafe"}
        job = start(limit=respect_processes, variables={name: token})
        result = job.run(workflow(server, **inputs), "mend")
    assert result.conclusion == "success", result.log
    output = server.requests[1].output("c1")
    assert output.rstrip().endswith(":end")
    assert token not in output


def test_a_review_annotates_the_change_and_fails_the_job(
    start: Callable[..., Job],
) -> None:
    review = [*ev_message(REVIEW), ev_completed()]
    with ScriptedServer([MENDS, DONE, review]) as server:
        inputs = {"review": "uncommitted", "review-fail-on": "p1"}
        result = start().run(workflow(server, **inputs), "mend")
    annotation = result.annotations[0]
    assert (annotation.level, annotation.message) == (
        "error",
        FINDING["findings"][0]["body"],
    )
    assert (annotation.properties["file"], annotation.properties["line"]) == (
        "basket.py",
        "7",
    )
    assert (
        messages(result)[1][1]
        == "the review has findings that fail the job (exit code 3)"
    )
    assert [each["path"] for each in json.loads(outputs(result)["findings"])] == [
        "basket.py"
    ]
    assert (outputs(result)["final-message"], outputs(result)["exit-code"]) == (
        "done",
        "3",
    )


PULL_REQUEST: dict[str, Any] = {
    "action": "opened",
    "pull_request": {"user": {"login": "octocat"}, "author_association": "MEMBER"},
}


@pytest.mark.parametrize("target", ["base", "commit", "base origin/main~1"])
def test_a_review_is_of_what_the_event_or_the_input_names(
    start: Callable[..., Job], origin: Path, target: str
) -> None:
    base, sha = git(origin, "rev-parse", "HEAD~1"), git(origin, "rev-parse", "HEAD")
    event = deepcopy(PULL_REQUEST)
    event["pull_request"]["base"] = {"sha": base}
    with ScriptedServer([[*ev_message(REVIEW), ev_completed()]]) as server:
        job = start(event_name="pull_request", event=event)
        result = job.run(workflow(server, depth="0", prompt="", review=target), "mend")
    assert result.conclusion == "success", result.log
    request = server.requests[0].input[-1]["content"][0]["text"]
    named = {"base": f"changes since {base}", "commit": f"commit {sha}"}
    assert named.get(target, "changes since origin/main~1") in request
    assert "+++ b/.gitignore\n@@ -0,0 +1 @@\n+__pycache__/\n" in request
    assert json.loads(outputs(result)["findings"])[0]["on_change"] is False


def test_a_review_says_which_commits_a_checkout_has_left_out(
    start: Callable[..., Job],
) -> None:
    with ScriptedServer() as server:
        result = start().run(workflow(server, prompt="", review="commit"), "mend")
    assert messages(result)[0][1].endswith(
        "`fetch-depth: 0` of actions/checkout (exit code 2)"
    )


def test_an_anthropic_key_goes_to_anthropic_alone(start: Callable[..., Job]) -> None:
    with ScriptedServer([MENDS, DONE]) as server:
        endpoint = f"{server.base_url}/messages"
        options = {
            "model": "anthropic/claude-opus-4-5",
            "responses-api-endpoint": endpoint,
        }
        result = start().run(workflow(server, **options), "mend")
    assert (result.conclusion, messages(result)) == ("success", []), result.log
    first = server.requests[0]
    assert (first.path, first.fields["model"]) == ("/v1/messages", "claude-opus-4-5")
    assert first.headers["x-api-key"] == KEY
    assert "authorization" not in first.headers
    assert "return subtotal * (100" in outputs(result)["patch"]


def test_effort_permission_profile_and_places_are_inputs(
    start: Callable[..., Job], tmp_path: Path
) -> None:
    options = {
        "effort": "high",
        "permission-profile": ":read-only",
        "working-directory": "sub ö",
        "output-file": "sub ö/said.txt",
        "output-schema": '{"type": "object", "required": ["done"]}',
        "prompt": "",
        "prompt-file": "sub ö/task",
        "codex-home": str(tmp_path / "own home"),
        "codex-args": "-c developer_instructions='Be brief.'",
    }
    said = [*ev_message('{"done": true}'), ev_completed()]
    job = start()
    (job.workspace / "sub ö").mkdir()
    (job.workspace / "sub ö/task").write_text("Mend it, bitte schön", encoding="utf-8")
    with ScriptedServer([command("pwd; touch made"), said]) as server:
        result = job.run(workflow(server, **options), "mend")
    assert (result.conclusion, messages(result)) == ("success", []), result.log
    first, second = server.requests
    assert first.fields["reasoning"]["effort"] == "high"
    assert "Mend it, bitte schön" in str(first.input)
    assert "Be brief." in str(first.input)
    assert f"{job.workspace}/sub ö\n" in second.output("c1")
    assert "Read-only file system" in second.output("c1")
    assert (job.workspace / "sub ö/said.txt").read_text(
        encoding="utf-8"
    ) == '{"done": true}'
    assert any((tmp_path / "own home/sessions").rglob("*.jsonl"))


def test_a_command_has_no_token_and_cannot_write_where_the_runner_reads(
    start: Callable[..., Job],
) -> None:
    script = (
        'env | grep -c -i "proxy_token"; echo own >"$TMPDIR/x" && echo written;'
        ' for file in "$RUNNER_TEMP"/*; do touch "$file/planted" "$file" 2>&1; done;'
        ' echo PATH=/evil >>"$RUNNER_TEMP/planted"; find "$RUNNER_TEMP" -name planted'
    )
    with ScriptedServer([command(script), DONE]) as server:
        result = start().run(workflow(server), "mend")
        output = server.requests[1].output("c1")
    assert (result.conclusion, messages(result)) == ("success", []), result.log
    assert "written" in output
    assert "\n0\n" in output
    assert "/planted\n" not in output.replace("/planted: ", "")
    assert "Read-only file system" in output


_READ_ONLY = {"safety-strategy": "read-only"}


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        ({"prompt": ""}, 2, "give `prompt`, `prompt-file` or `review`"),
        (
            {"prompt-file": "../outside"},
            2,
            "`prompt-file`: '../outside' is not in the workspace",
        ),
        (
            {"output-file": "link/x"},
            2,
            "`output-file`: 'link/x' is not in the workspace",
        ),
        (
            {"working-directory": "/etc"},
            2,
            "`working-directory`: '/etc' is not in the workspace",
        ),
        ({"sandbox": "danger-full-access"}, 2, "needs `safety-strategy: unsafe`"),
        ({"safety-strategy": "readonly"}, 2, "is none of drop-sudo, read-only"),
        ({"safety-strategy": "READ-ONLY"}, 2, "is none of drop-sudo, read-only"),
        ({"safety-strategy": "read_only"}, 2, "is none of drop-sudo, read-only"),
        ({"safety-strategy": "read-only "}, 2, "is none of drop-sudo, read-only"),
        ({"safety-strategy": "none"}, 2, "is none of drop-sudo, read-only"),
        ({"codex-user": "other"}, 2, "there is no `unprivileged-user`"),
        (
            {"permission-profile": ":danger-full-access"},
            2,
            "needs `safety-strategy: unsafe`",
        ),
        (
            {"codex-args": "--sandbox danger-full-access"},
            2,
            "needs `safety-strategy: unsafe`",
        ),
        ({"codex-args": "--yolo"}, 2, "needs `safety-strategy: unsafe`"),
        (
            {
                "codex-args": '["-c", "sandbox_mode=\\"danger-full-access\\"", "-s", "danger-full-access"]'
            },
            2,
            "unsafe`",
        ),
        ({"codex-args": "--approve-for-me"}, 2, "a model that approves commands"),
        (
            {**_READ_ONLY, "permission-profile": ":workspace"},
            2,
            "contradicts other inputs",
        ),
        (
            {**_READ_ONLY, "codex-args": "--sandbox workspace-write"},
            2,
            "contradicts other inputs",
        ),
        (
            {**_READ_ONLY, "codex-args": "--full-auto -s workspace-write"},
            2,
            "contradicts",
        ),
        ({"codex-home": ".codex"}, 2, "`codex-home`: '.codex' is in the workspace"),
        ({"codex-home": "sub/../.ch"}, 2, "is in the workspace"),
        ({"codex-home": "inner"}, 2, "is in the workspace"),
        ({"codex-args": "--help"}, 2, "`codex-args`: `--help` runs no agent"),
        (
            {"codex-args": '["-c", 1]'},
            2,
            "`codex-args`: the words of the JSON array are strings",
        ),
        (
            {"responses-api-endpoint": "https://a/v1"},
            2,
            "is no endpoint of the provider openai: it must end in /responses",
        ),
        ({"max-turns": "many"}, 2, "--max-turns"),
        ({"max-cost": "much"}, 2, "--max-cost"),
        ({"fail-on": "nothing"}, 2, "--fail-on"),
        (
            {"prompt-file": "missing"},
            2,
            "`prompt-file`: 'missing' cannot be read: No such file or directory",
        ),
        ({"prompt-file": "."}, 2, "`prompt-file`: '.' cannot be read: Is a directory"),
        (
            {"output-schema-file": "missing"},
            2,
            "`output-schema-file`: 'missing' cannot be read: No such file",
        ),
        ({"output-schema": "{nope"}, 2, "`output-schema` is not valid JSON: "),
        (
            {"output-schema": '{"type": "strin"}'},
            2,
            "`output-schema` is not a valid JSON Schema: ",
        ),
        ({"codex-args": '["--model"'}, 2, "`codex-args` is no JSON array: "),
        ({"codex-args": "--model 'gpt"}, 2, "`codex-args` is no line of a shell: "),
        (
            {"review": "Base main"},
            2,
            "`review: Base main` is none of uncommitted, base",
        ),
        ({"output-schema-file": "/etc/passwd"}, 2, "`output-schema-file`"),
        ({"working-directory": "missing"}, 2, "missing"),
        ({"review": "everything"}, 2, "`review: everything` is none of uncommitted"),
        ({"review": "base main", "review-fail-on": "p9"}, 2, "--fail-on"),
        ({"codex-args": "--no-such-option"}, 2, "--no-such-option"),
        (
            {"safety-strategy": "unsafe", "codex-args": "--no-such-option"},
            2,
            "--no-such-option",
        ),
        ({"safety-strategy": "unsafe", "codex-home": ".ch"}, 2, "is in the workspace"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_sent(
    start: Callable[..., Job], inputs: dict[str, str], code: int, message: str
) -> None:
    job = start()
    (job.workspace / "link").symlink_to("/tmp")
    with ScriptedServer() as server:
        result = job.run(workflow(server, **inputs), "mend")
    shown, end = messages(result)
    assert message in shown[1]
    assert end[1] == f"Process completed with exit code {code}."
    assert (server.requests, result.left_behind) == ([], [])
    # The key had no proxy yet.
    assert not any("plan" in each for each in result.all_outputs)


@pytest.mark.parametrize(
    ("variable", "below"), [("CODEX_HOME", ".codex"), ("HOME", "")]
)
def test_a_home_in_the_workspace_is_refused_whoever_names_it(
    start: Callable[..., Job], tmp_path: Path, variable: str, below: str
) -> None:
    workspace = tmp_path / "runner" / "work"
    (workspace / ".codex").mkdir(parents=True)
    (tmp_path / "link").symlink_to(workspace)
    job = start(variables={variable: str(tmp_path / "link" / below)})
    with ScriptedServer() as server:
        result = job.run(workflow(server), "mend")
    assert (
        "is in the workspace, where the checkout could configure"
        in messages(result)[0][1]
    )
    assert server.requests == []


@pytest.mark.parametrize("status", [401, 403, 404, 400])
def test_a_failure_names_the_provider_and_not_the_proxy_of_the_key(
    start: Callable[..., Job], status: int
) -> None:
    words = f"we do not know you and your {KEY}"
    body = json.dumps({"error": {"message": words}}).encode()
    with ScriptedServer([Reply(status=status, body=body)]) as server:
        result = start().run(workflow(server), "mend")
    error = messages(result)[0][1]
    assert f"we do not know you and your ***, url: {server.base_url}/responses" in error
    assert ("key from the input `openai-api-key`" in error) == (status in {401, 403})
    (plan,) = [json.loads(o["plan"]) for o in result.all_outputs if "plan" in o]
    for text in (result.log, result.summary):
        assert f"127.0.0.1:{plan['port']}" not in text
    for text in (error, result.summary, json.dumps(result.all_outputs)):
        assert KEY not in text
    assert f"{server.base_url}/responses" in result.summary


def test_a_stranger_starts_nothing(start: Callable[..., Job]) -> None:
    event = {"comment": {"user": {"login": "mallory"}, "author_association": "NONE"}}
    job = start(event_name="issue_comment", event=event, actor="mallory")
    with ScriptedServer() as server:
        result = job.run(workflow(server), "mend")
    assert "mallory belongs to the repository" in messages(result)[0][1]
    assert server.requests == []
