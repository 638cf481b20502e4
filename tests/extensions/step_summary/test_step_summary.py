"""The summary of a step in GitHub Actions, written by the real program."""

import json
import os
from pathlib import Path

from codex_py.testing import ev_completed, ev_message
from tests.support.hooks import DONE, command
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer


def test_a_step_of_github_actions_gets_a_summary(
    place: Workplace, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    message = [*ev_message("Did it.\n```\n<img src=x> @everyone\n```"), ev_completed()]
    with ScriptedServer([command("echo x > new"), message]) as server:
        place.configure(server)
        arguments = [
            "exec",
            "--skip-git-repo-check",
            "-s",
            "danger-full-access",
            "--json",
        ]
        env = {"GITHUB_STEP_SUMMARY": str(summary)}
        options = ["--verify", "true", "--require-change", "go"]
        ended = run_codex_py([*arguments, *options], place.home, place.cwd, env)
    assert ended.returncode == 0
    last = json.loads(ended.stdout.splitlines()[-1])
    text = summary.read_text(encoding="utf-8")
    assert text.startswith(
        "### codex-py: the turn completed\n\n````text\nDid it.\n```\n<img"
    )
    assert "| `verify: true` | passed |  |\n| `require-change` | passed |  |" in text
    total = last["usage"]["input_tokens"] + last["usage"]["output_tokens"]
    assert text.endswith(f"1 files changed, 1 lines, {total:,} tokens.\n")


def test_a_summary_that_nobody_reads_is_not_waited_for(
    place: Workplace, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        arguments = ["exec", "--skip-git-repo-check", "go"]
        ended = run_codex_py(
            arguments, place.home, place.cwd, {"GITHUB_STEP_SUMMARY": str(pipe)}
        )
    assert ended.returncode == 0
    assert b"GITHUB_STEP_SUMMARY cannot be written" in ended.stderr
