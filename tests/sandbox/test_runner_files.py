from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.runner_files import runner_files
from tests.sandbox.local_backends import BACKENDS, run_in

_COMMAND = """
for file in env path out scripts/step.sh late.sh; do
    echo "PATH=/evil" >>"$RUNNER/$file" || echo "held $file"
done
mv "$RUNNER" "$RUNNER.away" 2>/dev/null && echo moved
echo own >"$TMPDIR/mine" && echo written
"""


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    folder = tmp_path / "runner"
    (folder / "scripts").mkdir(parents=True)
    for name in ("env", "path", "out", "scripts/step.sh"):
        (folder / name).write_text("", encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "ws").mkdir()
    return folder


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_command_does_not_change_what_the_runner_obeys(
    backend: Backend, runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "GITHUB_ENV": str(runner / "env"),
        "GITHUB_PATH": str(runner / "path"),
        "GITHUB_OUTPUT": str(runner / "out"),
        "RUNNER_TEMP": str(runner / "scripts"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    policy = SandboxPolicy("workspace-write", (tmp_path, tmp_path / "ws"), exclude_slash_tmp=True)
    own = str(tmp_path / "own")
    done = run_in(
        backend,
        ["bash", "-c", _COMMAND],
        policy,
        tmp_path / "ws",
        {"RUNNER": str(runner), "TMPDIR": own},
    )
    assert "written" in done.stdout, done.stdout
    assert "moved" not in done.stdout
    for name in ("env", "path", "out", "scripts/step.sh"):
        assert f"held {name}" in done.stdout
        assert (runner / name).read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    ("variables", "roots", "held", "free"),
    [
        ({"GITHUB_ENV": "/t/_temp/x/env"}, ["/t"], ["/t/_temp/x/env", "/t/_temp/x"], []),
        # The user's own TMPDIR stays writable, but not the files of the runner in it.
        (
            {"RUNNER_TEMP": "/t/_temp"},
            ["/t", "/t/_temp"],
            ["/t/_temp/_runner_file_commands"],
            ["/t/_temp"],
        ),
        ({"RUNNER_TEMP": "/t/_temp"}, ["/t"], ["/t/_temp"], []),
        ({"RUNNER_TEMP": "/t"}, ["/t/ws"], ["/t/_runner_file_commands"], ["/t"]),
        ({"BASH_ENV": "/tmp/.bash_env-1"}, ["/tmp"], ["/tmp/.bash_env-1"], ["/tmp"]),
        ({"CIRRUS_ENV": "/tmp/c/e"}, ["/tmp"], ["/tmp/c/e", "/tmp/c"], []),
        ({"GITHUB_ENV": "relative", "RUNNER_TEMP": ""}, ["/t"], [], ["."]),
    ],
)
def test_files_of_a_runner_are_known_by_its_variables(
    variables: dict[str, str], roots: list[str], held: list[str], free: list[str]
) -> None:
    found = {str(path) for path in runner_files(variables, [Path(root) for root in roots])}
    assert found.issuperset(held)
    assert found.isdisjoint(free)
