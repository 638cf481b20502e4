"""Tests `mcp/session.py` and `mcp/stdio.py`."""

import math

import pytest
from mcp_types import JSONRPCError, JSONRPCResponse

from codex_py.mcp.session import finite
from codex_py.mcp.stdio import salvaged_answer


@pytest.mark.parametrize(
    "text",
    [
        rb'{"jsonrpc":"2.0","id":3,"result":{"a":"b\ud800"}}',
        b'{"jsonrpc":"2.0","id":3,"result":{"a":"b\xe2\x82"}}',
    ],
)
def test_text_that_is_no_unicode_does_not_cost_the_result(text: bytes) -> None:
    answer = JSONRPCResponse(
        jsonrpc="2.0", id=3, result={"a": "b\N{REPLACEMENT CHARACTER}"}
    )
    assert salvaged_answer(text + b"\n") == answer


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":3,"result":null}',
        b'{"jsonrpc":"2.0","id":3,"error":"out of order"}',
        b'{"id":3,"jsonrpc":"2.0","result":{"a":'
        + b"[" * 10_000
        + b"]" * 10_000
        + b"}}",
        b'{"jsonrpc":"2.0","id":3,"result":{{}',
    ],
)
def test_an_answer_without_a_result_is_an_error_of_its_request(text: bytes) -> None:
    answer = salvaged_answer(text + b"\n")
    assert isinstance(answer, JSONRPCError)
    assert answer.id == 3
    assert answer.error.message.startswith("the server's answer is no valid one: '{")


@pytest.mark.parametrize(
    "text",
    [
        b"Listening on stdio\n",
        b"[1]\n",
        b'{"id":3}\n',
        b'{"id":3,"level":"info" oops\n',
        b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}\n',
        b'{"jsonrpc":"2.0","id":3,"result":{"cut',
    ],
)
def test_all_else_is_no_answer(text: bytes) -> None:
    assert salvaged_answer(text) is None


def test_numbers_that_json_lacks_are_null() -> None:
    assert finite({"a": [math.nan, 1.5, {"b": -math.inf}], "c": "NaN"}) == {
        "a": [None, 1.5, {"b": None}],
        "c": "NaN",
    }
