"""What installed packages make of a run, as `docs/extensions.md` shows it: failures, reports and formats.

Tests `api/reports.py`, `api/reviews.py` and `app/installed.py`.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.git import git
from tests.support.packages import (
    PROGRAM,
    install_package,
    shown_block,
    shown_points,
)
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

SILENT: list[Any] = [ev_completed()]
DONE = [*ev_message("done"), ev_completed()]
FINDING = {
    "title": "[P1] The lock stays",
    "body": "It is never released.",
    "confidence_score": 0.9,
    "priority": 1,
    "code_location": {
        "absolute_file_path": "text",
        "line_range": {"start": 1, "end": 1},
    },
}
REVIEW = {
    "findings": [FINDING],
    "overall_correctness": "patch is incorrect",
    "overall_explanation": "One problem.",
    "overall_confidence_score": 0.8,
}

Done: TypeAlias = "subprocess.CompletedProcess[bytes]"
Run: TypeAlias = Callable[..., Done]


def install(packages: Path, group: str, text: str) -> None:
    """Install the package whose entry points and whose module with this text are shown."""
    points = shown_points(f"codex_py.{group}")
    (value,) = points.values()
    module, _, _ = value.partition(":")
    shown = shown_block(text)
    install_package(packages, module, shown, {f"codex_py.{group}": points})


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return tmp_path / "packages"


@pytest.fixture
def run(place: Workplace, packages: Path) -> Run:
    def run(*argv: str, **variables: str) -> Done:
        return subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM, str(packages), *argv],
            cwd=place.cwd,
            env={**environment(place.home), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )

    return run


EXEC = ("exec", "--skip-git-repo-check")


@pytest.mark.parametrize(("answer", "code"), [(SILENT, 3), (DONE, 0)])
def test_a_package_adds_a_reason_to_fail(
    place: Workplace, packages: Path, run: Run, answer: list[Any], code: int
) -> None:
    install(packages, "failures", "class SilenceOptions")
    with ScriptedServer([answer]) as server:
        place.configure(server)
        done = run(*EXEC, "--fail-on", "silence", "--fail-on", "denied", "go")
    assert done.returncode == code, done.stderr


def test_a_reason_that_nobody_has_is_refused(run: Run) -> None:
    done = run(*EXEC, "--fail-on", "silence", "go")
    assert done.returncode == 2
    assert b"'silence' is not a possible value: p0, p1, p2, denied, tool" in done.stderr


def test_a_package_reports_to_a_service_whose_variable_is_set(
    place: Workplace, packages: Path, run: Run
) -> None:
    install(packages, "reports", "def report(")
    with ScriptedServer([DONE, DONE]) as server:
        place.configure(server)
        inside = run(*EXEC, "go", GITLAB_CI="true")
        outside = run(*EXEC, "go")
    line = b"section: codex-py ended with turn.completed"
    assert (inside.returncode, line in inside.stderr) == (0, True), inside.stderr
    assert (outside.returncode, line in outside.stderr) == (0, False)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "returned NoneType, not a function that takes events"),
        ("raise ValueError('boom')", "cannot be used: ValueError('boom')"),
        ("raise SystemExit(0)", "cannot be used: SystemExit(0)"),
    ],
)
def test_a_report_that_cannot_be_made_ends_the_start(
    packages: Path, run: Run, body: str, said: str
) -> None:
    text = f"def report(value, warn):\n    {body}\n"
    points = {"codex_py.reports": {"GITLAB_CI": "codex_py_gitlab:report"}}
    install_package(packages, "codex_py_gitlab", text, points)
    done = run(*EXEC, "go", GITLAB_CI="true")
    errors = done.stderr.decode()
    assert (done.returncode, errors.count("\n")) == (78, 1), errors
    assert "the report 'GITLAB_CI' (codex_py_gitlab:report)" in errors
    assert said in errors


def test_a_bug_in_a_report_ends_it_and_not_the_run(
    place: Workplace, packages: Path, run: Run
) -> None:
    text = "def report(value, warn):\n    return lambda event: event.no_such_field\n"
    points = {"codex_py.reports": {"GITLAB_CI": "codex_py_gitlab:report"}}
    install_package(packages, "codex_py_gitlab", text, points)
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        done = run(*EXEC, "go", GITLAB_CI="true")
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr
    said = b"The report 'GITLAB_CI' (codex_py_gitlab:report) has failed, and ends: "
    assert done.stderr.count(said) == 1


def test_a_variable_without_a_package_changes_nothing(
    place: Workplace, run: Run
) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        done = run(*EXEC, "go", GITLAB_CI="true")
    assert (done.returncode, done.stdout) == (0, b"done\n")


def test_a_package_adds_a_format_of_reviews(
    place: Workplace, packages: Path, run: Run
) -> None:
    install(packages, "review_formats", "def as_count(")
    git(place.cwd, "init", "-q")
    (place.cwd / "text").write_text("new\n", encoding="utf-8")
    answer = [*ev_message(json.dumps(REVIEW)), ev_completed()]
    with ScriptedServer([answer]) as server:
        place.configure(server)
        done = run("review", "--uncommitted", "--format", "count")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"findings: 1\n[P1] The lock stays: text:1\n"
