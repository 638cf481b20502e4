"""`login` and `logout`, compared with Codex 0.171: the same file, words and exit codes.

Tests `commands/login/login_command.py` and `app/stored_login.py`.

Logins with ChatGPT are in `test_chatgpt_login.py`.
"""

import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.codex import CODEX, needs_codex
from tests.support.program import environment, run_codex_py

KEY = "sk-test-of-a-key-as-long-as-real-ones-0123456789"
CHATGPT = {
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {"access_token": "a", "refresh_token": "r"},
}
SAVED = "Reading API key from stdin...\nAPI key saved. Authentication is checked when you send a request.\n"
STATUS = "API key configured - sk-test-***56789\nAuthentication is checked when you send a request.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def call(
    home: Path, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The exit code and standard error; nothing may go to standard output, and no key anywhere."""
    done = run_codex_py(argv, home, home.parent, env, stdin.encode())
    assert done.stdout == b""
    assert KEY.encode() not in done.stderr
    return done.returncode, done.stderr.decode()


def log_in(home: Path, *more: str, stdin: str = KEY) -> tuple[int, str]:
    return call(home, "login", "--with-api-key", *more, stdin=stdin)


def test_a_key_is_stored_shown_masked_and_removed(home: Path) -> None:
    assert call(home, "login", "status") == (1, "Not logged in\n")
    assert log_in(home, stdin=f"  {KEY}\n") == (0, SAVED)
    file = home / "auth.json"
    # Byte for byte as Codex writes it.
    assert (
        file.read_text("utf-8")
        == f'{{\n  "auth_mode": "apikey",\n  "OPENAI_API_KEY": "{KEY}"\n}}'
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in home.iterdir()) == [
        "auth.json",
        "auth.json.lock",
    ]
    assert call(home, "login", "status") == (0, STATUS)
    assert call(home, "logout") == (0, "Successfully logged out\n")
    assert not file.exists()
    assert call(home, "logout") == (0, "Not logged in\n")


def test_a_new_key_replaces_the_old_one_and_a_file_that_others_could_read(
    home: Path,
) -> None:
    (home / "auth.json").write_text("{", encoding="utf-8")
    (home / "auth.json").chmod(0o644)
    assert log_in(home)[0] == 0
    assert log_in(home, stdin="sk-1234567890")[0] == 0
    assert stat.S_IMODE((home / "auth.json").stat().st_mode) == 0o600
    assert call(home, "login", "status")[1].startswith("API key configured - ***\n")


@pytest.mark.parametrize(
    "key", ["", " \n", "sk a", "sk\nsk", "sk\x1b[2J", "schlüssel", "k" * 70_000]
)
def test_text_that_cannot_be_a_key_is_not_stored(home: Path, key: str) -> None:
    code, err = log_in(home, stdin=key)
    assert (code, err.count("\n"), err.count("Error: ")) == (1, 2, 1)
    assert not (home / "auth.json").exists()


def test_a_login_with_chatgpt_is_told_and_not_replaced(home: Path) -> None:
    (home / "auth.json").write_text(json.dumps(CHATGPT), encoding="utf-8")
    code, err = call(home, "login", "status")
    assert (code, err) == (0, "Logged in using ChatGPT\n")
    code, err = log_in(home)
    assert (code, "`codex-py logout` first" in err) == (1, True)
    assert json.loads((home / "auth.json").read_text("utf-8")) == CHATGPT
    away = {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": "http://127.0.0.1:9/oauth/token"}
    code, err = call(home, "logout", env=away)
    assert (code, err.splitlines()[-1]) == (0, "Successfully logged out")
    assert "was not told that it is over" in err
    assert not (home / "auth.json").exists()


def test_a_login_of_a_kind_that_cannot_be_used_is_told(home: Path) -> None:
    login = {"auth_mode": "agentIdentity", "agent_identity": "x"}
    (home / "auth.json").write_text(json.dumps(login), encoding="utf-8")
    code, err = call(home, "login", "status")
    assert (code, err.count("\n")) == (1, 1)
    assert "`codex-py logout`" in err


@pytest.mark.parametrize(
    "command", [["login", "--with-api-key"], ["login", "status"], ["logout"]]
)
def test_another_store_than_the_file_is_an_error_of_the_configuration(
    home: Path, command: list[str]
) -> None:
    (home / "auth.json").write_text(json.dumps(CHATGPT), encoding="utf-8")
    code, err = call(
        home, *command, "-c", 'cli_auth_credentials_store="keyring"', stdin=KEY
    )
    assert (code, "codex-py keeps keys in auth.json alone" in err) == (78, True)
    assert json.loads((home / "auth.json").read_text("utf-8")) == CHATGPT


@pytest.mark.parametrize(
    "argv",
    [
        ["--with-access-token", "--device-auth"],
        ["--with-api-key", "status"],
        ["other"],
    ],
)
def test_two_ways_do_not_go_together(home: Path, argv: list[str]) -> None:
    assert call(home, "login", *argv)[0] == 2


@pytest.mark.parametrize("argv", [[KEY], ["--api-key", KEY], [f"--api-key={KEY}"]])
def test_a_key_on_the_command_line_is_refused_and_not_repeated(
    home: Path, argv: list[str]
) -> None:
    code, err = call(home, "login", *argv)
    assert code == 2
    assert "`codex-py login --with-api-key` reads a key from standard input" in err
    assert KEY not in err


def test_keys_that_are_forbidden_are_refused(home: Path) -> None:
    code, err = log_in(home, "-c", 'forced_login_method="chatgpt"')
    assert (code, err.splitlines()[-1]) == (
        1,
        "Error: API key login is disabled. Use ChatGPT login instead.",
    )


def test_a_key_is_not_typed_into_a_terminal(home: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "codex_py", "login", "--with-api-key"],
        cwd=home.parent,
        env=environment(home),
        stdin=theirs,
        capture_output=True,
        timeout=120,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, b"expects the API key on stdin" in done.stderr) == (
        1,
        True,
    )


@needs_codex
def test_codex_knows_our_login_and_we_know_that_of_codex(home: Path) -> None:
    def codex(*argv: str) -> str:
        done = subprocess.run(
            [str(CODEX), *argv],
            env=environment(home),
            input=KEY.encode(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        return done.stderr.decode()

    assert log_in(home)[0] == 0
    assert STATUS in codex("login", "status")
    assert call(home, "logout")[0] == 0
    assert "API key saved" in codex("login", "--with-api-key")
    assert call(home, "login", "status") == (0, STATUS)
    assert "Successfully logged out" in codex("logout")
    assert call(home, "login", "status") == (1, "Not logged in\n")
