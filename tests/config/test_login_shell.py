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
    assert output == expected.replace("[s]", "[]").replace(": -c: line", ": eval: line")


BROKEN = [
    "echo a | | wc",
    ")",
    "if true; then echo x; fi fi",
    "echo 'it is not closed",
    'echo "$(ls',
    "for in",
    "echo it's # one quote",
    "case x in",
    "f( { echo; }",
    "echo é \\ $'x\\n' ; ; true",
    "echo one\necho two | | wc",
    "cat <<END\ntext\nEND\n}",
    "\t&& true",
    "true\r\n)",
]


@pytest.mark.parametrize("script", BROKEN)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("setup", ["", 'eval "$CODEX_PY_SETUP_0"'])
def test_an_error_of_the_syntax_shows_the_script_alone(
    shell: str, script: str, setup: str, tmp_path: Path
) -> None:
    argv = [shell, "-lc", script]
    code, output = run(without_variables(argv, {"SECRET", "UNSET"}, setup), tmp_path)
    expected_code, expected = run(argv, tmp_path)
    assert code == expected_code
    assert output == expected.replace(": -c: line", ": eval: line")


def test_a_script_that_is_too_long_in_quotes_runs_all_the_same(tmp_path: Path) -> None:
    script = "\n" * 70_000 + "echo [$SECRET]\n)"
    code, output = run(
        without_variables(["/bin/bash", "-lc", script], ["SECRET"]), tmp_path
    )
    assert code != 0
    assert output.startswith("[]\n")
    assert "unset" not in output


def test_a_function_of_the_profile_is_not_taken_for_a_builtin(tmp_path: Path) -> None:
    argv = without_variables(
        ["/bin/bash", "-lc", "greet"], ["SECRET"], "eval() { echo mine; }"
    )
    assert run(argv, tmp_path) == (0, "hello\n")


def test_a_trace_of_the_profile_does_not_name_the_variables(tmp_path: Path) -> None:
    argv = without_variables(["/bin/bash", "-lc", "greet"], ["SECRET"])
    (tmp_path / ".bashenv").write_text("set -x\n", "ascii")
    _, output = run(["/usr/bin/env", f"BASH_ENV={tmp_path}/.bashenv", *argv], tmp_path)
    assert "+ greet" in output
    assert "unset" not in output


def test_arguments_of_a_script_stay(tmp_path: Path) -> None:
    argv = without_variables(
        ["/bin/sh", "-l", "-c", 'echo "$SECRET$0-$1"', "name", "one"], ["SECRET"]
    )
    assert run(argv, tmp_path) == (0, "name-one\n")


@pytest.mark.parametrize(
    "argv",
    [
        ["/bin/bash", "-c", "x"],
        ["ls", "-lc", "x"],
        ["bash", "-lc"],
        ["bash", "script", "-lc"],
        [],
    ],
)
def test_nothing_but_the_script_of_a_login_shell_is_touched(argv: list[str]) -> None:
    assert without_variables(argv, {"SECRET"}) == argv


def test_without_names_nothing_is_touched() -> None:
    assert without_variables(["bash", "-lc", "x"], {"no name; rm"}) == [
        "bash",
        "-lc",
        "x",
    ]
