"""`login` with ChatGPT, `login status` and `logout`, against a stand-in of the issuer.

Tests `app/chatgpt_login.py`, `app/login_status.py`, `app/logout.py`, `commands/login/chatgpt.py` and
`model/chatgpt/sign_in.py`.

What is said of Codex is checked where `CODEX_BINARY` names its program.
"""

import json
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.chatgpt import ACCOUNT, CLIENT_ID, ChatGPT, login_ports
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment, run_codex_py

ON_PAGE = "Account ada@example.com, plan plus, workspace acc-123.\n"
STATUS = f"Logged in using ChatGPT\n{ON_PAGE}"
DONE = [*ev_message("done"), ev_completed()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def ports() -> Iterator[None]:
    """The fixed ports of the login, for one test of this machine at a time."""
    with login_ports():
        yield


@pytest.fixture
def chatgpt() -> Iterator[ChatGPT]:
    with ChatGPT([DONE] * 4) as server:
        yield server


class Login:
    """A running `login`, and what it has said."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self.program = program
        self.said = ""

    def find(self, pattern: str) -> str:
        """Read until a text is found. Returns its first group."""
        assert self.program.stderr is not None
        for line in self.program.stderr:
            self.said += line
            found = re.search(pattern, line)
            if found:
                return found[1]
        raise AssertionError(self.said)

    @property
    def address(self) -> str:
        return self.find(r"^(http\S+/oauth/authorize\?\S+)$")

    def end(self) -> tuple[int, str]:
        """The exit code, and what it has said in all."""
        out, err = self.program.communicate(timeout=60)
        assert out == ""
        return self.program.returncode, self.said + err


@contextmanager
def started(
    home: Path, chatgpt: ChatGPT, *argv: str, env: Mapping[str, str] | None = None
) -> Generator[Login]:
    command = ["-m", "codex_py", "login", "--experimental_issuer", chatgpt.url, *argv]
    with subprocess.Popen(
        [sys.executable, *command],
        env=environment(home, env),
        cwd=home.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as program:
        try:
            yield Login(program)
        finally:
            program.kill()


def call(
    home: Path, chatgpt: ChatGPT, *argv: str, stdin: str = "", **env: str
) -> tuple[int, str]:
    """The exit code and standard error."""
    environment = {**chatgpt.environment, "CODEX_AUTHAPI_BASE_URL": chatgpt.url, **env}
    done = run_codex_py(argv, home, home.parent, environment, stdin.encode())
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


def stored(home: Path) -> dict[str, Any]:
    return json.loads((home / "auth.json").read_text("utf-8"))


def secrets_in(fields: Mapping[str, Any], text: str) -> Sequence[str]:
    return [name for name, value in fields["tokens"].items() if value in text]


def test_a_browser_signs_in(home: Path, chatgpt: ChatGPT, ports: None) -> None:
    (home / "auth.json").write_text('{"of_another": [1]}', encoding="utf-8")
    with started(home, chatgpt) as login:
        address = login.address
        back = httpx.get(address).headers["location"]
        page = httpx.get(back)
        code, said = login.end()
    assert (code, said.splitlines()[-1]) == (0, "Successfully logged in")
    assert (page.status_code, "complete" in page.text) == (200, True)
    fields = stored(home)
    assert list(fields) == [
        "auth_mode",
        "OPENAI_API_KEY",
        "tokens",
        "last_refresh",
        "of_another",
    ]
    tokens = fields["tokens"]
    assert list(tokens) == ["id_token", "access_token", "refresh_token", "account_id"]
    assert (fields["auth_mode"], tokens["account_id"]) == ("chatgpt", ACCOUNT)
    assert stat.S_IMODE((home / "auth.json").stat().st_mode) == 0o600
    assert secrets_in({"tokens": {**tokens, "account_id": "sent"}}, said) == []
    (asked,) = chatgpt.authorizations
    assert asked["originator"] == "codex_py"
    assert asked["redirect_uri"] == "http://127.0.0.1:1455/auth/callback"
    assert "allowed_workspace_id" not in asked
    assert call(home, chatgpt, "login", "status") == (0, STATUS)


def test_each_login_has_a_state_and_a_verifier_of_its_own(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    found: list[dict[str, list[str]]] = []
    for _ in range(2):
        with started(home, chatgpt) as login:
            found.append(parse_qs(urlsplit(login.address).query))
    first, second = found
    assert first["state"] != second["state"]
    assert first["code_challenge"] != second["code_challenge"]


def test_an_address_may_be_pasted(home: Path, chatgpt: ChatGPT, ports: None) -> None:
    with started(home, chatgpt) as login:
        back = httpx.get(login.address).headers["location"]
        assert login.program.stdin is not None
        login.program.stdin.write(f"http://127.0.0.1/?code=x&state=y\n{back}\n")
        login.program.stdin.flush()
        code, said = login.end()
    assert (code, "answer to another login" in said) == (0, True)


def test_what_is_no_answer_ends_no_login(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    with started(home, chatgpt) as login:
        back = httpx.get(login.address).headers["location"]
        local = "http://127.0.0.1:1455"
        wrong = back[:-1] + "é"
        assert httpx.get(f"{local}/").status_code == 404
        assert httpx.get(f"{local}/success").status_code == 404
        assert httpx.get(f"{local}/auth/callback?code=c").status_code == 400
        assert httpx.get(wrong).status_code == 400
        assert httpx.post(back).status_code == 404
        evil = {"host": "evil.test:1455"}
        assert httpx.get(back, headers=evil).status_code == 403
        assert httpx.get(back.replace("127.0.0.1", "localhost")).status_code == 200
        assert login.end()[0] == 0


def test_a_refusal_is_told_and_what_was_there_stays(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    before = chatgpt.sign_in(home)
    with started(home, chatgpt) as login:
        state = parse_qs(urlsplit(login.address).query)["state"][0]
        answer = f"error=access_denied&error_description=No%1b[2J&state={state}"
        page = httpx.get(f"http://127.0.0.1:1455/auth/callback?{answer}")
        code, said = login.end()
    assert page.status_code == 502
    assert (code, said.splitlines()[-1]) == (1, "Error: Sign-in failed: No[2J")
    assert stored(home) == before
    assert chatgpt.revoked == []


def test_a_code_that_the_issuer_does_not_know_is_told(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    with started(home, chatgpt) as login:
        state = parse_qs(urlsplit(login.address).query)["state"][0]
        page = httpx.get(f"http://127.0.0.1:1455/auth/callback?code=x&state={state}")
        code, said = login.end()
    assert (page.status_code, code) == (502, 1)
    assert said.endswith(
        "Error: Sign-in failed: the issuer gave no tokens (HTTP status 400) invalid_grant\n"
    )
    assert not (home / "auth.json").exists()


def test_ctrl_c_is_one_sentence(home: Path, chatgpt: ChatGPT, ports: None) -> None:
    before = chatgpt.sign_in(home)
    with started(home, chatgpt) as login:
        assert login.address
        rest = login.find("(--device-auth)")
        assert rest
        login.program.send_signal(signal.SIGINT)
        code, said = login.end()
    assert (code, said.splitlines()[-1][:31]) == (
        130,
        "Signing in was interrupted. Not",
    )
    assert "Traceback" not in said
    assert stored(home) == before


def test_a_second_login_uses_the_second_port_and_a_third_none(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    with socket.create_server(("127.0.0.1", 1455)), started(home, chatgpt) as login:
        address = login.address
        assert "127.0.0.1%3A1457" in address
        with started(home, chatgpt) as third:
            code, said = third.end()
        assert (code, "`codex-py login --device-auth`" in said) == (1, True)
        httpx.get(httpx.get(address).headers["location"])
        assert login.end()[0] == 0


def test_the_login_before_is_ended_at_the_issuer_after_the_new_one(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    before = chatgpt.sign_in(home)["tokens"]["refresh_token"]
    with started(home, chatgpt) as login:
        httpx.get(httpx.get(login.address).headers["location"])
        assert login.end()[0] == 0
    (revoked,) = chatgpt.revoked
    assert revoked["token"] == before != stored(home)["tokens"]["refresh_token"]


def test_a_workspace_may_be_demanded(home: Path, chatgpt: ChatGPT, ports: None) -> None:
    other = 'forced_chatgpt_workspace_id=["other","more"]'
    with started(home, chatgpt, "-c", other) as login:
        page = httpx.get(httpx.get(login.address).headers["location"])
        code, said = login.end()
    error = "Error: Login is restricted to workspace id(s) other, more.\n"
    assert (code, page.status_code, said.endswith(error)) == (1, 502, True)
    assert chatgpt.authorizations[0]["allowed_workspace_id"] == "other,more"
    assert not (home / "auth.json").exists()
    chatgpt.sign_in(home)
    code, said = call(home, chatgpt, "login", "status", "-c", other)
    assert (code, said.splitlines()[0]) == (1, "Not logged in")
    same = f'forced_chatgpt_workspace_id="{ACCOUNT}"'
    assert call(home, chatgpt, "login", "status", "-c", same) == (0, STATUS)


def test_a_session_wants_the_workspace_that_is_demanded(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home, forced_chatgpt_workspace_id="other")
        before = chatgpt.sign_in(place.home)
        outcome = place.rerun(env=chatgpt.environment)
        assert (outcome.code, chatgpt.requests) == (77, [])
        assert "restricted to workspace id(s) other" in outcome.error["message"]
        # Codex removes the login.
        assert stored(place.home) == before
        chatgpt.configure(place.home, forced_chatgpt_workspace_id=ACCOUNT)
        assert place.rerun(env=chatgpt.environment).code == 0


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        ([], "ChatGPT"),
        (["--device-auth"], "ChatGPT"),
        (["--with-access-token"], "Access token"),
    ],
)
def test_logins_with_chatgpt_may_be_forbidden(
    home: Path, chatgpt: ChatGPT, argv: list[str], what: str
) -> None:
    setting = ["-c", 'forced_login_method="api"']
    code, said = call(home, chatgpt, "login", *argv, *setting, stdin="at-1")
    error = f"Error: {what} login is disabled. Use API key login instead."
    assert (code, said.splitlines()[-1]) == (1, error)
    chatgpt.sign_in(home)
    code, said = call(home, chatgpt, "login", "status", *setting)
    assert (code, said.splitlines()[0]) == (1, "Not logged in")


def test_a_code_signs_in(home: Path, chatgpt: ChatGPT) -> None:
    before = chatgpt.sign_in(home)["tokens"]["refresh_token"]
    with started(home, chatgpt, "--device-auth") as login:
        address = login.find(r"^   (http\S+)$")
        user_code = login.find(r"^   (\S+)$")
        assert address == f"{chatgpt.url}/codex/device"
        chatgpt.type_code(user_code)
        code, said = login.end()
    assert (code, said.splitlines()[-1]) == (0, "Successfully logged in")
    assert stored(home)["tokens"]["account_id"] == ACCOUNT
    assert [fields["token"] for fields in chatgpt.revoked] == [before]
    assert call(home, chatgpt, "login", "status") == (0, STATUS)


def test_a_login_with_a_code_may_be_interrupted(home: Path, chatgpt: ChatGPT) -> None:
    with started(home, chatgpt, "--device-auth") as login:
        login.find(r"^   (CODE\S+)$")
        login.find(r"(Continue only)")
        login.program.send_signal(signal.SIGINT)
        code, said = login.end()
    assert (code, said.splitlines()[-1][:26]) == (130, "Signing in was interrupted")


def test_an_issuer_without_codes_is_told(home: Path, chatgpt: ChatGPT) -> None:
    chatgpt.device_is_known = False
    with started(home, chatgpt, "--device-auth") as login:
        code, said = login.end()
    assert (code, said.count("\n"), "no login with a code" in said) == (1, 1, True)


def test_an_issuer_that_cannot_be_reached_is_told(home: Path, chatgpt: ChatGPT) -> None:
    away = ["--experimental_issuer", "http://127.0.0.1:9"]
    with started(home, chatgpt, "--device-auth", *away) as login:
        code, said = login.end()
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("Error: Sign-in failed: ChatGPT could not be asked: http")


def test_a_personal_access_token_is_stored_used_and_told(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        token = chatgpt.handed_out_token()
        chatgpt.configure(place.home)
        code, said = call(
            place.home, chatgpt, "login", "--with-access-token", stdin=f"{token}\n"
        )
        assert (code, said) == (
            0,
            "Reading access token from stdin...\nSuccessfully logged in\n",
        )
        # Byte for byte as Codex writes it.
        assert (place.home / "auth.json").read_text("utf-8") == (
            f'{{\n  "OPENAI_API_KEY": null,\n  "personal_access_token": "{token}"\n}}'
        )
        assert call(place.home, chatgpt, "login", "status") == (
            0,
            "Logged in using personal access token\n",
        )
        env = {"CODEX_AUTHAPI_BASE_URL": chatgpt.url}
        assert place.rerun(env=env).code == 0
        (request,) = chatgpt.requests
        assert request.headers["authorization"] == f"Bearer {token}"
        assert request.headers["chatgpt-account-id"] == ACCOUNT
        assert call(place.home, chatgpt, "logout")[0] == 0
        assert chatgpt.revoked == []


@pytest.mark.parametrize("token", ["", "at-unknown", "sk-key", "at-\x1b[2J", "at-ü"])
def test_a_token_that_is_none_is_not_stored(
    home: Path, chatgpt: ChatGPT, token: str
) -> None:
    before = chatgpt.sign_in(home)
    code, said = call(home, chatgpt, "login", "--with-access-token", stdin=token)
    assert (code, said.count("Error: "), said.count("\n")) == (1, 1, 2)
    assert not token.strip() or token not in said
    assert stored(home) == before


def test_a_token_in_the_environment_is_told(home: Path, chatgpt: ChatGPT) -> None:
    token = chatgpt.personal_token()
    code, said = call(home, chatgpt, "login", "status", CODEX_ACCESS_TOKEN=token)
    assert code == 0
    assert said == (
        "Logged in using ChatGPT\nPlan plus, workspace acc-123.\n"
        "The token is that of the environment variable CODEX_ACCESS_TOKEN.\n"
    )
    chatgpt.sign_in(home)
    code, said = call(home, chatgpt, "login", "status", CODEX_API_KEY="sk-1")
    told = "The environment variable CODEX_API_KEY is set, and counts more.\n"
    assert (code, said) == (0, STATUS + told)


def test_no_issuer_gets_the_tokens_of_another_one(
    home: Path, chatgpt: ChatGPT, ports: None
) -> None:
    chatgpt.sign_in(home, issuer="https://other.test/")
    with started(home, chatgpt) as login:
        httpx.get(httpx.get(login.address).headers["location"])
        assert login.end()[0] == 0
    chatgpt.sign_in(home, issuer="https://other.test/")
    code, said = call(home, chatgpt, "logout")
    assert (code, said.splitlines()[-1]) == (0, "Successfully logged out")
    assert "it is a login with 'https://other.test/', which was not asked" in said
    assert not (home / "auth.json").exists()
    assert chatgpt.revoked == []


def test_logout_ends_the_login_at_the_issuer(home: Path, chatgpt: ChatGPT) -> None:
    token = chatgpt.sign_in(home)["tokens"]["refresh_token"]
    assert call(home, chatgpt, "logout") == (0, "Successfully logged out\n")
    assert chatgpt.revoked == [
        {
            "token": token,
            "token_type_hint": "refresh_token",
            "client_id": CLIENT_ID,
        }
    ]
    assert not (home / "auth.json").exists()


def test_a_home_that_cannot_be_written_is_told_before_the_user_signs_in(
    home: Path, chatgpt: ChatGPT
) -> None:
    (home / "auth.json.lock").mkdir()
    code, said = call(home, chatgpt, "login", "--device-auth")
    assert (code, "cannot be written" in said) == (78, True)


@needs_codex
def test_codex_uses_and_ends_our_login_and_we_those_of_codex(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    home = place.home
    chatgpt.configure(home)

    def codex(*argv: str) -> str:
        done = subprocess.run(
            [str(CODEX), *argv],
            env=environment(home, chatgpt.environment),
            capture_output=True,
            timeout=120,
            check=False,
        )
        return done.stderr.decode()

    with started(home, chatgpt, "--device-auth") as login:
        chatgpt.type_code(login.find(r"^   (CODE\S+)$"))
        assert login.end()[0] == 0
    assert "Logged in using ChatGPT" in codex("login", "status")
    # Codex ends ours before it begins its own.
    ours = stored(home)["tokens"]["refresh_token"]
    with subprocess.Popen(
        [str(CODEX), "login", "--device-auth", "--experimental_issuer", chatgpt.url],
        env=environment(home, chatgpt.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as program:
        assert program.stdout is not None
        for line in program.stdout:
            found = re.search(r"CODE-\d+", line)
            if found:
                chatgpt.type_code(found[0])
    assert program.returncode == 0
    assert [fields["token"] for fields in chatgpt.revoked] == [ours]
    of_codex = stored(home)
    assert call(home, chatgpt, "login", "status") == (0, STATUS)
    # A renewal keeps what Codex alone knows.
    chatgpt.withdraw(of_codex["tokens"]["access_token"])
    assert place.rerun(env=chatgpt.environment).code == 0
    renewed = stored(home)
    assert chatgpt.renewals == 1
    assert list(renewed["tokens"]) == list(of_codex["tokens"])
    assert "Successfully logged out" in codex("logout")
    assert chatgpt.revoked[1]["token"] == renewed["tokens"]["refresh_token"]
    assert call(home, chatgpt, "login", "status") == (1, "Not logged in\n")
