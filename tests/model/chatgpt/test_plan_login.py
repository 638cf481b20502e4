"""Also tests `model/chatgpt/login_file.py` and `model/chatgpt/issuer.py`."""

import asyncio
import errno
import json
import os
import resource
import stat
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from codex_py.errors import ConfigError, ExitCode, ModelError, StreamError
from codex_py.filesystem.private import locked
from codex_py.model.chatgpt import issuer
from codex_py.model.chatgpt.issuer import LoginOver
from codex_py.model.chatgpt.plan_login import PlanLogin
from tests.support.chatgpt import ACCOUNT, ChatGPT


@pytest.fixture
def chatgpt() -> Generator[ChatGPT]:
    with ChatGPT() as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "auth.json"


def plan_login(chatgpt: ChatGPT, path: Path, **options: Any) -> PlanLogin:
    return PlanLogin(path, chatgpt.environment, **options)


def key(login: PlanLogin) -> str:
    return asyncio.run(login.key()).value


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


@contextmanager
def full_disk() -> Generator[None]:
    """No file of this process can be written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_token_that_is_good_is_used_as_it_is(chatgpt: ChatGPT, path: Path) -> None:
    stored = chatgpt.sign_in(path.parent)
    found = asyncio.run(plan_login(chatgpt, path).key())
    assert found.value == stored["tokens"]["access_token"]
    assert (found.account_id, found.is_token) == (ACCOUNT, True)
    assert (chatgpt.renewals, read(path)) == (0, stored)


def test_an_old_token_is_renewed_and_written(chatgpt: ChatGPT, path: Path) -> None:
    before = chatgpt.sign_in(path.parent, expires_in_s=10, of_others={"kept": [1]})
    path.chmod(0o644)
    login = plan_login(chatgpt, path)
    token = key(login)
    assert key(login) == token
    after = read(path)
    assert after["tokens"]["access_token"] == token
    assert after["tokens"]["account_id"] == ACCOUNT
    assert after["tokens"]["refresh_token"] != before["tokens"]["refresh_token"]
    assert after["of_others"] == {"kept": [1]}
    assert after["last_refresh"] > before["last_refresh"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert chatgpt.renewals == 1
    names = {entry.name for entry in path.parent.iterdir()}
    assert names == {"auth.json", "auth.json.lock"}


@pytest.mark.parametrize("name", ["id_token", "refresh_token"])
def test_what_an_answer_leaves_out_stays(
    chatgpt: ChatGPT, path: Path, name: str
) -> None:
    chatgpt.left_out = {name}
    before = chatgpt.sign_in(path.parent, expires_in_s=-1)
    key(plan_login(chatgpt, path))
    assert read(path)["tokens"][name] == before["tokens"][name]


def test_a_link_stays_a_link(chatgpt: ChatGPT, path: Path, tmp_path: Path) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    elsewhere = tmp_path / "dotfiles"
    elsewhere.mkdir()
    path.rename(elsewhere / "auth.json")
    path.symlink_to(elsewhere / "auth.json")
    token = key(plan_login(chatgpt, path))
    assert path.is_symlink()
    assert read(elsewhere / "auth.json")["tokens"]["access_token"] == token


def test_tokens_of_a_process_that_was_killed_before_the_rename_are_used(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    before = path.read_bytes()
    token = key(plan_login(chatgpt, path))
    path.rename(path.with_name(".auth.json.part-1"))
    path.write_bytes(before)
    os.utime(path, ns=(1, 1))
    assert key(plan_login(chatgpt, path)) == token
    assert (chatgpt.renewals, chatgpt.refused_renewals) == (1, [])


def test_many_requests_renew_once(chatgpt: ChatGPT, path: Path) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.renewal_s = 0.2
    logins = [plan_login(chatgpt, path) for _ in range(3)]

    async def ask() -> set[str]:
        asked = [login.key() for login in logins for _ in range(4)]
        return {found.value for found in await asyncio.gather(*asked)}

    assert len(asyncio.run(ask())) == 1
    assert (chatgpt.renewals, chatgpt.refused_renewals) == (1, [])


def test_a_refused_token_is_renewed(chatgpt: ChatGPT, path: Path) -> None:
    chatgpt.sign_in(path.parent)
    login = plan_login(chatgpt, path)

    async def ask() -> tuple[str, str]:
        first = await login.key()
        second = await login.after_refusal(first)
        # Another request was refused with the first one too.
        assert await login.after_refusal(first) == second
        return first.value, second.value

    first, second = asyncio.run(ask())
    assert first != second
    assert read(path)["tokens"]["access_token"] == second
    assert chatgpt.renewals == 1


def test_after_a_refusal_the_token_of_another_program_is_used(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent)
    login = plan_login(chatgpt, path)

    async def ask() -> str:
        first = await login.key()
        chatgpt.sign_in(path.parent)
        return (await login.after_refusal(first)).value

    assert asyncio.run(ask()) == read(path)["tokens"]["access_token"]
    assert chatgpt.renewals == 0


@pytest.mark.parametrize(
    "reason",
    ["refresh_token_expired", "refresh_token_invalidated", "refresh_token_reused"],
)
def test_a_login_that_is_over_is_told_and_kept(
    chatgpt: ChatGPT, path: Path, reason: str
) -> None:
    stored = chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.end_login(stored["tokens"]["refresh_token"], reason)
    login = plan_login(chatgpt, path)
    for _ in range(2):
        with pytest.raises(LoginOver, match="sign in again") as raised:
            key(login)
        assert raised.value.exit_code is ExitCode.AUTHENTICATION
        assert reason in str(raised.value)
    assert read(path) == stored
    # It is not asked again for the same token.
    assert chatgpt.refused_renewals == [reason]


def test_a_program_without_the_lock_may_have_renewed_the_login(
    chatgpt: ChatGPT, path: Path
) -> None:
    stored = chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.end_login(stored["tokens"]["refresh_token"], "refresh_token_reused")

    def write_late() -> None:
        chatgpt.sign_in(path.parent)

    other = threading.Timer(0.5, write_late)
    other.start()
    token = key(plan_login(chatgpt, path))
    other.join()
    assert read(path)["tokens"]["access_token"] == token


def test_an_issuer_that_is_down_is_asked_again_later(
    chatgpt: ChatGPT, path: Path
) -> None:
    stored = chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.renewal_status = 503
    login = plan_login(chatgpt, path)
    with pytest.raises(StreamError, match="HTTP status 503") as raised:
        key(login)
    assert (raised.value.retryable, read(path)) == (True, stored)
    chatgpt.renewal_status = 200
    assert key(login) == read(path)["tokens"]["access_token"]


def test_a_token_is_used_to_its_end_while_the_issuer_is_down(
    chatgpt: ChatGPT, path: Path
) -> None:
    stored = chatgpt.sign_in(path.parent, expires_in_s=30)
    chatgpt.renewal_status = 500
    assert key(plan_login(chatgpt, path)) == stored["tokens"]["access_token"]


def test_an_issuer_that_cannot_be_reached_is_named(path: Path) -> None:
    with ChatGPT() as chatgpt:
        chatgpt.sign_in(path.parent, expires_in_s=-1)
        environment = chatgpt.environment
    with pytest.raises(StreamError, match=r"127\.0\.0\.1.*/oauth/token"):
        key(PlanLogin(path, environment))


@pytest.mark.parametrize(
    "change", [{"auth_mode": "apikey", "OPENAI_API_KEY": "k"}, {"tokens": None}]
)
def test_whoever_signed_out_is_told(
    chatgpt: ChatGPT, path: Path, change: dict[str, Any]
) -> None:
    chatgpt.sign_in(path.parent, **change)
    with pytest.raises(ModelError, match="holds no login with ChatGPT any more"):
        key(plan_login(chatgpt, path))


def test_without_room_for_new_tokens_none_are_asked_for(
    chatgpt: ChatGPT, path: Path
) -> None:
    stored = chatgpt.sign_in(path.parent, expires_in_s=-1)
    login = plan_login(chatgpt, path)
    with full_disk(), pytest.raises(ConfigError, match="File too large"):
        key(login)
    assert (chatgpt.renewals, read(path)) == (0, stored)
    names = {entry.name for entry in path.parent.iterdir()}
    assert names == {"auth.json", "auth.json.lock"}


def test_new_tokens_that_cannot_be_written_are_kept_and_written_later(
    chatgpt: ChatGPT, path: Path
) -> None:
    stored = chatgpt.sign_in(path.parent, expires_in_s=-1)
    warnings: list[str] = []
    login = plan_login(chatgpt, path, warn=warnings.append)
    with ExitStack() as stack:
        chatgpt.on_renewal = lambda: stack.enter_context(full_disk())
        token = key(login)
        assert key(login) == token
    assert read(path) == stored
    assert len(warnings) == 1
    assert "File too large" in warnings[0]
    assert token not in warnings[0]
    assert key(login) == token
    assert read(path)["tokens"]["access_token"] == token
    assert (chatgpt.renewals, chatgpt.refused_renewals) == (1, [])


def test_without_a_file_that_can_be_written_no_tokens_are_asked_for(
    chatgpt: ChatGPT, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a file that is mounted read-only by itself, in a folder that can be written."""
    stored = chatgpt.sign_in(path.parent, expires_in_s=-1)
    open_file = Path.open

    def refuse(file: Path, mode: str = "r", *options: Any, **named: Any) -> Any:
        if file == path and "+" in mode:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return open_file(file, mode, *options, **named)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError, match="Read-only file system"):
        key(plan_login(chatgpt, path))
    assert (chatgpt.renewals, read(path)) == (0, stored)


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM])
def test_a_file_that_cannot_be_replaced_is_written(
    chatgpt: ChatGPT, path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As with a file that is mounted by itself, or is in a folder with the sticky bit."""
    chatgpt.sign_in(path.parent, expires_in_s=-1)

    def refuse(_: Path, target: Path) -> Path:
        raise OSError(number, os.strerror(number), str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    token = key(plan_login(chatgpt, path))
    assert read(path)["tokens"]["access_token"] == token


def test_a_file_that_its_owner_must_not_write_is_replaced(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    path.chmod(0o400)
    token = key(plan_login(chatgpt, path))
    assert read(path)["tokens"]["access_token"] == token


def test_an_answer_that_came_while_the_process_was_stopped_counts(
    chatgpt: ChatGPT, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process stands still while the answer comes, and beyond the time for it."""
    monkeypatch.setattr(issuer, "_TIMEOUT_S", 0.4)
    before = chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.renewal_s = 0.2
    client = issuer.http_client

    def stopped(**options: Any) -> httpx.AsyncClient:
        asyncio.get_running_loop().call_later(0.1, time.sleep, 1.0)
        return client(**options)

    monkeypatch.setattr(issuer, "http_client", stopped)
    key(plan_login(chatgpt, path))
    assert chatgpt.renewals == 1
    assert read(path)["tokens"]["refresh_token"] != before["tokens"]["refresh_token"]


def test_an_issuer_that_does_not_answer_in_time_is_told(
    chatgpt: ChatGPT, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "_TIMEOUT_S", 0.1)
    monkeypatch.setattr(issuer, "_LATE_S", 0.1)
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.renewal_s = 2.0
    with pytest.raises(StreamError, match=r"no answer in 0\.1 s"):
        key(plan_login(chatgpt, path))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"error": "invalid_grant"}, "invalid_grant"),
        ({"error": {"code": "refresh_token_reused"}}, "refresh_token_reused"),
        ({"code": "slow_down"}, "slow_down"),
        ({"error": "rt-1-of-a-login"}, ""),
        ({"error": {"code": "no\x1b[2J\n"}}, ""),
        ({"error": {"code": 5}}, ""),
    ],
)
def test_only_a_code_of_an_issuer_is_told(answer: dict[str, Any], code: str) -> None:
    assert issuer.code_in(answer) == code


def test_a_new_login_is_not_replaced_by_a_renewal_of_the_old_one(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)

    def sign_in_elsewhere() -> None:
        chatgpt.sign_in(path.parent)

    chatgpt.on_renewal = sign_in_elsewhere
    token = key(plan_login(chatgpt, path))
    assert read(path)["tokens"]["access_token"] == token


def test_a_lock_that_nobody_lets_go_of_is_told(
    chatgpt: ChatGPT, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    monkeypatch.setattr("codex_py.model.chatgpt.login_file.LOCK_TIMEOUT_S", 0.1)
    with (
        locked(path.parent / "auth.json.lock", 1, is_file=True),
        pytest.raises(StreamError, match="by another process") as raised,
    ):
        key(plan_login(chatgpt, path))
    assert raised.value.exit_code is ExitCode.TEMPORARY


def test_a_wait_for_another_process_can_be_cancelled(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(plan_login(chatgpt, path).key(), 0.3)

    begun = time.monotonic()
    with locked(path.parent / "auth.json.lock", 1, is_file=True):
        # The end of the loop waits for its threads.
        asyncio.run(main())
    assert time.monotonic() - begun < 20
    assert chatgpt.renewals == 0


def test_a_renewal_that_was_begun_is_finished_and_kept(
    chatgpt: ChatGPT, path: Path
) -> None:
    before = chatgpt.sign_in(path.parent, expires_in_s=-1)
    chatgpt.renewal_s = 1.0

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(plan_login(chatgpt, path).key(), 0.3)

    asyncio.run(main())
    assert chatgpt.renewals == 1
    tokens = read(path)["tokens"]
    assert tokens["refresh_token"] != before["tokens"]["refresh_token"]
    assert key(plan_login(chatgpt, path)) == tokens["access_token"]


def test_what_a_killed_process_has_left_is_removed(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent, expires_in_s=-1)
    left = path.with_name(".auth.json.part-0123456789abcdef")
    new = path.with_name(".auth.json.part-fedcba9876543210")
    for part in (left, new):
        part.write_text("{", encoding="utf-8")
    os.utime(left, (1, 1))
    key(plan_login(chatgpt, path))
    assert (left.exists(), new.exists()) == (False, True)


def test_another_login_in_the_file_is_used_from_the_next_request_on(
    chatgpt: ChatGPT, path: Path
) -> None:
    chatgpt.sign_in(path.parent)
    login = plan_login(chatgpt, path)
    first = key(login)
    chatgpt.sign_in(path.parent)
    second = key(login)
    assert first != second == read(path)["tokens"]["access_token"]
    path.unlink()
    with pytest.raises(ModelError, match="holds no login"):
        key(login)
