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
    policy = SandboxPolicy(
        "workspace-write", (tmp_path, tmp_path / "ws"), exclude_slash_tmp=True
    )
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


_ATTACKS = {
    "_temp/_runner_file_commands/set_env": "a command file",
    "_temp/_github_workflow/event.json": "what the job is told",
    "_temp/step.sh": "the script of a step",
    "_actions/actions/checkout/v4/index.js": "an action that ends later",
    "_tool/Python/bin/python": "a tool of later steps",
}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("temp", ["work/_temp", "link", "deep/other", "again"])
@pytest.mark.parametrize("is_tmpdir", [False, True])
def test_wherever_the_folder_of_a_runner_lies_a_command_changes_nothing_that_later_steps_use(
    backend: Backend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    temp: str,
    *,
    is_tmpdir: bool,
) -> None:
    if backend.name == "landlock":
        pytest.skip("it grants a folder for temporary files as a whole")
    work = tmp_path / "work"
    for name in _ATTACKS:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("", encoding="utf-8")
    (tmp_path / "ws").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(work / "_temp")
    (tmp_path / "deep" / "other").symlink_to("../link")
    (tmp_path / "again").symlink_to("deep/other")
    given = tmp_path / temp
    monkeypatch.setenv("RUNNER_TEMP", str(given))
    monkeypatch.setenv("GITHUB_ENV", str(given / "_runner_file_commands/set_env"))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(given / "_github_workflow/event.json"))
    monkeypatch.setenv("RUNNER_TOOL_CACHE", str(work / "_tool"))
    temporary = given if is_tmpdir else tmp_path
    policy = SandboxPolicy(
        "workspace-write", (tmp_path / "ws", tmp_path), exclude_slash_tmp=True
    )
    script = f"""
    cd {tmp_path}
    for file in {" ".join(_ATTACKS)}; do echo evil >>work/$file; rm -f work/$file; done
    for name in {temp} link deep deep/other again work work/_temp; do
        mv $name $name.away; rm -f $name
    done
    mkdir -p {given}/_runner_file_commands
    echo evil >{given}/_runner_file_commands/set_env
    echo own >ws/own
    """
    variables = {"TMPDIR": str(temporary)}
    run_in(backend, ["bash", "-c", script], policy, tmp_path / "ws", variables)
    assert (tmp_path / "ws/own").read_text(encoding="utf-8") == "own\n"
    assert given.resolve() == work / "_temp"
    for name, what in _ATTACKS.items():
        assert (work / name).read_text(encoding="utf-8") == "", what


@pytest.mark.parametrize(
    ("variables", "roots", "held", "free"),
    [
        ({"AGENT_TEMPDIRECTORY": "/t/a"}, ["/t"], ["/t/a"], []),
        ({"WORKSPACE_TMP": "/t/ws@tmp"}, ["/t", "/t/ws"], ["/t/ws@tmp"], []),
        ({"RUNNER_TOOL_CACHE": "/t/_tool"}, ["/t"], ["/t/_tool"], []),
        ({"GITHUB_ACTION_PATH": "/t/_actions/a"}, ["/t"], ["/t/_actions/a"], []),
        # An action that the repository itself has is a part of the work.
        ({"GITHUB_ACTION_PATH": "/t/ws"}, ["/t/ws"], [], ["/t/ws"]),
        ({"BASH_ENV": "/t/ws/ci/env.sh"}, ["/t/ws"], ["/t/ws/ci/env.sh"], ["/t/ws/ci"]),
        (
            {"GITHUB_ENV": "/t/_temp/x/env"},
            ["/t"],
            ["/t/_temp/x/env", "/t/_temp/x"],
            [],
        ),
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
    found = {
        str(path) for path in runner_files(variables, [Path(root) for root in roots])
    }
    assert found.issuperset(held)
    assert found.isdisjoint(free)
