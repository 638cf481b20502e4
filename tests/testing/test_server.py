"""Also tests `testing/lines.py`, `testing/reply.py` and `testing/script.py`."""

import http.client
import json
import re
import socket
import threading
import time
import tomllib
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    RecordedRequest,
    Reply,
    call,
    ev_completed,
    ev_created,
    ev_message,
    sse,
)
from codex_py.testing.script import Script
from tests.support.server import ScriptedServer

SAYS = [ev_created(), *ev_message("Done."), ev_completed()]
CALL = {"type": "function_call", "call_id": "a", "name": "shell", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "done"}


def connect(server: ScriptedServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)


def send(
    connection: http.client.HTTPConnection, *items: Any, thread: str = "t"
) -> None:
    body = json.dumps(
        {"input": list(items), "prompt_cache_key": thread, "stream": True}
    )
    connection.request("POST", "/v1/responses", body, {"X-Trace": "1"})


def post(server: ScriptedServer, *items: Any, thread: str = "t") -> tuple[int, bytes]:
    connection = connect(server)
    send(connection, *items, thread=thread)
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def raw_answer(server: ScriptedServer) -> bytes:
    """All bytes that are sent, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        body = b'{"input":[],"stream":true}'
        head = f"POST /v1/responses HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        with connection.makefile("rb") as reader:
            return reader.read()


def test_replies_are_played_in_order_over_one_connection():
    with ScriptedServer([SAYS, [ev_completed()]]) as server:
        connection = connect(server)
        answers: list[bytes] = []
        for _ in range(2):
            send(connection)
            answers.append(connection.getresponse().read())
        connection.close()
    assert answers == [sse(SAYS), sse([ev_completed()])]


def test_requests_are_recorded():
    with ScriptedServer([SAYS, SAYS]) as server:
        post(server, CALL, OUTPUT)
        post(server, CALL, OUTPUT, CALL, {**OUTPUT, "output": "again"})
    first, second = server.requests
    assert (first.method, first.path) == ("POST", "/v1/responses")
    assert first.headers["x-trace"] == "1"
    assert first.body == {
        "input": [CALL, OUTPUT],
        "prompt_cache_key": "t",
        "stream": True,
    }
    assert second.output("a") == "done"
    assert first.received_s < second.received_s
    with pytest.raises(LookupError, match="'b'"):
        first.output("b")


def test_a_reply_may_be_bytes_or_made_from_the_request():
    def echo(request: RecordedRequest) -> Reply:
        return Reply(status=201, body=json.dumps(request.input).encode())

    with ScriptedServer([b"data: raw\n\n", echo]) as server:
        assert post(server) == (200, b"data: raw\n\n")
        assert post(server, {"n": 1}) == (201, b'[{"n": 1}]')


def test_a_status_comes_with_its_headers_and_body():
    with ScriptedServer(
        [Reply(status=429, headers={"Retry-After": "2"}, body=b"{}")]
    ) as server:
        connection = connect(server)
        send(connection)
        response = connection.getresponse()
        assert (response.status, response.headers["retry-after"]) == (429, "2")
        assert (response.headers["content-type"], response.read()) == (
            "application/json",
            b"{}",
        )
        connection.close()


def test_a_script_at_its_end_says_so_and_can_be_lengthened():
    with ScriptedServer() as server:
        status, body = post(server)
        assert (status, json.loads(body)["error"]["message"]) == (
            500,
            "the script of this ScriptedServer is at its end, after 0 answers; nothing was sent to a provider",
        )
        server.add(SAYS)
        assert post(server) == (200, sse(SAYS))


def test_a_script_can_be_played_for_each_thread():
    with ScriptedServer([b"1", b"2"], each_thread=True) as server:
        answers = [post(server, thread=thread) for thread in "abba"]
    assert answers == [(200, b"1"), (200, b"1"), (200, b"2"), (200, b"2")]


def test_a_pause_holds_the_rest_back_until_it_is_over():
    pause = Pause()
    with ScriptedServer([[b"first", pause, b"second"]]) as server:
        connection = connect(server)
        send(connection)
        response = connection.getresponse()
        assert response.read1() == b"first"
        assert pause.reached.wait(10)
        pause.until.set()
        assert response.read() == b"second"
        connection.close()


def test_closing_the_server_ends_a_pause_and_drops_the_connection():
    pause = Pause()
    with ScriptedServer([[b"first", pause]]) as server:
        connection = connect(server)
        send(connection)
        response = connection.getresponse()
        assert response.read1() == b"first"
        server.close()
        assert pause.until.is_set()
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            response.read()
        connection.close()


def test_a_closed_server_takes_no_connection():
    with ScriptedServer() as server:
        pass
    with pytest.raises(ConnectionRefusedError):
        post(server)


def test_a_cut_connection_ends_after_the_bytes_that_were_asked_for():
    body = sse(SAYS)[:100]
    with ScriptedServer(
        [Reply(events=[body], cut=True), Reply(body=b"half", cut=True)]
    ) as server:
        assert raw_answer(server).endswith(b"\r\n\r\n64\r\n" + body + b"\r\n")
        assert raw_answer(server).endswith(b"\r\n\r\nhalf")


def test_a_connection_can_be_cut_after_a_pause():
    pause = Pause()
    pause.until.set()
    with ScriptedServer([Reply(events=[b"one", pause], cut=True)]) as server:
        assert raw_answer(server).endswith(b"\r\n\r\n3\r\none\r\n")


def test_each_event_can_have_a_chunk_of_its_own():
    with ScriptedServer(
        [Reply(events=[b"one", b"", b"three"], chunk_each=True, cut=True)]
    ) as server:
        assert raw_answer(server).endswith(b"\r\n\r\n3\r\none\r\n5\r\nthree\r\n")


def test_a_stream_drips_if_each_event_has_a_chunk_and_there_is_a_delay():
    with ScriptedServer([Reply(events=SAYS, chunk_each=True, delay_s=0.01)]) as server:
        began = time.monotonic()
        assert post(server) == (200, sse(SAYS))
        assert time.monotonic() - began > 0.01 * len(SAYS)


@pytest.mark.parametrize("write_bytes", [1, 7, 100_000])
def test_a_reply_can_be_written_in_small_pieces(write_bytes: int):
    with ScriptedServer([Reply(events=SAYS, write_bytes=write_bytes)]) as server:
        assert post(server) == (200, sse(SAYS))


def test_a_websocket_is_refused_so_that_http_is_used():
    with ScriptedServer([SAYS]) as server:
        connection = connect(server)
        connection.request("GET", "/v1/responses", headers={"Upgrade": "websocket"})
        response = connection.getresponse()
        assert (response.status, response.read() != b"") == (426, True)
        connection.request("GET", "/v1/models")
        assert connection.getresponse().status == 404
        connection.close()
    assert server.requests == []


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ([[CALL]], "request 1: calls without output: ['a']"),
        (
            [[{"n": 1}], [{"n": 2}]],
            "request 2: the input does not begin with the last one: "
            "item 0 was {'n': 1}, is {'n': 2}",
        ),
        (["text"], "request 1: the input is no list of objects"),
        ([["text"]], "request 1: the input is no list of objects"),
    ],
)
def test_a_request_that_breaks_the_rules_is_refused_and_raised_at_the_end(
    inputs: Sequence[Any], problem: str
):
    server = ScriptedServer([SAYS, SAYS])
    server.start()
    answers: list[tuple[int, bytes]] = []
    for value in inputs:
        connection = connect(server)
        body = json.dumps({"input": value, "prompt_cache_key": "t"})
        connection.request("POST", "/v1/responses", body)
        response = connection.getresponse()
        answers.append((response.status, response.read()))
        connection.close()
    status, answer = answers[-1]
    assert status == 400
    assert json.loads(answer)["error"]["message"] == problem.partition(": ")[2]
    with pytest.raises(AssertionError, match=f"^{re.escape(problem)}$"):
        server.close()


def test_a_failure_of_the_test_itself_comes_first():
    def test() -> None:
        with ScriptedServer([SAYS]) as server:
            post(server, CALL)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        test()


def test_threads_have_prefixes_of_their_own():
    with ScriptedServer([SAYS, SAYS]) as server:
        post(server, {"role": "user"}, thread="a")
        post(server, {"role": "developer"}, thread="b")


def test_a_history_may_be_replaced_where_that_is_allowed():
    with ScriptedServer([SAYS, SAYS], check_prefix=False) as server:
        post(server, {"role": "user"})
        assert post(server, {"role": "developer"}) == (200, sse(SAYS))


def test_other_paths_are_answered_and_not_checked():
    with ScriptedServer([b"other"]) as server:
        connection = connect(server)
        connection.request("POST", "/v1/embeddings", "not JSON")
        assert connection.getresponse().read() == b"other"
        connection.close()


def test_connections_are_served_side_by_side():
    both = threading.Barrier(2, timeout=10)

    def together(request: RecordedRequest) -> bytes:
        both.wait()
        return b"together"

    with ScriptedServer([together, together]) as server:
        first, second = connect(server), connect(server)
        for connection in (first, second):
            send(connection)
        for connection in (first, second):
            assert connection.getresponse().read() == b"together"
            connection.close()


def test_the_configuration_names_the_server():
    server = ScriptedServer()
    text = server.config_toml(request_max_retries=0, http_headers={"x-ü": "ä😀"})
    server.close()
    assert tomllib.loads(text) == {
        "model": "gpt-5.5",
        "model_provider": "mock",
        "model_providers": {
            "mock": {
                "name": "mock",
                "base_url": f"http://127.0.0.1:{server.port}/v1",
                "env_key": "MOCK_KEY",
                "wire_api": "responses",
                "request_max_retries": 0,
                "http_headers": {"x-ü": "ä😀"},
            }
        },
    }


def test_a_server_plays_texts_and_calls_as_a_fake_model_does() -> None:
    script: list[Script] = [
        call("shell", cmd="ls"),
        ["Two.", call("shell", cmd="pwd")],
        lambda _: "Three.",
    ]
    with ScriptedServer(script) as server:
        answers = [post(server)[1].decode() for _ in script]
    done = [re.findall(r'"response.output_item.done".*', each) for each in answers]
    assert [len(each) for each in done] == [1, 2, 1]
    assert "call_1" in done[0][0]
    assert "call_2" in done[1][1]
    assert "Three." in done[2][0]
