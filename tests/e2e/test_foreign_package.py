"""The package of `examples/ledger`, installed by pip from its folder, as `docs/extensions.md` shows it.

It adds to the program by every kind of door that its users see.
"""

import json
import os
import re
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.cli.test_completion import SHELLS, complete
from tests.frontends.tui.terminals import IDLE
from tests.support.git import git
from tests.support.packages import DOC, EXAMPLE, ROOT, run_with
from tests.support.program import Workplace, environment, jsonl
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

EXEC = ("exec", "--json", "--skip-git-repo-check")
DONE: list[Any] = [*ev_message("done"), ev_completed()]

Done: TypeAlias = "subprocess.CompletedProcess[bytes]"
Run: TypeAlias = Callable[..., Done]


def calls(*commands: str) -> list[Any]:
    """A response of the model that runs these commands."""
    events: list[Any] = []
    for index, command in enumerate(commands):
        arguments = {"cmd": command}
        events += ev_function_call(
            f"call_{index}", "exec_command", arguments, index=index
        )
    return [*events, ev_completed()]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment into which pip has installed the package.

    The program and what it needs are those of the tests.
    """
    folder = tmp_path_factory.mktemp("package")
    source = folder / "ledger"
    shutil.copytree(EXAMPLE, source)
    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv").glob("lib/*/site-packages")
    of_tests = [*site.getsitepackages(), str(ROOT)]
    (packages / "tests.pth").write_text("\n".join(of_tests), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    target = ["--target", str(packages), str(source)]
    subprocess.run([*pip, *offline, *target], check=True)
    return folder / "venv/bin/python"


@pytest.fixture
def run(place: Workplace, python: Path) -> Run:
    def run(*argv: str) -> Done:
        return subprocess.run(
            [str(python), "-P", "-m", "codex_py", *argv],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )

    return run


def configure(place: Workplace, server: ScriptedServer, table: str = "") -> None:
    place.configure(server)
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(table)


def test_each_turn_is_in_the_ledger(place: Workplace, run: Run) -> None:
    answers = [calls("true", "exit 3"), DONE, DONE]
    with ScriptedServer(answers) as server:
        configure(place, server, "[ledger]\n")
        first = run(*EXEC, "go")
        assert run(*EXEC, "go").returncode == 0
    assert first.returncode == 0, first.stderr
    assert jsonl(first.stdout)[-1]["ledger"] == {"exec_command": 2}
    lines = run("ledger").stdout.decode().splitlines()
    assert [line.split()[1:] for line in lines] == [
        ["CALLS", "FAILED", "TOOLS"],
        ["2", "1", "exec_command", "2"],
        ["0", "0"],
    ]
    (last,) = json.loads(run("ledger", "--json", "--last", "1").stdout)
    assert (last["calls"], last["failed"]) == ({}, 0)
    assert (place.home / "ledger.jsonl").exists()


def test_an_empty_ledger_is_told(place: Workplace, run: Run) -> None:
    done = run("ledger", "-c", "ledger.file='other'")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"There is no turn in {place.home / 'other'}.\n"


def test_a_damaged_ledger_is_one_sentence(place: Workplace, run: Run) -> None:
    (place.home / "ledger.jsonl").write_text("{}\n", encoding="utf-8")
    done = run("ledger")
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: cannot read the ledger ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("table", "options"),
    [("", ["--max-calls", "1"]), ("[ledger]\nmax_calls = 1\n", [])],
)
def test_a_call_above_the_limit_is_refused(
    place: Workplace, run: Run, table: str, options: list[str]
) -> None:
    with ScriptedServer([calls("true", "true"), DONE]) as server:
        configure(place, server, table)
        done = run(*EXEC, *options, "go")
    assert done.returncode == 0, done.stderr
    outputs = [server.requests[1].output(f"call_{index}") for index in (0, 1)]
    refused = ["the limit of 1 calls is used up" in output for output in outputs]
    assert refused == [False, True]
    assert jsonl(done.stdout)[-1]["ledger"] == {"exec_command": 1}


@pytest.mark.parametrize(("commands", "code"), [([], 3), (["true"], 0)])
def test_a_turn_without_calls_may_fail_the_run(
    place: Workplace, run: Run, commands: list[str], code: int
) -> None:
    with ScriptedServer([*([calls(*commands)] if commands else []), DONE]) as server:
        configure(place, server)
        done = run(*EXEC, "--fail-on", "idle", "go")
    assert done.returncode == code, done.stderr
    is_told = b"The turn called no tool, so the run fails." in done.stdout
    assert is_told == (code != 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*EXEC, "--max-calls", "0", "go"], "--max-calls takes a number from 1"),
        ([*EXEC, "--max-calls", "x", "go"], "--max-calls: 'x' is no whole number"),
        ([*EXEC, "--max-cals", "1", "go"], "Did you mean --max-calls?"),
        (["review", "--max-calls", "1"], "--max-calls is for `codex-py exec`"),
        ([*EXEC, "--fail-on", "idel", "go"], "'idel' is not a possible value"),
        (["ledger", "--lats", "1"], "unknown option --lats. Did you mean --last?"),
        (["ledger", "--last", "-1"], "--last: '-1' is no whole number"),
        (["ledger", "x"], "unexpected argument 'x'"),
        (["ledgre"], "Did you mean ledger?"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    place: Workplace, run: Run, words: list[str], message: str
) -> None:
    with ScriptedServer([]) as server:
        configure(place, server)
        done = run(*words)
    text = done.stderr.decode()
    assert (done.returncode, done.stdout, text.count("\n")) == (2, b"", 1)
    assert message in text


@pytest.mark.parametrize(
    ("words", "table", "message"),
    [
        (
            [*EXEC, "go"],
            "max_calls = 0",
            "`ledger.max_calls` must be an integer of more than 0",
        ),
        ([*EXEC, "go"], "file = 1", "`ledger.file` must be a string, not `1`"),
        (["ledger"], "file = 1", "`ledger.file` must be a string, not `1`"),
        (
            [*EXEC, "--strict-config", "go"],
            "max_cals = 1",
            "`ledger.max_cals` is unknown; did you mean `ledger.max_calls`?",
        ),
    ],
)
def test_a_mistake_in_the_table_is_one_sentence(
    place: Workplace, run: Run, words: Sequence[str], table: str, message: str
) -> None:
    with ScriptedServer([]) as server:
        configure(place, server, f"[ledger]\n{table}\n")
        done = run(*words)
    text = done.stderr.decode()
    assert (done.returncode, text.count("\n")) == (78, 1), text
    line = (place.home / "config.toml").read_text(encoding="utf-8").count("\n")
    assert f"config.toml:{line}: " in text
    assert message in text


def test_doctor_lists_what_the_configuration_uses(place: Workplace, run: Run) -> None:
    wire = (
        '[model_providers.plain]\nbase_url = "http://127.0.0.1:9"\nwire_api = "plain"\n'
    )
    with ScriptedServer([]) as server:
        configure(place, server, f"[ledger]\n{wire}")
        done = run("doctor", "--json")
    check = json.loads(done.stdout)["checks"]["extensions.load"]
    assert check["details"] == {
        "[ledger]": "loaded",
        "model_providers.plain.wire_api": "loaded",
    }


def test_an_unknown_key_is_told(place: Workplace, run: Run) -> None:
    with ScriptedServer([DONE]) as server:
        configure(place, server, "[ledger]\nmax_cals = 1\n")
        done = run(*EXEC, "go")
    assert done.returncode == 0
    assert b"`ledger.max_cals`" in done.stdout
    assert b"did you mean `ledger.max_calls`?" in done.stdout


def test_the_help_is_a_file_of_the_package(run: Run) -> None:
    text = (EXAMPLE / "codex_py_ledger/ledger.txt").read_bytes()
    assert run("ledger", "--help").stdout == text
    assert run("help", "ledger").stdout == text
    listed = run("help").stdout.decode()
    assert listed.endswith(
        "\nCommands of installed packages:\n  ledger  codex-py-ledger\n"
    )
    of_exec = run("help", "exec").stdout.decode()
    assert of_exec.endswith(
        "\nOptions of installed packages:\n  --max-calls  codex-py-ledger\n"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shells_complete_it(
    shell: str,
    python: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for words, expected in (
        ("led", ["ledger"]),
        ("ledger --", ["--last", "--json", "--config", "--help"]),
        ("exec --max-ca", ["--max-calls"]),
        ("exec --fail-on id", ["idle"]),
    ):
        found = complete(shell, words, tmp_path, capfd, python=str(python))
        assert sorted(found) == sorted(expected)


def test_nothing_is_imported_that_nobody_asks_for(
    place: Workplace, python: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    for folder in python.parents[1].glob("lib/*/site-packages/codex_py_ledger*"):
        shutil.copytree(folder, broken / folder.name)
    init = broken / "codex_py_ledger/__init__.py"
    init.write_text("raise SystemError('it was imported')\n", encoding="utf-8")
    with ScriptedServer([DONE]) as server:
        configure(place, server)
        project = place.cwd / ".codex"
        project.mkdir()
        (project / "config.toml").write_text("[ledger]\n", encoding="utf-8")
        for words in (
            [*EXEC, "go"],
            ["help"],
            ["help", "exec"],
            ["completion", "--candidates", "--", "exec", "--max"],
            ["doctor"],
        ):
            done = run_with(broken, place, *words)
            assert b"it was imported" not in done.stdout + done.stderr, words
            assert done.returncode == 0, done.stderr
        done = run_with(broken, place, "ledger")
    assert done.returncode == 78
    assert b"the command 'ledger' (codex_py_ledger.command:command)" in done.stderr


def test_a_project_does_not_turn_it_on(place: Workplace, run: Run) -> None:
    git(place.cwd, "init", "-q")
    project = place.cwd / ".codex"
    project.mkdir()
    (project / "config.toml").write_text("[ledger]\n", encoding="utf-8")
    with ScriptedServer([DONE]) as server:
        trust = f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
        configure(place, server, trust)
        done = run(*EXEC, "go")
    assert done.returncode == 0, done.stderr
    assert "ledger" not in jsonl(done.stdout)[-1]
    assert "`ledger`" in (done.stdout + done.stderr).decode()
    assert not (place.home / "ledger.jsonl").exists()


def test_the_terminal_has_its_slash_command(place: Workplace, python: Path) -> None:
    with ScriptedServer([calls("true"), DONE]) as server:
        trust = f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
        configure(place, server, f"[ledger]\n{trust}")
        variables = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        with PtyProgram(
            [str(python), "-P", "-m", "codex_py"],
            place.cwd,
            environment(place.home, variables),
            columns=120,
            rows=50,
        ) as program:
            program.wait_for(IDLE)
            program.type("Go.\r")
            program.wait_for("done")
            program.wait_until(lambda: program.title == "work")
            program.type("/led")
            program.wait_for("show how much this session has called")
            program.type("ger ")
            program.press("enter")
            program.wait_for("This session: 1 calls, 1 turns")


@contextmanager
def plain_server() -> Generator[str]:
    """Run the model server of the example. Gives its port."""
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE / "plain_server.py"), "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().decode().strip().rpartition(":")[2]
        finally:
            server.kill()


def shown(language: str) -> list[str]:
    """The code blocks of the first chapter in a language."""
    chapter, _, _ = DOC.read_text(encoding="utf-8").partition(
        "\n## All extension points\n"
    )
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, chapter, re.MULTILINE | re.DOTALL)


def same_but_for_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "TIME", text)


def test_the_session_of_the_page_prints_what_it_shows(
    place: Workplace, python: Path, tmp_path: Path
) -> None:
    (config,) = (each for each in shown("toml") if "[ledger]" in each)
    (session,) = shown("shell-session")
    git(place.cwd, "init", "-q")
    program = tmp_path / "bin/codex-py"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {python} -m codex_py "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    variables: Mapping[str, str] = {
        **environment(place.home),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    with plain_server() as port:
        text = config.replace(":8000", f":{port}")
        (place.home / "config.toml").write_text(text, encoding="utf-8")
        for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=place.cwd,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
            printed = same_but_for_times(done.stdout.decode())
            assert printed == same_but_for_times(output), command


def test_the_tests_of_the_package_pass(python: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()
