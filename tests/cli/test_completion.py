"""The scripts, in the shells that are installed."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_py.cli.commands import NAMES
from codex_py.cli.completion import run_completion
from codex_py.errors import CodexError

THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a53"
BASH = """
. {script}
COMP_WORDS=({words} '{current}')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_codex_py
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ }}
_files() {{ }}
compadd() {{ shift 3; print -l -- ${{(M)@:#${{words[CURRENT]}}*}} }}
. {script}
words=({words} '{current}')
CURRENT=$#words
_codex_py
"""
FISH = """
source {script}
complete -C '{words} {current}'
"""
SHELLS = {"bash": (BASH, ["-c"]), "zsh": (ZSH, ["-f", "-c"]), "fish": (FISH, ["-c"])}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        with redirected_stdout(folder / shell):
            assert run_completion([shell], {}) == 0
    return folder


@contextmanager
def redirected_stdout(path: Path) -> Generator[None]:
    """Have descriptor 1 lead to a file."""
    kept = os.dup(1)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def complete(shell: str, script: Path, words: str, home: Path) -> set[str]:
    """What the shell offers for the last word."""
    before, _, current = f"codex-py {words}".rpartition(" ")
    program, options = SHELLS[shell]
    done = subprocess.run(
        [shell, *options, program.format(script=script, words=before, current=current)],
        cwd=home,
        env={**os.environ, "HOME": str(home), "CODEX_HOME": str(home / ".codex")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return {line.partition("\t")[0] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", set(NAMES)),
        ("ar", {"archive"}),
        ("exec --col", {"--color"}),
        ("e --color ", {"always", "never", "auto"}),
        ("-m x exec --sandbox read", {"read-only"}),
        ("mcp ", {"add", "list", "get", "remove", "test", "login", "logout"}),
        ("mcp add --bear", {"--bearer-token-env-var"}),
        ("exec re", {"resume"}),
        ("exec resume 0", {THREAD}),
        ("archive ", {THREAD}),
        ("completion ", {"bash", "zsh", "fish"}),
        ("login ", {"status"}),
        ("login --", {"--with-api-key", "--config", "--help"}),
        ("help exec", {"exec", "execpolicy"}),
    ],
)
def test_words_are_completed(
    shell: str, words: str, found: set[str], scripts: Path, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    sessions = tmp_path / ".codex" / "sessions" / "2026"
    sessions.mkdir(parents=True)
    (sessions / f"rollout-2026-11-22T14-00-00-{THREAD}.jsonl").touch()
    assert complete(shell, scripts / shell, words, tmp_path) == found


def test_another_shell_is_an_error() -> None:
    with pytest.raises(CodexError, match="'elvish' is not a possible value: bash, zsh, fish"):
        run_completion(["elvish"], {})
