"""The account methods for logins with ChatGPT. Shapes and words are those of `codex app-server` 0.171.

Tests `app/plan_account.py`, `frontends/app_server/account/account_methods.py`,
`frontends/app_server/account/chatgpt_logins.py`, `frontends/app_server/account/plan_facts.py` and
`model/chatgpt/usage.py`.
"""

import asyncio
import json
import subprocess
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import httpx
import jsonschema
import pytest

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.errors import CodexError, ModelError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.account.account_methods import AccountMethods
from codex_py.frontends.app_server.account.plan_facts import (
    limits_in_use,
    plan_type,
    rate_limits,
)
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.protocol.stream import PlanLimit, PlanUse
from codex_py.testing import ev_completed, ev_created, ev_message
from tests.support.app_server import AppServer
from tests.support.chatgpt import ACCOUNT, EMAIL, RESETS_AT, USAGE, ChatGPT, login_ports
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment

ON_PLAN = {
    "account": {"type": "chatgpt", "email": EMAIL, "planType": "plus"},
    "requiresOpenaiAuth": True,
    "userId": "user-1",
}
NOBODY = {"account": None, "requiresOpenaiAuth": True}
NOT_COMPLETED = "Login was not completed"
UPDATED = ("account/updated", {"authMode": "chatgpt", "planType": "plus"})
BROWSER = params.Login(type="chatgpt")
CODE = params.Login(type="chatgptDeviceCode")
UNUSED = {
    "normalModelSlug": None,
    "individualLimit": None,
    "planType": "plus",
}
LIMITS = {
    **UNUSED,
    "limitId": "codex",
    "limitName": None,
    "primary": {
        "usedPercent": 12,
        "windowDurationMins": 300,
        "resetsAt": RESETS_AT,
    },
    "secondary": {
        "usedPercent": 3,
        "windowDurationMins": 10_080,
        "resetsAt": RESETS_AT,
    },
    "credits": {"hasCredits": True, "unlimited": False, "balance": "9.5"},
    "spendControlReached": False,
    "rateLimitReachedType": "rate_limit_reached",
}
OTHER_LIMITS = {
    **UNUSED,
    "limitId": "codex_other",
    "limitName": "other",
    "primary": {
        "usedPercent": 100,
        "windowDurationMins": 301,
        "resetsAt": RESETS_AT,
    },
    "secondary": None,
    "credits": None,
    "spendControlReached": None,
    "rateLimitReachedType": None,
}
ALL_LIMITS = {
    "rateLimits": LIMITS,
    "rateLimitsByLimitId": {"codex": LIMITS, "codex_other": OTHER_LIMITS},
    "ordinaryUsageAllowed": True,
    "rateLimitResetCredits": None,
    "accountId": ACCOUNT,
    "rateLimitUpsell": None,
}
"""What Codex 0.171 makes of the stand-in's usage."""


@pytest.fixture
def chatgpt() -> Generator[ChatGPT]:
    with ChatGPT() as server:
        yield server


class Client:
    """A client of the methods in this process.

    Attributes:
        told: the notifications, in order.
    """

    def __init__(self, place: Workplace, chatgpt: ChatGPT, **env: str) -> None:
        variables = environment(place.home, {**chatgpt.login_environment, **env})
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self._came = asyncio.Event()
        server = Server(cast("JsonRpc", self), Arguments(cd=str(place.cwd)), variables)
        self.account = AccountMethods(server, OpenThreads(server))

    def notify(self, method: str, fields: Mapping[str, Any]) -> None:
        """Take a notification in place of the connection."""
        self.told.append((method, fields))
        self._came.set()

    async def until(self, count: int) -> None:
        """Wait until there are so many notifications."""
        async with asyncio.timeout(30):
            while len(self.told) < count:
                self._came.clear()
                await self._came.wait()

    async def read(self, *, refresh_token: bool = False) -> Mapping[str, Any]:
        return await self.account.read(params.AccountRead(refresh_token=refresh_token))

    async def limits(self, *, with_details: bool = True) -> Mapping[str, Any]:
        asked = params.RateLimitsRead(exclude_reset_credit_details=not with_details)
        return await self.account.limits(asked)

    async def cancel(self, login_id: str) -> Mapping[str, Any]:
        return await self.account.cancel(params.LoginCancel(login_id=login_id))


async def visit(address: str) -> httpx.Response:
    """Consent in a browser. Returns the last page."""
    async with httpx.AsyncClient() as http:
        consented = await http.get(address)
        return await http.get(consented.headers["location"])


def completed(
    started: Mapping[str, Any], error: str | None
) -> tuple[str, Mapping[str, Any]]:
    fields = {
        "loginId": started["loginId"],
        "success": error is None,
        "error": error,
    }
    return ("account/login/completed", fields)


def test_a_browser_of_the_client_signs_in(place: Workplace, chatgpt: ChatGPT) -> None:
    chatgpt.configure(place.home)

    async def run() -> None:
        client = Client(place, chatgpt)
        assert await client.read() == NOBODY
        started = await client.account.login(BROWSER)
        assert list(started) == ["type", "loginId", "authUrl"]
        assert started["type"] == "chatgpt"
        assert UUID(started["loginId"]).version == 4
        assert started["authUrl"].startswith(f"{chatgpt.url}/oauth/authorize?")
        page = await visit(started["authUrl"])
        assert "complete" in page.text
        await client.until(2)
        assert client.told == [completed(started, None), UPDATED]
        assert await client.read() == ON_PLAN
        assert await client.cancel(started["loginId"]) == {"status": "notFound"}
        await client.account.aclose()
        assert len(client.told) == 2

    with login_ports():
        asyncio.run(run())
    (asked,) = chatgpt.authorizations
    assert asked["originator"] == "codex_py"


def test_a_code_signs_in(place: Workplace, chatgpt: ChatGPT) -> None:
    async def run() -> None:
        client = Client(place, chatgpt)
        started = await client.account.login(CODE)
        assert started == {
            "type": "chatgptDeviceCode",
            "loginId": started["loginId"],
            "verificationUrl": f"{chatgpt.url}/codex/device",
            "userCode": "CODE-1",
        }
        chatgpt.type_code("CODE-1")
        await client.until(2)
        assert client.told == [completed(started, None), UPDATED]
        assert await client.read() == ON_PLAN

    asyncio.run(run())


def test_a_login_that_is_cancelled_leaves_nothing_and_its_port(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    async def run() -> None:
        client = Client(place, chatgpt)
        started = await client.account.login(BROWSER)
        assert await client.cancel(str(uuid4())) == {"status": "notFound"}
        with pytest.raises(RpcError, match=r"^invalid login id: x$"):
            await client.cancel("x")
        assert client.told == []
        assert await client.cancel(started["loginId"]) == {"status": "canceled"}
        # The answer comes first.
        assert client.told == []
        await client.until(1)
        assert client.told == [completed(started, NOT_COMPLETED)]
        assert await client.cancel(started["loginId"]) == {"status": "notFound"}
        again = await client.account.login(BROWSER)
        assert "%3A1455%2F" in again["authUrl"]
        await client.account.aclose()
        assert client.told[1:] == [completed(again, NOT_COMPLETED)]

    with login_ports():
        asyncio.run(run())
    assert not (place.home / "auth.json").exists()


@pytest.mark.parametrize("kind", ["browser", "code", "key", "logout"])
def test_what_changes_the_account_ends_the_running_login(
    place: Workplace, chatgpt: ChatGPT, kind: str
) -> None:
    async def run() -> None:
        client = Client(place, chatgpt)
        first = await client.account.login(BROWSER)
        if kind == "browser":
            second = await client.account.login(BROWSER)
            assert second["authUrl"] != first["authUrl"]
        elif kind == "code":
            await client.account.login(CODE)
        elif kind == "key":
            key = params.Login(type="apiKey", api_key="sk-test-0123456789")
            assert await client.account.login(key) == {"type": "apiKey"}
        else:
            assert await client.account.logout(params.Nothing()) == {}
        assert client.told[0] == completed(first, NOT_COMPLETED)
        await client.account.aclose()

    with login_ports():
        asyncio.run(run())


def test_two_logins_that_start_at_once_leave_one(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    async def run() -> None:
        client = Client(place, chatgpt)
        starts = [client.account.login(CODE) for _ in range(2)]
        first, second = await asyncio.gather(*starts, return_exceptions=True)
        assert isinstance(first, RpcError)
        assert str(first) == NOT_COMPLETED
        assert isinstance(second, dict)
        assert client.told == []
        chatgpt.type_code(second["userCode"])
        await client.until(2)
        assert client.told == [completed(second, None), UPDATED]

    asyncio.run(run())


def test_a_login_that_cannot_begin_is_refused(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    async def run() -> None:
        client = Client(place, chatgpt)
        chatgpt.device_is_known = False
        with pytest.raises(CodexError, match="no login with a code"):
            await client.account.login(CODE)
        chatgpt.configure(place.home, forced_login_method="api")
        for kind in (BROWSER, CODE):
            with pytest.raises(CodexError, match=r"^ChatGPT login is disabled"):
                await client.account.login(kind)
        assert client.told == []

    asyncio.run(run())


def test_the_client_is_told_why_a_login_failed(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.configure(place.home, forced_chatgpt_workspace_id="acc-other")

    async def run() -> None:
        client = Client(place, chatgpt)
        started = await client.account.login(CODE)
        chatgpt.type_code(started["userCode"])
        await client.until(1)
        problem = "Login is restricted to workspace id(s) acc-other."
        assert client.told == [completed(started, problem)]
        assert await client.read() == NOBODY

    asyncio.run(run())


def test_a_login_is_renewed_when_the_client_asks(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.configure(place.home)
    before = chatgpt.sign_in(place.home)["tokens"]

    async def run() -> None:
        client = Client(place, chatgpt)
        assert await client.read() == ON_PLAN
        assert chatgpt.renewals == 0
        assert await client.read(refresh_token=True) == ON_PLAN
        assert chatgpt.renewals == 1
        stored = json.loads((place.home / "auth.json").read_text("utf-8"))["tokens"]
        assert stored["access_token"] != before["access_token"]
        # If it fails for now, the login stays as it is.
        chatgpt.renewal_status = 503
        assert await client.read(refresh_token=True) == ON_PLAN
        chatgpt.renewal_status = 200
        chatgpt.end_login(stored["refresh_token"], "refresh_token_expired")
        with pytest.raises(ModelError, match="is over"):
            await client.read(refresh_token=True)

    asyncio.run(run())


def test_the_account_is_the_one_that_requests_use(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.configure(place.home)
    chatgpt.sign_in(place.home)

    async def run() -> None:
        key = {**NOBODY, "account": {"type": "apiKey"}}
        assert await Client(place, chatgpt, CODEX_API_KEY="sk-x").read() == key
        assert await Client(place, chatgpt, OPENAI_API_KEY="sk-x").read() == ON_PLAN
        token = chatgpt.handed_out_token()
        personal = await Client(place, chatgpt, CODEX_ACCESS_TOKEN=token).read()
        assert personal["account"] == {
            "type": "chatgpt",
            "email": None,
            "planType": "unknown",
        }

    asyncio.run(run())


def test_a_logout_ends_the_login_at_the_issuer(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    tokens = chatgpt.sign_in(place.home)["tokens"]

    async def run() -> None:
        client = Client(place, chatgpt)
        assert await client.account.logout(params.Nothing()) == {}
        updated = {"authMode": None, "planType": None}
        await client.until(1)
        assert client.told == [("account/updated", updated)]
        assert await client.read() == NOBODY

    asyncio.run(run())
    assert [sent["token"] for sent in chatgpt.revoked] == [tokens["refresh_token"]]


def test_the_limits_of_the_plan_are_read_with_a_good_token(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.configure(place.home)
    tokens = chatgpt.sign_in(place.home)["tokens"]

    async def run() -> None:
        client = Client(place, chatgpt)
        assert await client.limits() == ALL_LIMITS
        chatgpt.withdraw(tokens["access_token"])
        assert await client.limits() == ALL_LIMITS
        assert chatgpt.renewals == 1
        chatgpt.bot_check = True
        with pytest.raises(ModelError, match=r"did not tell .*\(HTTP status 403\)"):
            await client.limits()

    asyncio.run(run())


CREDIT = {
    "id": "c1",
    "reset_type": "codex_rate_limits",
    "status": "available",
    "granted_at": "2026-01-02T03:04:05Z",
    "expires_at": "2026-02-02T03:04:05Z",
    "title": "T",
    "description": "D",
}
SHOWN_CREDIT = {
    "id": "c1",
    "resetType": "codexRateLimits",
    "status": "available",
    "grantedAt": 1_767_323_045,
    "expiresAt": 1_770_001_445,
    "title": "T",
    "description": "D",
}


def test_the_credits_that_reset_limits_are_read_too(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.configure(place.home)
    chatgpt.sign_in(place.home)
    chatgpt.usage = {**USAGE, "rate_limit_reset_credits": {"available_count": 2}}
    without = {"availableCount": 2, "credits": None}
    with_details = {"availableCount": 1, "credits": [SHOWN_CREDIT]}

    async def run() -> None:
        client = Client(place, chatgpt)
        limits = await client.limits()
        assert limits == {**ALL_LIMITS, "rateLimitResetCredits": without}
        chatgpt.reset_credits = {"credits": [CREDIT], "available_count": 1}
        limits = await client.limits()
        assert limits == {**ALL_LIMITS, "rateLimitResetCredits": with_details}
        limits = await client.limits(with_details=False)
        assert limits["rateLimitResetCredits"] == without

    asyncio.run(run())


@pytest.mark.parametrize(
    ("credits", "shown"),
    [
        ({}, None),
        ({"credits": []}, None),
        ({"credits": [], "available_count": 0}, []),
        ({"credits": [1], "available_count": 1}, None),
        ({"credits": [{"id": "x", "granted_at": "now"}], "available_count": 1}, None),
        (
            {
                "credits": [CREDIT, {**CREDIT, "granted_at": "2026-01-02T03:04:05"}],
                "available_count": 2,
            },
            None,
        ),
        (
            {
                "credits": [
                    {**CREDIT, "reset_type": "x", "status": "y", "expires_at": None},
                ],
                "available_count": 2,
            },
            [
                {
                    **SHOWN_CREDIT,
                    "resetType": "unknown",
                    "status": "unknown",
                    "expiresAt": None,
                }
            ],
        ),
    ],
)
def test_what_is_not_understood_of_credits_is_left_out(
    credits: dict[str, Any], shown: Sequence[Any] | None
) -> None:
    found = rate_limits({}, credits)["rateLimitResetCredits"]
    if shown is None:
        assert found is None
    else:
        assert found == {
            "availableCount": credits["available_count"],
            "credits": shown,
        }


def test_the_limits_that_a_turn_is_told_reach_the_client(place: Workplace) -> None:
    said = [ev_created(), *ev_message("hi"), ev_completed()]
    with ChatGPT([said]) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home)
        env = chatgpt.login_environment
        with AppServer(place.home, place.cwd, env=env) as server:
            thread = server.thread()
            server.turn(thread)
            told = server.told("account/rateLimits/updated")
            server.ended(thread)
    # The stand-in has used up 12.5 %.
    assert told == {
        "rateLimits": {
            **LIMITS,
            "primary": {
                "usedPercent": 13,
                "windowDurationMins": 300,
                "resetsAt": RESETS_AT,
            },
            "credits": None,
            "spendControlReached": None,
            "rateLimitReachedType": None,
        }
    }


def test_a_turn_after_a_logout_is_unauthorized(place: Workplace) -> None:
    answer = [ev_created(), *ev_message("Hello."), ev_completed()]
    with ChatGPT([answer]) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home)
        with AppServer(place.home, place.cwd, env=chatgpt.environment) as server:
            thread = server.thread()
            server.turn(thread)
            assert server.ended(thread)["status"] == "completed"
            server.ask("account/logout")
            server.turn(thread)
            error = server.ended(thread)["error"]
    assert error["codexErrorInfo"] == "unauthorized"
    assert "sign in again" in error["message"]


def test_a_session_that_is_told_no_limits_tells_none() -> None:
    assert limits_in_use(PlanUse("plus")) is None
    limits = limits_in_use(PlanUse(None, None, PlanLimit(1e300)))
    assert limits is not None
    assert (limits["planType"], limits["primary"]) == (None, None)
    assert limits["secondary"]["usedPercent"] == 1_000_000


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({}, "codex account authentication required to read rate limits"),
        (
            {"OPENAI_API_KEY": "sk-x"},
            "chatgpt authentication required to read rate limits",
        ),
    ],
)
def test_without_a_plan_there_are_no_limits(
    place: Workplace, chatgpt: ChatGPT, env: Mapping[str, str], problem: str
) -> None:
    async def run() -> None:
        with pytest.raises(RpcError, match=f"^{problem}$"):
            await Client(place, chatgpt, **env).limits()

    asyncio.run(run())


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"plan_type": 1, "rate_limit": [], "credits": "x", "spend_control": None},
        {"rate_limit": {"primary_window": {"used_percent": True}}},
        {"additional_rate_limits": [1, {}, {"metered_feature": "codex"}]},
        {"rate_limit_reached_type": {"type": "of_tomorrow"}, "plan_type": "golden"},
    ],
)
def test_what_is_not_understood_of_a_usage_is_null(usage: dict[str, Any]) -> None:
    limits = rate_limits(usage)
    empty = dict.fromkeys(LIMITS) | {"limitId": "codex", "planType": "unknown"}
    assert limits["rateLimits"] == empty
    assert limits["rateLimitsByLimitId"] == {"codex": empty}
    assert limits["ordinaryUsageAllowed"] is None


def test_a_plan_that_the_protocol_does_not_name_is_unknown() -> None:
    plans = ["pro", "golden", None]
    assert [plan_type(plan) for plan in plans] == ["pro", "unknown", "unknown"]


def test_a_client_signs_in_and_out_over_standard_input(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.configure(place.home)
    env = chatgpt.login_environment
    with login_ports(), AppServer(place.home, place.cwd, env=env) as server:
        browser = {"type": "chatgpt", "useHostedLoginSuccessPage": True}
        first = server.ask("account/login/start", browser)
        second = server.ask("account/login/start", browser)
        cancelled = [
            message["params"]
            for message in server.seen
            if message.get("method") == "account/login/completed"
        ]
        assert cancelled == [completed(first, NOT_COMPLETED)[1]]
        asyncio.run(visit(second["authUrl"]))
        done = server.told("account/login/completed")
        assert done == completed(second, None)[1]
        assert server.told("account/updated") == UPDATED[1]
        assert server.ask("account/read", {"refreshToken": True}) == ON_PLAN
        asked = {"excludeResetCreditDetails": True}
        assert server.ask("account/rateLimits/read", asked) == ALL_LIMITS
        third = server.ask("account/login/start", browser)
        given = {"loginId": third["loginId"]}
        assert server.ask("account/login/cancel", given) == {"status": "canceled"}
        assert server.told("account/login/completed")["success"] is False
        assert server.ask("account/logout") == {}
        assert server.ask("account/read") == NOBODY
        # The client leaves while a login is running.
        server.ask("account/login/start", browser)
    assert chatgpt.renewals == 1
    # The login that the renewal has left is over.
    assert len(chatgpt.revoked) == 1


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The schemas of Codex, by their names."""
    assert CODEX is not None
    out = tmp_path_factory.mktemp("schemas")
    home = tmp_path_factory.mktemp("home")
    subprocess.run(
        [CODEX, "app-server", "generate-json-schema", "--out", str(out)],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    return out / "v2"


@needs_codex
@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("GetAccountResponse", [ON_PLAN, NOBODY]),
        ("GetAccountRateLimitsResponse", [ALL_LIMITS, rate_limits({})]),
        ("GetAccountRateLimitsResponse", [rate_limits({**USAGE, "credits": None})]),
        (
            "LoginAccountResponse",
            [
                {"type": "chatgpt", "loginId": "x", "authUrl": "x"},
                {
                    "type": "chatgptDeviceCode",
                    "loginId": "x",
                    "verificationUrl": "x",
                    "userCode": "x",
                },
            ],
        ),
        ("CancelLoginAccountResponse", [{"status": "canceled"}]),
        ("CancelLoginAccountResponse", [{"status": "notFound"}]),
        (
            "AccountLoginCompletedNotification",
            [completed({"loginId": "x"}, problem)[1] for problem in (None, "x")],
        ),
        ("AccountUpdatedNotification", [UPDATED[1], {"authMode": None}]),
    ],
)
def test_answers_have_the_form_of_codex(
    schemas: Path, name: str, messages: Sequence[Mapping[str, Any]]
) -> None:
    schema = json.loads((schemas / f"{name}.json").read_text("utf-8"))
    for message in messages:
        jsonschema.validate(message, schema)
