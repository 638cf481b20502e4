"""The scripts, in the shells that are installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.cli.completion import run_completion
from codex_py.cli.package_commands import known_commands
from codex_py.errors import CodexError
from codex_py.rollout.index import rename_thread
from tests.rollout.builders import meta, record, session_file, user

BASH = """
. {script}
COMP_WORDS=({words} '{current}')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_codex_py "${{COMP_WORDS[0]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ }}
_files() {{ }}
compadd() {{ shift 3; print -l -- "$@" }}
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


def complete(
    shell: str,
    words: str,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    *,
    cwd: Path | None = None,
    program_word: str = "codex-py",
    path: str = "",
    python: str = sys.executable,
) -> list[str]:
    """What the shell offers for the last word.

    Args:
        path: folders that come first on `PATH`.
        python: the Python that has the program.
    """
    assert run_completion([shell], {}) == 0
    (folder / "script").write_text(capfd.readouterr().out, encoding="utf-8")
    program = folder / "codex-py"
    program.write_text(
        f'#!/bin/sh\nexec "{python}" -m codex_py "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    before, _, current = f"{program_word} {words}".rpartition(" ")
    text, options = SHELLS[shell]
    done = subprocess.run(
        [
            shell,
            *options,
            text.format(script=folder / "script", words=before, current=current),
        ],
        cwd=cwd,
        env={
            **os.environ,
            "CODEX_HOME": str(folder),
            "PATH": f"{path}{folder}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def candidates(words: str, home: Path, capfd: pytest.CaptureFixture[str]) -> list[str]:
    asked = ["--candidates", "--", *words.split(" ")]
    assert run_completion(asked, {"CODEX_HOME": str(home)}) == 0
    return capfd.readouterr().out.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_words_are_completed_in_the_shell(
    shell: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert complete(shell, "exec --col", tmp_path, capfd) == ["--color"]
    assert set(complete(shell, "e --color ", tmp_path, capfd)) == {
        "always",
        "never",
        "auto",
    }
    assert set(complete(shell, "", tmp_path, capfd)) == set(known_commands())


@pytest.mark.parametrize("shell", SHELLS)
def test_no_program_of_the_working_directory_is_started(
    shell: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    repository = tmp_path / "repository"
    (repository / "sub").mkdir(parents=True)
    hostile = repository / "codex-py"
    hostile.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/ran\necho --hostile\n", encoding="utf-8"
    )
    hostile.chmod(0o755)
    for word, cwd in (
        ("codex-py", repository),
        ("./codex-py", repository),
        ("../codex-py", repository / "sub"),
        ("repository/codex-py", tmp_path),
        ("sub/../codex-py", repository),
    ):
        found = complete(
            shell,
            "exec --col",
            tmp_path,
            capfd,
            cwd=cwd,
            program_word=word,
            path=".::..:repository:",
        )
        assert (found, (tmp_path / "ran").exists()) == (["--color"], False), word
    offered = complete(shell, "exec --h", tmp_path, capfd, program_word=str(hostile))
    assert offered == ["--hostile"]
    # Without a program of that name, nothing is started.
    (tmp_path / "ran").unlink()
    script = tmp_path / "script"
    text, options = SHELLS[shell]
    asked = text.format(script=script, words="./codex-py", current="e")
    subprocess.run(
        [shutil.which(shell) or "", *options, asked], cwd=repository, check=False
    )
    assert not (tmp_path / "ran").exists()


def test_bash_quotes_what_it_offers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "elsewhere/codex-py"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\nprintf '%s\\n' '$(touch x)' 'a b' '*' plain\n", encoding="utf-8"
    )
    program.chmod(0o755)
    found = complete(
        "bash", "resume ", tmp_path, capfd, cwd=tmp_path, program_word=str(program)
    )
    assert found == [r"\$\(touch\ x\)", r"a\ b", r"\*", "plain"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", known_commands()),
        ("arc", ["archive"]),
        ("-m x exec --sandbox read", ["read-only"]),
        ("exec --color = al", ["always"]),
        ("mcp ", ["add", "list", "get", "remove", "test", "login", "logout"]),
        ("mcp add --bear", ["--bearer-token-env-var"]),
        ("exec re", ["resume", "review"]),
        ("exec -o ", []),
        ("apply ", []),
        ("completion ", ["bash", "zsh", "fish"]),
        ("login ", ["status"]),
        (
            "login --",
            [
                "--device-auth",
                "--with-api-key",
                "--with-access-token",
                "--config",
                "--help",
            ],
        ),
        ("help exec", ["exec", "execpolicy"]),
        ("nonsense ", known_commands()),
    ],
)
def test_the_words_that_fit_are_found(
    words: str, found: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert candidates(words, tmp_path, capfd) == found


def test_sessions_are_completed_by_name_and_id(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = meta("/repo")
    lines = [
        record("session_meta", made.payload()),
        record("response_item", json.loads(user("x"))),
    ]
    session_file(tmp_path, lines, made.id)
    rename_thread(tmp_path, made.id, "release")
    for place in ("resume", "exec resume", "archive", "exec fork"):
        assert candidates(f"{place} ", tmp_path, capfd) == ["release", made.id]
    assert candidates("unarchive ", tmp_path, capfd) == []
    for hostile in ("--yolo", "$(touch x)", "a;b"):
        rename_thread(tmp_path, made.id, hostile)
        assert candidates("resume ", tmp_path, capfd) == [made.id]


def test_another_shell_is_an_error() -> None:
    with pytest.raises(
        CodexError, match="'elvish' is not a possible value: bash, zsh, fish"
    ):
        run_completion(["elvish"], {})
