"""Variables that a profile sets again are not seen by the script of a login shell."""

import shutil
import subprocess
from pathlib import Path

import pytest

from codex_py.config.environment import without_variables

PROFILE = "export SECRET=s OTHER=o; greet() { echo hello; }\n"
SHELLS = [
    shell
    for name in ("bash", "dash", "ksh", "sh", "zsh")
    if (shell := shutil.which(name)) is not None
]


def run(argv: list[str], home: Path) -> tuple[int, str]:
    for name in (".profile", ".bash_profile", ".zprofile"):
        (home / name).write_text(PROFILE, encoding="ascii")
    done = subprocess.run(
        argv,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "script",
    [
        'echo "[$SECRET]" $OTHER; greet; echo $0 $# $?',
        "(exit 7)",
        "kill -TERM $$",
        "# only a comment",
        "",
        "\ncat <<END\ntext $OTHER\nEND\nnosuch-command",
        "set -eu; echo before; false; echo after",
        "trap 'echo bye; exit 3' TERM; kill -TERM $$",
        "echo )",
    ],
)
def test_a_script_runs_as_it_would_but_for_the_variable(
    shell: str, script: str, tmp_path: Path
) -> None:
    argv = [shell, "-lc", script]
    code, output = run(without_variables(argv, {"SECRET", "UNSET"}), tmp_path)
    expected_code, expected = run(argv, tmp_path)
    assert code == expected_code
    assert output.replace("unset SECRET UNSET 2>/dev/null; ", "") == expected.replace("[s]", "[]")


def test_arguments_of_a_script_stay(tmp_path: Path) -> None:
    argv = without_variables(
        ["/bin/sh", "-l", "-c", 'echo "$SECRET$0-$1"', "name", "one"], ["SECRET"]
    )
    assert run(argv, tmp_path) == (0, "name-one\n")


@pytest.mark.parametrize(
    "argv",
    [["/bin/bash", "-c", "x"], ["ls", "-lc", "x"], ["bash", "-lc"], ["bash", "script", "-lc"], []],
)
def test_nothing_but_the_script_of_a_login_shell_is_touched(argv: list[str]) -> None:
    assert without_variables(argv, {"SECRET"}) == argv


def test_without_names_nothing_is_touched() -> None:
    assert without_variables(["bash", "-lc", "x"], {"no name; rm"}) == ["bash", "-lc", "x"]
