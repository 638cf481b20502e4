"""What is answered to a browser, and to whoever else finds the port."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from codex_py.errors import CodexError
from codex_py.http.login_answers import LoginAnswers

ADDRESS = "https://issuer.test/authorize?state=secret-state"
GOOD = "/callback?code=c&state=secret-state"


@dataclass
class SilentScreen:
    visited: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])

    def visit(self, address: str) -> None:
        self.visited.append(address)

    async def pasted(self) -> str:
        return await asyncio.get_running_loop().create_future()

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)


async def ask(
    port: int, target: str, *lines: str, host: str = "localhost:1", method: str = "GET"
) -> tuple[int, str]:
    """The status and the page."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    headers = [f"Host: {host}"] if host else []
    head = [f"{method} {target} HTTP/1.1", *headers, *lines, "", ""]
    writer.write("\r\n".join(head).encode())
    answer = (await reader.read()).decode()
    writer.close()
    head_text, _, page = answer.partition("\r\n\r\n")
    assert "no-store" in head_text
    return int(head_text.split(" ")[1]), page


def serve(
    talk: Callable[[int], Awaitable[None]], *, fails: bool = False
) -> tuple[dict[str, str], SilentScreen]:
    """Wait for an answer while `talk` uses the port. Returns the answer."""
    screen = SilentScreen()

    found: list[dict[str, str]] = []

    async def main() -> None:
        answers = LoginAnswers(screen, "/callback")
        port_is_known: asyncio.Future[int] = asyncio.Future()

        async def use_port() -> None:
            await talk(await port_is_known)

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(use_port())
            with suppress(CodexError):
                async with answers.listening(0) as port:
                    waiting = group.create_task(answers.wait(ADDRESS))
                    await asyncio.sleep(0)
                    port_is_known.set_result(port)
                    found.append(await waiting)
                    if fails:
                        raise CodexError("the code was not exchanged")

    asyncio.run(main())
    return found[0], screen


def test_a_browser_gets_its_page_when_the_login_is_complete() -> None:
    async def talk(port: int) -> None:
        status, page = await ask(port, GOOD, host=f"localhost:{port}")
        assert (status, page) == (
            200,
            "Authentication complete. You may close this window.",
        )

    answer, screen = serve(talk)
    assert answer == {"code": "c", "state": "secret-state"}
    assert (screen.visited, screen.refused) == ([ADDRESS], [])


def test_a_browser_is_told_that_the_login_failed() -> None:
    async def talk(port: int) -> None:
        status, page = await ask(port, GOOD)
        assert (status, "failed" in page) == (502, True)

    serve(talk, fails=True)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/callback/", 404),
        ("/callback", 400),
        ("/callback?code=c", 400),
        ("/callback?code=c&state=", 400),
        ("/callback?code=c&state=secret-statE", 400),
        ("/callback?error=no&state=other", 400),
        ("/callback?state=secret-state", 400),
        ("/callback?code=c&state=%ff%fe", 400),
    ],
)
def test_another_address_ends_no_login(target: str, status: int) -> None:
    async def talk(port: int) -> None:
        assert (await ask(port, target))[0] == status
        await ask(port, GOOD)

    answer, _ = serve(talk)
    assert answer["code"] == "c"


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "get", ""])
def test_only_get_ends_a_login(method: str) -> None:
    async def talk(port: int) -> None:
        assert (await ask(port, GOOD, method=method))[0] == 404
        await ask(port, GOOD)

    serve(talk)


@pytest.mark.parametrize(
    ("host", "more"),
    [
        ("evil.test", []),
        ("evil.test:1455", []),
        ("localhost.evil.test", []),
        ("", []),
        ("localhost", ["Host: evil.test"]),
        ("0.0.0.0:1455", []),
    ],
)
def test_a_page_whose_name_leads_here_ends_no_login(host: str, more: list[str]) -> None:
    async def talk(port: int) -> None:
        assert (await ask(port, GOOD, *more, host=host))[0] == 403
        await ask(port, GOOD, host="127.0.0.1:1455")

    serve(talk)


def test_a_second_answer_is_refused() -> None:
    async def talk(port: int) -> None:
        first = asyncio.create_task(ask(port, GOOD))
        second = asyncio.create_task(ask(port, "/callback?code=x&state=secret-state"))
        statuses = sorted([(await first)[0], (await second)[0]])
        assert statuses == [200, 409]

    serve(talk)


def test_a_client_that_sends_too_much_or_nothing_holds_nobody_up() -> None:
    async def talk(port: int) -> None:
        _, silent = await asyncio.open_connection("127.0.0.1", port)
        reader, loud = await asyncio.open_connection("127.0.0.1", port)
        loud.write(b"GET /" + b"x" * 200_000)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        assert (await ask(port, GOOD))[0] == 200
        for writer in (silent, loud):
            writer.close()

    serve(talk)


@pytest.mark.parametrize("sent", [b"", b"GET /callback?code=", b"GET / HTTP/1.1\r\n"])
def test_a_connection_without_a_request_is_closed_with_the_login(sent: bytes) -> None:
    problems: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        answers = LoginAnswers(SilentScreen(), "/callback")
        async with asyncio.timeout(5):
            async with answers.listening(0) as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(sent)
                await writer.drain()
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(main())
    assert problems == []


def test_idle_connections_leave_room_for_the_browser_once_they_close() -> None:
    async def talk(port: int) -> None:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        dropped = 0
        for reader, _ in opened[32:]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
            dropped += 1
        assert dropped == 28
        for _, writer in opened:
            writer.close()
        status = 0
        while status != 200:
            with suppress(ConnectionError, ValueError, AssertionError):
                status, _ = await ask(port, GOOD)

    serve(talk)


def test_the_user_sees_a_wrong_answer_of_a_browser_once() -> None:
    async def talk(port: int) -> None:
        for _ in range(20):
            await ask(port, "/callback?code=c&state=other")
            await ask(port, "/callback")
        await ask(port, GOOD)

    _, screen = serve(talk)
    assert screen.refused == [
        "that is the answer to another login",
        "that is not an address that ends a login",
    ]


def test_the_first_free_port_is_used_and_only_on_this_machine() -> None:
    async def main() -> None:
        screen = SilentScreen()
        one = LoginAnswers(screen, "/callback")
        other = LoginAnswers(screen, "/callback")
        async with one.listening(0) as taken:
            with pytest.raises(OSError, match="in use"):
                async with other.listening(taken, taken):
                    pass
            async with other.listening(taken, 0) as port:
                assert port != taken

    asyncio.run(main())
