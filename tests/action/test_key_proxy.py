"""The proxy that has the key in place of the agent."""

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from action.key_proxy import without_secret
from tests.support.privileges import respect_processes

ROOT = Path(__file__).parent.parent.parent
KEY = "sk-the-key"
_PATH = "/v1/responses"
_S = 60


@dataclass
class Proxy:
    process: subprocess.Popen[bytes]
    port: int
    token: str

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_S)

    def send(
        self,
        method: str = "POST",
        path: str = _PATH,
        token: str | None = None,
        **headers: str,
    ) -> tuple[int, bytes]:
        connection = self.connect()
        given = {"authorization": f"Bearer {token or self.token}", **headers}
        connection.request(
            method, path, body=b"{}" if method == "POST" else None, headers=given
        )
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body


@contextmanager
def proxy(address: str, header: str = "authorization") -> Generator[Proxy]:
    script = str(ROOT / "action" / "key_proxy.py")
    with subprocess.Popen(
        [sys.executable, "-P", script, _PATH, address, header],
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=respect_processes,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{KEY}\n".encode())
        process.stdin.close()
        started = json.loads(process.stdout.readline())
        try:
            yield Proxy(process, started["port"], started["token"])
        finally:
            process.kill()


@contextmanager
def provider(
    answer: Callable[[BaseHTTPRequestHandler], None],
) -> Generator[tuple[str, list[Any]]]:
    """The address of a server, and the headers of the requests that it got."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            got.append({name.lower(): value for name, value in self.headers.items()})
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/responses?version=1", got
        finally:
            server.shutdown()
            thread.join()


def fine(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "4")
    handler.send_header("x-request-id", "7")
    handler.end_headers()
    handler.wfile.write(b"fine")


def test_a_request_is_sent_on_with_the_key() -> None:
    with provider(fine) as (address, got), proxy(address) as held:
        assert held.send(cookie="a=b", originator="x") == (200, b"fine")
    assert got[0]["authorization"] == f"Bearer {KEY}"
    assert (got[0]["originator"], "cookie" in got[0]) == ("x", False)
    with provider(fine) as (address, got), proxy(address, "x-api-key") as held:
        held.send()
    assert (got[0]["x-api-key"], "authorization" in got[0]) == (KEY, False)


def test_nothing_else_is_sent_on() -> None:
    with provider(fine) as (address, got), proxy(address) as held:
        assert held.send(token="other")[0] == 401
        assert held.send(token="ü")[0] == 401
        assert held.send(path="/v1/files")[0] == 404
        assert held.send("GET", "/v1/models")[0] == 404
        assert held.send("DELETE")[0] == 501
        headers = {
            "authorization": f"Bearer {held.token}",
            "content-length": str(2**40),
        }
        with closing(held.connect()) as connection:
            connection.request("POST", _PATH, headers=headers)
            assert connection.getresponse().status == 413
    assert got == []


def test_an_answer_streams_and_one_that_breaks_off_is_not_whole() -> None:
    go_on = threading.Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "100")
        handler.end_headers()
        handler.wfile.write(b"first")
        go_on.wait(_S)

    with provider(slow) as (address, _), proxy(address) as held:
        headers = {"authorization": f"Bearer {held.token}"}
        with closing(held.connect()) as connection:
            connection.request("POST", _PATH, body=b"{}", headers=headers)
            answer = connection.getresponse()
            assert answer.read(5) == b"first"
            go_on.set()
            with pytest.raises(http.client.IncompleteRead):
                answer.read()
            answer.close()


def test_a_provider_that_is_not_there_is_told() -> None:
    with proxy("http://127.0.0.1:1/v1/responses") as held:
        status, body = held.send()
    assert (status, KEY in body.decode()) == (502, False)
    assert (
        "http://127.0.0.1:1/v1/responses cannot be reached"
        in json.loads(body)["error"]["message"]
    )


@pytest.mark.parametrize("is_read", [True, False])
def test_it_ends_with_the_connection_that_holds_it(is_read: bool) -> None:
    with proxy("http://127.0.0.1:1/v1/responses") as held:
        connection = held.connect()
        headers = {"authorization": f"Bearer {held.token}"}
        connection.request("GET", "/until-closed", headers=headers)
        answer = connection.getresponse()
        if is_read:
            answer.read()
        assert held.process.poll() is None
        answer.close()
        connection.close()
        assert held.process.wait(_S) == 0


@pytest.mark.skipif(
    sys.platform != "linux", reason="it is Linux that has `PR_SET_DUMPABLE`"
)
def test_other_processes_of_the_user_read_nothing_of_it() -> None:
    def can_read(pid: int, name: str) -> bool:
        argv = ["cat", f"/proc/{pid}/{name}"]
        done = subprocess.run(
            argv, preexec_fn=respect_processes, capture_output=True, check=False
        )
        return done.returncode == 0

    other = subprocess.Popen(["sleep", "60"], preexec_fn=respect_processes)
    try:
        with proxy("http://127.0.0.1:1/v1/responses") as held:
            assert can_read(other.pid, "environ")
            names = ("environ", "mem", "maps")
            assert [name for name in names if can_read(held.process.pid, name)] == []
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"no {KEY}!", "no ***!"),
        (f"{KEY}{KEY}", "******"),
        (f"s{KEY}sk-sk-the-ke", "s***sk-sk-the-ke"),
        ("nothing", "nothing"),
        ("sk-the-", "sk-the-"),
    ],
)
def test_the_key_is_in_no_part_of_an_answer(text: str, shown: str, size: int) -> None:
    data = text.encode()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    found = [*without_secret(parts, KEY.encode())]
    assert b"".join(found).decode() == shown
    assert all(found)
