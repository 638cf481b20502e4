"""`exec` in a home in which Codex is signed in with ChatGPT.

Also tests `model/chatgpt/sources.py`.
"""

import json

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.chatgpt import ACCOUNT, RESETS_AT, ChatGPT
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


def test_a_home_in_which_codex_is_signed_in_works(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        tokens = chatgpt.sign_in(place.home)["tokens"]
        outcome = place.rerun(env=chatgpt.environment)
        assert (outcome.code, outcome.messages) == (0, ["done"])
        (request,) = chatgpt.requests
    assert request.headers["authorization"] == f"Bearer {tokens['access_token']}"
    assert request.headers["chatgpt-account-id"] == ACCOUNT
    assert request.headers["originator"] == "codex_py"
    assert request.headers["user-agent"].startswith("codex_py/")
    assert chatgpt.renewals == 0


def test_a_login_that_the_configuration_demands_is_used(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home)
        file = place.home / "config.toml"
        text = file.read_text("utf-8")
        file.write_text(f'forced_login_method = "chatgpt"\n{text}', "utf-8")
        outcome = place.rerun(env=chatgpt.environment)
    assert (outcome.code, outcome.messages) == (0, ["done"])


def test_a_token_that_the_server_refuses_is_renewed_once(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        tokens = chatgpt.sign_in(place.home)["tokens"]
        chatgpt.withdraw(tokens["access_token"])
        assert place.rerun(env=chatgpt.environment).code == 0
        assert (chatgpt.renewals, chatgpt.refused) == (1, [401])
    stored = json.loads((place.home / "auth.json").read_text("utf-8"))
    assert stored["tokens"]["access_token"] != tokens["access_token"]


def test_twenty_processes_with_an_expired_token_renew_once(place: Workplace) -> None:
    with ChatGPT([DONE] * 20) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home, expires_in_s=-1)
        chatgpt.renewal_s = 0.2
        started = [
            place.start(f"go {at}", env=chatgpt.environment, real=True)
            for at in range(20)
        ]
        for program in started:
            program.communicate(timeout=120)
        assert [program.returncode for program in started] == [0] * 20
        assert (chatgpt.renewals, chatgpt.refused_renewals) == (1, [])
        assert chatgpt.refused == []


def test_a_login_that_is_over_wants_a_new_one_and_is_kept(place: Workplace) -> None:
    with ChatGPT() as chatgpt:
        chatgpt.configure(place.home)
        stored = chatgpt.sign_in(place.home, expires_in_s=-1)
        token = stored["tokens"]["refresh_token"]
        chatgpt.end_login(token, "refresh_token_expired")
        outcome = place.rerun(env=chatgpt.environment)
    assert outcome.code == 77
    assert "sign in again" in outcome.error["message"]
    assert json.loads((place.home / "auth.json").read_text("utf-8")) == stored


def test_a_used_up_plan_is_told_with_its_end_and_not_retried(place: Workplace) -> None:
    with ChatGPT() as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home)
        chatgpt.used_up = True
        outcome = place.rerun(env=chatgpt.environment)
        assert (outcome.code, chatgpt.refused) == (75, [429])
    assert "Try again at 2033-05-18 03:33." in outcome.error["message"]


def test_a_page_is_told_in_one_sentence(place: Workplace) -> None:
    with ChatGPT() as chatgpt:
        chatgpt.configure(place.home)
        tokens = chatgpt.sign_in(place.home)["tokens"]
        chatgpt.bot_check = True
        outcome = place.rerun(env=chatgpt.environment)
    assert outcome.code == 77
    assert "answered with a web page" in outcome.error["message"]
    assert tokens["access_token"] not in outcome.err


def test_a_key_in_the_environment_wins_where_codex_lets_it_win(
    place: Workplace,
) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        tokens = chatgpt.sign_in(place.home, OPENAI_API_KEY="sk-in-the-file")["tokens"]
        env = {**chatgpt.environment, "OPENAI_API_KEY": "sk-exported"}
        assert place.rerun(env=env).code == 0
        (request,) = chatgpt.requests
    assert request.headers["authorization"] == f"Bearer {tokens['access_token']}"


def test_a_token_in_the_environment_is_used(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        token = chatgpt.personal_token()
        assert place.rerun(env={"CODEX_ACCESS_TOKEN": token}).code == 0
        (request,) = chatgpt.requests
    assert request.headers["authorization"] == f"Bearer {token}"
    assert request.headers["chatgpt-account-id"] == ACCOUNT


@pytest.mark.parametrize("is_exported", [False, True])
def test_no_token_is_in_what_the_program_starts_writes_or_prints(
    place: Workplace, is_exported: bool
) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "env > seen-by-command; env"})
    seen = "{ env; cat; } > seen-by-"
    hook = {"type": "command", "command": f"{seen}hook"}
    hooks = {"hooks": {"PreToolUse": [{"hooks": [hook]}]}}
    with ChatGPT([[*call, ev_completed()], DONE]) as chatgpt:
        env = dict(chatgpt.environment)
        chatgpt.configure(place.home)
        config = place.home / "config.toml"
        server = {"command": "sh", "args": ["-c", f"env > {place.cwd}/seen-by-server"]}
        lines = [f"{key} = {json.dumps(value)}" for key, value in server.items()]
        text = "\n".join([config.read_text("utf-8"), "[mcp_servers.local]", *lines, ""])
        config.write_text(text, "utf-8")
        (place.home / "hooks.json").write_text(json.dumps(hooks), "utf-8")
        # An old token, so that there are two logins to look for.
        secrets = set(chatgpt.sign_in(place.home, expires_in_s=-1)["tokens"].values())
        if is_exported:
            env["CODEX_ACCESS_TOKEN"] = chatgpt.personal_token()
            secrets.add(env["CODEX_ACCESS_TOKEN"])
        outcome = place.rerun(
            "--dangerously-bypass-hook-trust",
            *("--log", str(place.cwd / "log"), "--record", str(place.cwd / "tape")),
            "go",
            env=env,
        )
        assert outcome.code == 0
        assert chatgpt.renewals == int(not is_exported)
    stored = json.loads((place.home / "auth.json").read_text("utf-8"))
    secrets = (secrets | set(stored["tokens"].values())) - {ACCOUNT}
    exported = run_codex_py(
        ["sessions", "export", outcome.events[0]["thread_id"]], place.home, place.cwd
    )
    assert exported.returncode == 0
    written = {
        str(file): file.read_bytes()
        for folder in (place.cwd, place.home)
        for file in folder.rglob("*")
        if file.is_file() and file.name != "auth.json"
    }
    written["events"] = json.dumps(outcome.events).encode()
    written["stderr"] = outcome.err.encode()
    written["export"] = exported.stdout + exported.stderr
    names = {file.rpartition("/")[2] for file in written}
    looked = {"seen-by-command", "seen-by-hook", "seen-by-server", "log", "tape"}
    assert looked <= names
    found = [
        file
        for file, data in written.items()
        if any(secret.encode() in data for secret in secrets)
    ]
    assert found == []


def test_the_cost_of_a_plan_cannot_be_limited(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home)
        outcome = place.rerun("--max-cost", "1", "go", env=chatgpt.environment)
        assert (outcome.code, chatgpt.requests, chatgpt.refused) == (78, [], [])
    assert "are paid by a ChatGPT plan" in outcome.err


def test_the_cost_of_a_session_is_its_plan(place: Workplace) -> None:
    with ChatGPT([DONE]) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home)
        assert place.rerun(env=chatgpt.environment).code == 0
    (file,) = (place.home / "sessions").rglob("*.jsonl")
    lines = [
        json.loads(line)["payload"] for line in file.read_text("utf-8").splitlines()
    ]
    (count,) = [line for line in lines if line.get("type") == "token_count"]
    # The form of the limits is that of Codex.
    assert count["rate_limits"]["primary"] == {
        "used_percent": 12.5,
        "window_minutes": 300,
        "resets_at": RESETS_AT,
    }
    shown = run_codex_py(["cost"], place.home, place.cwd).stdout.decode()
    assert shown.splitlines()[1].split()[-2:] == ["plan", "go"]
    assert "$" not in shown
    bill = json.loads(
        run_codex_py(["cost", "--json"], place.home, place.cwd).stdout.decode()
    )
    (row,) = bill["rows"]
    assert (row["paid_by_plan"], row["cost"], bill["total"]["cost"]) == (
        True,
        None,
        None,
    )

    # A key pays for what comes after.
    with ScriptedServer([DONE]) as server:
        address = f'openai_base_url = "http://127.0.0.1:{server.port}"\n'
        (place.home / "config.toml").write_text(
            f'model = "gpt-5.5"\n{address}', "utf-8"
        )
        env = {"CODEX_API_KEY": "sk-test"}
        assert place.rerun("resume", "--last", "more", env=env).code == 0
    mixed = run_codex_py(["cost"], place.home, place.cwd).stdout.decode()
    total = mixed.splitlines()[3]
    assert total.startswith("total")
    assert " $0." in total
    assert total.endswith(" + plan")
