"""Answers that are no stream, connections that break, and what stands between the program and the server."""

import gzip
import json
import socket
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from email.utils import formatdate
from typing import Any

import pytest

from codex_py.testing import Reply, ev_completed, ev_function_call, ev_message, sse
from tests.support.program import KEY, Outcome, Workplace
from tests.support.server import ScriptedServer
from tests.support.tcp_server import read_request, read_some, reset, tcp_server

DONE = [*ev_message("done"), ev_completed()]


def answer(status: int, error: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(
        status=status, body=json.dumps({"error": error}).encode(), headers=headers or {}
    )


def says_once(outcome: Outcome, *words: str, retries: int = 0) -> None:
    """The failure is told as an error and as the end of the turn, in the same words; each retry before.

    What a server refuses as too large is compacted first, if there is anything to compact, which is an item.
    """
    notices = ["error"] * retries
    compaction = [
        e
        for e in outcome.events
        if e.get("item", {}).get("type") == "context_compaction"
    ]
    types = [event["type"] for event in outcome.events if event not in compaction]
    assert types == ["thread.started", "turn.started", *notices, "error", "turn.failed"]
    *_, error, failed = outcome.events
    assert failed["error"] == {
        key: value for key, value in error.items() if key != "type"
    }
    for word in words:
        assert word in error["message"]


@pytest.mark.parametrize(
    ("status", "code", "name", "message"),
    [
        (
            400,
            1,
            "bad_request",
            "unexpected status 400 Bad Request: no such thing, url: ",
        ),
        (
            401,
            77,
            "authentication",
            "unexpected status 401 Unauthorized: no such thing, url: ",
        ),
        (
            403,
            77,
            "authentication",
            "unexpected status 403 Forbidden: no such thing, url: ",
        ),
        (404, 1, "not_found", "unexpected status 404 Not Found: no such thing, url: "),
        (413, 1, "request_too_large", "unexpected status 413 "),
        (422, 1, "bad_request", "unexpected status 422 "),
        (418, 1, "bad_request", "unexpected status 418 "),
        (
            *(402, 1, "insufficient_quota"),
            "Quota exceeded. Check your plan and billing details."
            " (unexpected status 402 Payment Required: no such thing, url: ",
        ),
    ],
)
def test_a_permanent_failure_is_not_tried_again(
    place: Workplace, status: int, code: int, name: str, message: str
) -> None:
    refusal = answer(status, {"message": "no such thing", "type": "x", "code": None})
    with ScriptedServer([refusal]) as server:
        outcome = place.run(server, request_max_retries=3, stream_max_retries=3)
    assert (outcome.code, len(server.requests)) == (code, 1)
    assert outcome.error["message"].startswith(message)
    assert (outcome.error["code"], outcome.error["http_status"]) == (name, status)
    assert outcome.error["retryable"] is False
    says_once(outcome)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_by_its_source_and_never_shown(
    place: Workplace, status: int
) -> None:
    with ScriptedServer([answer(status, {"message": "bad key"})]) as server:
        outcome = place.run(server)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert outcome.error["message"].endswith("(key from environment variable MOCK_KEY)")
    written = "".join(path.read_text(encoding="utf-8") for path in place.rollouts())
    assert KEY not in json.dumps(outcome.events) + outcome.err + written


def test_a_key_that_the_server_echoes_is_not_shown(place: Workplace) -> None:
    echo = answer(401, {"message": f"Incorrect API key provided: {KEY}."})
    with ScriptedServer([echo]) as server:
        outcome = place.run(server)
    assert KEY not in json.dumps(outcome.events) + outcome.err


@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        (408, "request_timeout", 69),
        (409, "conflict", 69),
        (429, "rate_limited", 75),
        (500, "server_error", 69),
        (502, "server_error", 69),
        (503, "server_error", 69),
        (529, "overloaded", 75),
    ],
)
def test_a_temporary_failure_is_tried_again_within_bounds(
    place: Workplace, status: int, name: str, code: int
) -> None:
    failure = answer(status, {"message": "not now"})
    with ScriptedServer([failure, DONE]) as server:
        assert place.run(server, request_max_retries=1).messages == ["done"]
        server.add(failure, failure)
        outcome = place.run(server, request_max_retries=1)
        assert len(server.requests) == 4
    assert (outcome.code, outcome.error["code"]) == (code, name)
    assert (outcome.error["http_status"], outcome.error["retryable"]) == (status, True)
    says_once(outcome, "not now", retries=1)
    notice = outcome.events[2]
    assert notice["message"] == f"Reconnecting... 1/1 ({outcome.error['message']})"
    assert (notice["code"], notice["http_status"], notice["retryable"]) == (
        name,
        status,
        True,
    )
    assert (notice["attempt"], notice["max_attempts"]) == (1, 1)
    assert 0.18 <= notice["wait_s"] <= 0.22


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "1"},
        {"retry-after-ms": "1000", "retry-after": "90"},
        {"retry-after": formatdate(2, usegmt=True), "date": formatdate(1, usegmt=True)},
        {"llm_provider-retry-after": "1"},
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_server_says_how_long_to_wait(
    place: Workplace, status: int, headers: dict[str, str]
) -> None:
    with ScriptedServer([answer(status, {"message": "wait"}, headers), DONE]) as server:
        outcome = place.run(server, request_max_retries=1)
        first, second = server.requests
    assert outcome.code == 0
    assert 1.0 <= second.received_s - first.received_s < 2.0
    assert outcome.events[2]["wait_s"] == 1.0


@pytest.mark.parametrize("after", ["nonsense", "", "-5", "nan", "inf"])
def test_a_delay_that_is_none_counts_as_not_given(place: Workplace, after: str) -> None:
    with ScriptedServer(
        [answer(429, {"message": "wait"}, {"retry-after": after}), DONE]
    ) as server:
        outcome = place.run(server, request_max_retries=1)
        first, second = server.requests
    assert outcome.code == 0
    assert second.received_s - first.received_s < 1.0


def test_a_server_that_wants_hours_is_not_waited_for(place: Workplace) -> None:
    with ScriptedServer(
        [answer(429, {"message": "wait"}, {"retry-after": "7200"})]
    ) as server:
        outcome = place.run(server, request_max_retries=3)
    assert (outcome.code, len(server.requests)) == (75, 1)
    assert outcome.error["message"].endswith(
        "; the server asks to wait 7200 s before the next try"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            {"code": "insufficient_quota", "message": "pay"},
            "Quota exceeded. Check your plan and billing details."
            " (unexpected status 429 Too Many Requests: pay, url: http://127.0.0.1:",
        ),
        (
            {
                "type": "usage_limit_reached",
                "plan_type": "plus",
                "resets_at": 1_900_000_000,
            },
            "You've hit your usage limit. Try again at 2030-03-17 17:46.",
        ),
        (
            {"type": "usage_limit_reached", "resets_at": 1e300},
            "You've hit your usage limit.",
        ),
        (
            {"type": "usage_not_included"},
            "Your plan does not include the use of this model",
        ),
    ],
)
def test_a_429_for_a_quota_is_final(place: Workplace, error: Any, message: str) -> None:
    with ScriptedServer([answer(429, error, {"retry-after": "0"})]) as server:
        outcome = place.run(server, request_max_retries=3, stream_max_retries=3)
    # A plan comes back by itself; a quota that was paid for does not.
    code = 75 if error.get("type") == "usage_limit_reached" else 1
    assert (outcome.code, len(server.requests)) == (code, 1)
    assert outcome.error["message"].startswith(message)


def test_the_server_may_forbid_or_demand_a_retry(place: Workplace) -> None:
    forbidden = answer(500, {"message": "no"}, {"x-should-retry": "false"})
    demanded = answer(400, {"message": "yes"}, {"x-should-retry": "true"})
    with ScriptedServer([forbidden]) as server:
        assert place.run(server, request_max_retries=2).error["http_status"] == 500
        assert len(server.requests) == 1
        server.add(demanded, DONE)
        assert place.run(server, request_max_retries=2).code == 0


BODIES = {
    "empty": (b"", "Unknown error"),
    "plain": (b"the server is asleep\n", "the server is asleep"),
    "HTML": (
        b"<html><head><title>502 Bad\nGateway</title></head>" + b"x" * 9000,
        "502 Bad Gateway",
    ),
    "a list": (b'[{"error": {"code": 503, "message": "of Gemini"}}]', "of Gemini"),
    "a string": (b'{"error": "of Ollama"}', "of Ollama"),
    "detail": (b'{"detail": "of FastAPI"}', "of FastAPI"),
    "a list of details": (b'{"detail": [{"loc": ["body"], "msg": "bad"}]}', "bad"),
    "JSON cut short": (b'{"error": {"message": "half', "half"),
    "no UTF-8": (b"\xff\xfe\xfa", "\ufffd"),
    "control characters": (b'{"error": {"message": "a\\u001b[2Jb\\u202e"}}', "a[2Jb"),
    "null": (b"null", "null"),
    "deep": (b"[" * 60_000, "["),
}


@pytest.mark.parametrize(("body", "words"), BODIES.values(), ids=BODIES.keys())
def test_the_body_of_an_error_is_read_for_what_it_says(
    place: Workplace, body: bytes, words: str
) -> None:
    with ScriptedServer([Reply(status=500, body=body)]) as server:
        outcome = place.run(server)
    assert outcome.code == 69
    assert words in outcome.error["message"]
    assert outcome.error["message"].isprintable()


def test_a_huge_error_is_cut(place: Workplace) -> None:
    with ScriptedServer([answer(500, {"message": "x" * 30_000_000})]) as server:
        outcome = place.run(server)
    assert outcome.code == 69
    assert len(outcome.error["message"]) < 3_000


@pytest.mark.parametrize(
    ("status", "code", "name"),
    [
        (200, 1, "packed"),
        (400, 1, "bad_request"),
        (401, 77, "authentication"),
        (503, 69, "server_error"),
    ],
)
def test_an_answer_that_is_packed_twice_is_not_unpacked(
    place: Workplace, status: int, code: int, name: str
) -> None:
    bomb = gzip.compress(gzip.compress(b"data: " + bytes(16 << 20)))
    reply = Reply(status=status, body=bomb, headers={"content-encoding": "gzip, gzip"})
    with ScriptedServer([reply]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.error["code"], len(server.requests)) == (
        code,
        name,
        1,
    )
    assert outcome.error["retryable"] is (status == 503)
    assert "the server packed its answer ('gzip, gzip')" in outcome.error["message"]
    assert outcome.error["http_status"] == status


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_an_answer_that_is_packed_once_is_read(
    place: Workplace, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    headers = {"content-encoding": encoding}
    answer = Reply(
        body=pack(sse([*ev_message("done"), ev_completed()])), headers=headers
    )
    refusal = Reply(
        status=400, body=pack(b'{"error": {"message": "not so"}}'), headers=headers
    )
    with ScriptedServer([answer, refusal]) as server:
        assert place.run(server).messages == ["done"]
        says_once(place.rerun(), "not so")


def test_a_packed_stream_that_has_no_end_is_given_up(place: Workplace) -> None:
    bomb = gzip.compress(b"data: " + bytes(200 << 20), 1)
    with ScriptedServer(
        [Reply(body=bomb, headers={"content-encoding": "gzip"})]
    ) as server:
        outcome = place.run(server)
        assert len(server.requests) == 1
    assert (outcome.code, outcome.error["code"]) == (69, "event_too_large")


def test_an_error_body_without_an_end_is_not_waited_for(place: Workplace) -> None:
    def endless(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            connection.sendall(b"more " * 10_000)

    with ScriptedServer() as server, tcp_server(endless) as (url, _):
        outcome = place.run(server, base_url=url)
    assert (outcome.code, outcome.error["http_status"]) == (69, 500)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_named_and_not_followed(place: Workplace, status: int) -> None:
    with ScriptedServer() as elsewhere, ScriptedServer() as server:
        target = (
            elsewhere.base_url.replace("//", "//user:secret@") + "/responses?key=hidden"
        )
        server.add(Reply(status=status, body=b"", headers={"location": target}))
        outcome = place.run(server, request_max_retries=1)
        assert elsewhere.requests == []
    assert (outcome.code, outcome.error["code"], len(server.requests)) == (
        1,
        "redirect",
        1,
    )
    says_once(outcome, f"{elsewhere.base_url}/responses (status {status})")
    assert "secret" not in outcome.error["message"]
    assert "hidden" not in outcome.error["message"]


@pytest.mark.parametrize("status", [201, 204, 206])
def test_a_success_that_is_no_answer_fails(place: Workplace, status: int) -> None:
    with ScriptedServer([Reply(status=status, body=b"")]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.error["code"]) == (1, "unexpected_status")


def test_a_refused_connection_fails_after_its_retries(place: Workplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with ScriptedServer() as server:
        url = f"http://127.0.0.1:{port}/v1"
        # Nothing may come to listen there for minutes.
        outcome = place.run(
            server, base_url=url, request_max_retries=1, stream_max_retries=5
        )
    assert (outcome.code, outcome.error["code"]) == (69, "connection")
    says_once(
        outcome, f"cannot connect to {url}/responses: Connection refused", retries=1
    )


def test_a_server_here_that_is_away_for_a_while_is_waited_for(place: Workplace) -> None:
    waiting = {"cmd": "while [ ! -e closed ]; do sleep 0.02; done"}
    call = ev_function_call("call_1", "exec_command", waiting)
    with ScriptedServer([[*call, ev_completed()]]) as server, ExitStack() as stack:
        place.configure(server, request_max_retries=2, stream_max_retries=5)
        kind = ""
        with place.start("go") as program:
            assert program.stdout is not None
            for line in program.stdout:
                event = json.loads(line)
                kind = event["type"]
                if kind == "item.started":
                    server.close()
                    (place.cwd / "closed").touch()
                # A server that was never there is given up after two.
                if event.get("attempt") == 3:
                    stack.enter_context(ScriptedServer([DONE], port=server.port))
    assert kind == "turn.completed"


def leave(_connection: socket.socket, _request: bytes) -> None:
    pass


def answer_in_plain_text(connection: socket.socket, _request: bytes) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")


@pytest.mark.parametrize("handler", [leave, answer_in_plain_text])
def test_tls_to_a_plain_server_here_fails_after_the_retries_of_a_request(
    place: Workplace, handler: Any
) -> None:
    with ScriptedServer() as server, tcp_server(handler, read=read_some) as (url, _):
        outcome = place.run(
            server,
            base_url=url.replace("http:", "https:"),
            request_max_retries=1,
            stream_max_retries=5,
        )
    assert (outcome.code, outcome.error["code"]) == (69, "connection")
    assert outcome.error["message"].endswith("; is it an http:// address?")
    assert len([each for each in outcome.events if each["type"] == "error"]) == 2


def test_a_name_that_is_not_known_is_named(place: Workplace) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, base_url="http://nowhere.invalid/v1")
    assert (outcome.code, outcome.error["code"]) == (69, "connection")
    says_once(outcome, "cannot connect to http://nowhere.invalid/v1/responses: ")


def drop(connection: socket.socket, _request: bytes) -> None:
    reset(connection)


def half_a_head(connection: socket.socket, _request: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-ty")


def no_http(connection: socket.socket, _request: bytes) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")


def contradiction(connection: socket.socket, _request: bytes) -> None:
    connection.sendall(
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
    )


def a_head_without_end(connection: socket.socket, _request: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"x-more: yes\r\n" * 20_000)


@pytest.mark.parametrize(
    "handler", [drop, leave, half_a_head, no_http, contradiction, a_head_without_end]
)
def test_a_connection_that_gives_no_answer_is_tried_again(
    place: Workplace, handler: Any
) -> None:
    def stream(connection: socket.socket, _request: bytes) -> None:
        body = sse(DONE)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)

    with ScriptedServer() as server, tcp_server(handler, stream) as (url, requests):
        outcome = place.run(server, base_url=url, request_max_retries=1)
        assert len(requests) == 2
    assert (outcome.code, outcome.messages) == (0, ["done"])


def test_informational_answers_are_passed_over(place: Workplace) -> None:
    def stream(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        )
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + sse(DONE))

    with ScriptedServer() as server, tcp_server(stream) as (url, _):
        assert place.run(server, base_url=url).messages == ["done"]


def forward(connection: socket.socket, request: bytes) -> None:
    """A proxy of the simplest kind: absolute addresses in, one exchange, closed."""
    first_line, _, rest = request.partition(b"\r\n")
    method, address, version = first_line.split(b" ")
    _, _, host, path = address.split(b"/", 3)
    name, _, port = host.partition(b":")
    with socket.create_connection((name.decode(), int(port or b"80"))) as upstream:
        upstream.sendall(
            b"%b /%b %b\r\nconnection: close\r\n%b" % (method, path, version, rest)
        )
        while data := upstream.recv(65_536):
            connection.sendall(data)
            if data.endswith(b"0\r\n\r\n"):
                return


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_is_used(place: Workplace, variable: str) -> None:
    with ScriptedServer([DONE]) as server, tcp_server(forward) as (proxy, seen):
        outcome = place.run(server, env={variable: proxy})
        assert seen[0].startswith(
            f"POST {server.base_url}/responses HTTP/1.1\r\n".encode()
        )
    assert (outcome.code, outcome.messages) == (0, ["done"])


@pytest.mark.parametrize("exempt", ["127.0.0.1", "*", "example.com, 127.0.0.0/8"])
def test_an_exempt_address_is_reached_directly(place: Workplace, exempt: str) -> None:
    with ScriptedServer([DONE]) as server, tcp_server(drop) as (proxy, seen):
        env = {"HTTP_PROXY": proxy, "NO_PROXY": exempt}
        assert place.run(server, env=env).messages == ["done"]
        assert seen == []


def test_a_proxy_that_is_down_is_named_without_its_password(place: Workplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with ScriptedServer() as server:
        env = {"HTTP_PROXY": f"http://user:hush@127.0.0.1:{port}"}
        outcome = place.run(server, env=env)
    assert outcome.code == 69
    says_once(outcome, f"(through the proxy http://127.0.0.1:{port} of HTTP_PROXY)")
    assert "hush" not in json.dumps(outcome.events)


def test_a_proxy_that_wants_a_password_is_understood(place: Workplace) -> None:
    def refuse(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
        )

    with ScriptedServer() as server, tcp_server(refuse) as (proxy, seen):
        outcome = place.run(server, env={"HTTP_PROXY": proxy}, request_max_retries=2)
        assert len(seen) == 1
    assert outcome.error["http_status"] == 407


def test_a_proxy_that_is_no_address_stops_the_run(place: Workplace) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, env={"HTTP_PROXY": "ftp://127.0.0.1"})
    assert (outcome.code, server.requests) == (78, [])
    says_once(outcome, "HTTP_PROXY is no address of an http, https or socks5 proxy")


@pytest.mark.parametrize("proxy", ["ftp://127.0.0.1", "socks://127.0.0.1:9/"])
def test_a_proxy_that_no_request_needs_stops_nothing(
    place: Workplace, proxy: str
) -> None:
    with ScriptedServer([DONE]) as server:
        env = {"all_proxy": proxy, "no_proxy": "localhost 127.0.0.1"}
        assert place.run(server, env=env).messages == ["done"]


def test_headers_and_query_of_the_provider_are_sent(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        path = place.home / "config.toml"
        extra = (
            'http_headers = { x-team = "blue" }\n'
            'env_http_headers = { x-tenant = "TENANT", x-absent = "ABSENT" }\n'
            'query_params = { api-version = "2026-01", q = "a b&c" }\n'
        )
        path.write_text(path.read_text(encoding="utf-8") + extra, encoding="utf-8")
        assert place.rerun(env={"TENANT": " acme \n"}).code == 0
        (request,) = server.requests
    assert request.path == "/v1/responses?api-version=2026-01&q=a+b%26c"
    sent = {
        name: request.headers.get(name) for name in ("x-team", "x-tenant", "x-absent")
    }
    assert sent == {"x-team": "blue", "x-tenant": "acme", "x-absent": None}


def test_a_header_value_that_cannot_be_sent_stops_the_run(place: Workplace) -> None:
    with ScriptedServer() as server:
        place.configure(server)
        path = place.home / "config.toml"
        extra = 'env_http_headers = { x-tenant = "TENANT" }\n'
        path.write_text(path.read_text(encoding="utf-8") + extra, encoding="utf-8")
        outcome = place.rerun(env={"TENANT": "a\r\nx-evil: 1"})
    assert (outcome.code, server.requests) == (78, [])
    assert "'x-tenant'" in outcome.err
    assert "evil" not in outcome.err


def test_a_missing_key_fails_the_turn_before_any_request(place: Workplace) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, env={"MOCK_KEY": " "})
    assert (outcome.code, outcome.error["code"], server.requests) == (
        77,
        "missing_key",
        [],
    )
    says_once(outcome, "Missing environment variable: `MOCK_KEY`.")


def test_a_whole_turn_uses_a_single_connection(place: Workplace) -> None:
    connections: list[socket.socket] = []

    def serve(connection: socket.socket, request: bytes) -> None:
        connections.append(connection)
        items: list[list[dict[str, Any]]] = [
            [*ev_message("one"), ev_completed(end_turn=False)],
            DONE,
        ]
        for events in items:
            body = sse(events)
            head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)
            request = read_request(connection)
        assert request == b""

    with ScriptedServer() as server, tcp_server(serve) as (url, _):
        assert place.run(server, base_url=url).messages == ["one", "done"]
    assert len(connections) == 1


def test_a_kept_connection_that_the_server_closed_is_replaced_unseen(
    place: Workplace,
) -> None:
    def serve_one(connection: socket.socket, _request: bytes) -> None:
        body = sse([*ev_message("one"), ev_completed(end_turn=False)])
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        )

    def serve_last(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + sse(DONE))

    with ScriptedServer() as server, tcp_server(serve_one, serve_last) as (url, _):
        assert place.run(server, base_url=url).messages == ["one", "done"]


def test_retries_wait_as_long_as_they_announce(place: Workplace) -> None:
    with ScriptedServer([answer(500, {"message": "no"})] * 3) as server:
        outcome = place.run(server, request_max_retries=2)
        gaps = [
            later.received_s - earlier.received_s
            for earlier, later in zip(
                server.requests, server.requests[1:], strict=False
            )
        ]
    assert outcome.code == 69
    waits = [event["wait_s"] for event in outcome.events if "wait_s" in event]
    assert 0.18 <= waits[0] < waits[1] < 0.5
    assert all(gap >= wait for gap, wait in zip(gaps, waits, strict=True))
