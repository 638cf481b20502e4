"""`providers list` and `doctor` tell the login with ChatGPT.

Tests `app/login_status.py` too.
"""

import json
from collections.abc import Generator
from typing import Any

import pytest

from tests.support.chatgpt import ChatGPT
from tests.support.program import Workplace, run_codex_py


@pytest.fixture
def chatgpt(place: Workplace) -> Generator[ChatGPT]:
    with ChatGPT() as server:
        server.configure(place.home)
        server.sign_in(place.home)
        yield server
        # Nothing is asked.
        assert (server.requests, server.refused, server.renewals) == ([], [], 0)


def printed(place: Workplace, *args: str, **env: str) -> str:
    done = run_codex_py(args, place.home, place.cwd, env)
    return done.stdout.decode()


def openai(place: Workplace, **env: str) -> dict[str, Any]:
    rows = json.loads(printed(place, "providers", "list", "--json", **env))
    (found,) = [row for row in rows if row["id"] == "openai"]
    return found


def credentials(place: Workplace, **env: str) -> dict[str, Any]:
    report = json.loads(printed(place, "doctor", "--json", **env))
    return report["checks"]["auth.credentials"]


def without_renewal(place: Workplace) -> None:
    file = place.home / "auth.json"
    fields = json.loads(file.read_text("utf-8"))
    del fields["tokens"]["refresh_token"]
    file.write_text(json.dumps(fields), "utf-8")


def test_a_plan_is_listed_with_its_address(place: Workplace, chatgpt: ChatGPT) -> None:
    row = openai(place)
    assert row["login"] == {
        "kind": "chatgpt",
        "plan": "plus",
        "expired": False,
        "renewed": True,
    }
    assert row["base_url"] == f"{chatgpt.url}/backend-api/codex"
    table = printed(place, "providers", "list")
    (line,) = [each for each in table.splitlines() if each.startswith("openai ")]
    assert "ChatGPT plus set" in line


@pytest.mark.usefixtures("chatgpt")
def test_a_key_is_no_login(place: Workplace) -> None:
    row = openai(place, CODEX_API_KEY="sk-test")
    assert "login" not in row
    assert row["key"] == "CODEX_API_KEY"
    assert credentials(place, CODEX_API_KEY="sk-secret-1234567890")["summary"].endswith(
        "from environment variable CODEX_API_KEY"
    )


@pytest.mark.usefixtures("chatgpt")
def test_doctor_tells_the_plan_and_no_part_of_its_token(place: Workplace) -> None:
    check = credentials(place)
    assert check["status"] == "ok"
    source = f"the ChatGPT login in {place.home}/auth.json"
    assert check["summary"] == f"ChatGPT plan plus, from {source}"
    details = check["details"]
    assert (details["login"], details["plan"]) == ("ChatGPT", "plus")
    assert details["token valid until"].startswith("20")
    tokens = json.loads((place.home / "auth.json").read_text("utf-8"))["tokens"]
    assert tokens["access_token"][:8] not in json.dumps(check)


def test_a_token_that_will_be_renewed_is_no_problem(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.sign_in(place.home, expires_in_s=-1)
    check = credentials(place)
    assert check["status"] == "ok"
    assert check["summary"].endswith("has expired, and the next request renews it")
    assert openai(place)["login"]["expired"] is True


def test_a_token_that_is_over_is_told(place: Workplace, chatgpt: ChatGPT) -> None:
    chatgpt.sign_in(place.home, expires_in_s=-1)
    without_renewal(place)
    check = credentials(place)
    assert check["status"] == "fail"
    assert "codex-py login" in check["remediation"]
    assert "ChatGPT plus expired" in printed(place, "providers", "list")


def test_a_token_of_a_variable_is_told(place: Workplace, chatgpt: ChatGPT) -> None:
    token = chatgpt.handed_out_token()
    check = credentials(place, CODEX_ACCESS_TOKEN=token)
    assert check["status"] == "ok"
    source = "environment variable CODEX_ACCESS_TOKEN"
    assert check["summary"] == f"ChatGPT plan, from {source}"
    assert openai(place, CODEX_ACCESS_TOKEN=token)["login"]["plan"] is None
