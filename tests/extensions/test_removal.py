"""The program without one of its rooms: each folder of `codex_py/extensions` may be taken away.

Also tests `registry.py`.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import codex_py
from codex_py.registry import COMMANDS, SLASH_COMMANDS
from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, starting
from tests.support.packages import run_with
from tests.support.program import Workplace, jsonl
from tests.support.server import ScriptedServer

PACKAGE = Path(codex_py.__file__).parent
ROOMS = sorted(
    path.parent.name for path in PACKAGE.glob("extensions/*/entry_points.txt")
)

Done: TypeAlias = "subprocess.CompletedProcess[bytes]"
Run: TypeAlias = Callable[..., Done]


@pytest.fixture(params=ROOMS)
def room(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def copy(tmp_path: Path, room: str) -> Path:
    """The folder with a copy of the program that has no such room."""
    copy = tmp_path / "copy"
    left_out = PACKAGE / "extensions" / room
    shutil.copytree(
        PACKAGE,
        copy / "codex_py",
        copy_function=os.link,
        ignore=lambda folder, _: [room] if Path(folder) == left_out.parent else [],
    )
    (copy / "instructions").symlink_to(PACKAGE.parent / "instructions")
    return copy


@pytest.fixture
def run(place: Workplace, copy: Path) -> Run:
    """Run the copy."""

    def run(*argv: str) -> Done:
        return run_with(copy, place, *argv)

    return run


def points(room: str) -> list[tuple[str, str]]:
    """The groups and names of a room's entry points."""
    found: list[tuple[str, str]] = []
    group = ""
    text = (PACKAGE / "extensions" / room / "entry_points.txt").read_text("utf-8")
    for line in text.splitlines():
        name, is_point, _ = line.partition(" = ")
        if line.startswith("["):
            group = line.strip("[]")
        elif is_point:
            found.append((group, name))
    return found


def test_the_program_starts_runs_and_resumes(
    place: Workplace, run: Run, room: str
) -> None:
    assert run("--version").returncode == 0
    listed = run("help")
    assert (listed.returncode, listed.stderr) == (0, b"")
    answers = [[*ev_message(text), ev_completed()] for text in ("one", "two")]
    with ScriptedServer(answers) as server:
        place.configure(server)
        options = ("--json", "--skip-git-repo-check")
        first = run("exec", *options, "go")
        assert first.returncode == 0, first.stderr
        thread_id = jsonl(first.stdout)[0]["thread_id"]
        second = run("exec", *options, "resume", thread_id, "go on")
        assert second.returncode == 0, second.stderr
    assert "two" in str(jsonl(second.stdout))


def test_its_names_are_unknown(
    place: Workplace, copy: Path, run: Run, room: str
) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        for group, name in points(room):
            if group in UNTOLD:
                continue
            if group == SLASH_COMMANDS:
                _is_no_slash_command(name, copy, place, server)
                continue
            code, text = _absence(group, name)
            done = run(*_words(group, name))
            told = done.stderr.decode()
            assert text in told, (group, name)
            assert done.returncode == code, told
            assert "Traceback" not in told


ABSENT = {
    "codex_py.commands": (2, "there is no command {name!r}"),
    "codex_py.failures": (2, "--fail-on: {name!r} is not a possible value"),
    "codex_py.options": (2, "unknown option --{name}"),
    "codex_py.review_formats": (2, "--format: {name!r} is not a possible value"),
    "codex_py.reviewers": (78, "no extension has a reviewer {name!r}"),
    "codex_py.tables": (78, "`{name}` is unknown"),
}
"""The exit code and the sentence for a name that the program does not have, by its group."""
UNTOLD = {"codex_py.option_values", "codex_py.reports"}
"""Groups whose names nobody types as such: without the room, the value or the variable means what it
means to the program itself."""


def _absence(group: str, name: str) -> tuple[int, str]:
    """The exit code and the sentence for a name that the program does not have."""
    if group == COMMANDS and "." in name:
        words = name.replace(".", " ")
        return 2, f"unknown command `{words}`."
    code, text = ABSENT[group]
    return code, text.format(name=name)


def _is_no_slash_command(
    name: str, copy: Path, place: Workplace, server: ScriptedServer
) -> None:
    with starting(place, folder=copy) as start:
        program = start(server)
        program.wait_for(IDLE)
        program.type(f"/{name} x\r")
        program.wait_for(f"no command /{name}.")


def _words(group: str, name: str) -> list[str]:
    """A command line that asks for a name."""
    match group:
        case "codex_py.commands":
            return [*name.split("."), "x"]
        case "codex_py.options":
            return ["exec", f"--{name}=x", "go"]
        case "codex_py.failures":
            return ["exec", f"--fail-on={name}", "go"]
        case "codex_py.review_formats":
            return ["review", "--uncommitted", f"--format={name}"]
        case "codex_py.reviewers":
            setting = f'approvals_reviewer="{name}"'
        case _:
            setting = f"{name}={{}}"
    return ["exec", "--strict-config", "--skip-git-repo-check", "-c", setting, "go"]
