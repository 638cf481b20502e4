"""Write the transcripts anew; see the package."""

import http.client
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_failed,
    ev_function_call,
    ev_incomplete,
    ev_message,
    ev_reasoning,
    sse,
)
from codex_py.testing.server import Script
from tests.model.transcripts import WIRES, Exchange, make_wire, prompt, write_exchanges
from tests.support.server import ScriptedServer
from tests.support.wire_peers import Peer, aimock, litellm

LONG = "".join(f"{number}. “Déjà vu”\n" for number in range(60))
_CALLS = [("call_a", "shell", {"cmd": "ls"}), ("call_b", "shell", {"cmd": 'echo "b"'})]
_PATCH = ("call_p", "apply_patch", {"input": "a\n+b"})


def _mocked(*calls: tuple[str, str, dict[str, str]], **fields: Any) -> dict[str, Any]:
    asked = [{"id": i, "name": n, "arguments": json.dumps(a)} for i, n, a in calls]
    return {**fields, "toolCalls": asked} if asked else fields


_MOCK: Mapping[str, dict[str, Any]] = {
    "text": _mocked(content="Hello there."),
    "long": _mocked(content=LONG),
    "reasoning": _mocked(
        content="Yes.", reasoning="Hm. Well.", reasoningSignature="sig"
    ),
    "calls": _mocked(*_CALLS, content="I look."),
    "thought, call": _mocked(_CALLS[0], reasoning="Hm.", reasoningSignature="sig"),
    "patch": _mocked(_PATCH),
    "search": _mocked(content="Found.", webSearches=["what is new"]),
    "length": _mocked(content="It is too", finishReason="length"),
    "filter": _mocked(content="It is", finishReason="content_filter"),
    "429": {
        "error": {"message": "Too many.", "type": "rate_limit_error"},
        "status": 429,
    },
    "503": {"error": {"message": "Down.", "type": "server_error"}, "status": 503},
}


def _says(*events: Any) -> list[Any]:
    end = ev_completed(input_tokens=90, cached=40, output_tokens=7)
    return [ev_created(), *events, end]


def _call(number: int, index: int) -> list[dict[str, Any]]:
    return ev_function_call(*_CALLS[number], index=index)


def _patch(request: RecordedRequest) -> Script:
    """The proxy has a name of its own for the parameter that stands for the input of a freeform tool."""
    (parameter,) = request.body["tools"][1]["function"]["parameters"]["properties"]
    return _says(*ev_function_call("call_p", "apply_patch", {parameter: "a\n+b"}))


def _chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return sse(
        [
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "model": "m",
                "choices": [choice],
            }
        ]
    )


_BEHIND: Mapping[str, Script] = {
    "text": _says(*ev_message("Hello there.", pieces=3)),
    "long": _says(*ev_message(LONG, pieces=20)),
    "reasoning": _says(*ev_reasoning("Hm. Well."), *ev_message("Yes.", index=1)),
    "calls": _says(*ev_message("I look."), *_call(0, 1), *_call(1, 2)),
    "thought, call": _says(*ev_reasoning("Hm."), *_call(0, 1)),
    "patch": _patch,
    "length": [*ev_message("It is too"), ev_incomplete()],
    "call cut by the length": [*_call(0, 0)[:1], ev_incomplete()],
    "filter": [*ev_message("It is"), ev_incomplete("content_filter")],
    "failure": [*ev_message("It is")[:3], ev_failed("server_error", "Broken.")],
    "no [DONE]": _chunk({"content": "Yes."}) + _chunk({}, "stop"),
    "no end": _chunk({"content": "Yes"}),
    "429": Reply(status=429, body=b'{"error": {"message": "Too many."}}'),
    "503": Reply(status=503, body=b'{"error": {"message": "Down."}}'),
    "400": Reply(status=400, body=b'{"error": {"message": "No."}}'),
}


def _exchange(peer: Peer, api: str, case: str) -> Exchange:
    wire = make_wire(api)
    address = urlsplit(peer.base_url)
    body = wire.body(prompt(case))
    headers = {
        "content-type": "application/json",
        "authorization": f"Bearer {peer.key}",
        **wire.headers,
    }
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    connection.request("POST", f"{address.path}{wire.path}", body, headers)
    response = connection.getresponse()
    kind = response.headers.get("content-type", "")
    # Ids of responses that say where the proxy sent the request are very long.
    text = re.sub(r"(resp_[\w-]{20})[\w-]+=*", r"\1", response.read().decode())
    connection.close()
    return Exchange(json.loads(body), response.status, kind, text.split("\n"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        fixtures = [
            {"match": {"userMessage": f"case {case}"}, "response": response}
            for case, response in _MOCK.items()
        ]
        with aimock(Path(folder), fixtures) as mock:
            for api in WIRES:
                found = {case: _exchange(mock, api, case) for case in _MOCK}
                write_exchanges("aimock", api, found)
        with litellm(Path(folder)) as proxy:
            for api in WIRES:
                found: dict[str, Exchange] = {}
                for case, script in _BEHIND.items():
                    with ScriptedServer([script], port=proxy.upstream_port):
                        found[case] = _exchange(proxy, api, case)
                write_exchanges("litellm", api, found)


if __name__ == "__main__":
    main()
