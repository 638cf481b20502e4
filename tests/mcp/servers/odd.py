"""A small MCP server without any library, and what real ones do wrong.

`python odd.py BEHAVIOUR [FILE]`: every message that it gets is appended to FILE as a line.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEHAVIOUR = sys.argv[1]
FILE = sys.argv[2] if len(sys.argv) > 2 else os.devnull
MEGABYTE = 1 << 20

Message = dict[str, Any]


def send(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def notify(method: str, **params: Any) -> None:
    send({"method": method, "params": params})


def text(value: str) -> Message:
    return {"content": [{"type": "text", "text": value}]}


def tool(name: str, description: str = "", **annotations: bool) -> Message:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object"},
        "annotations": annotations,
    }


TOOLS: dict[str, Callable[[], list[Any]]] = {
    "many": lambda: [
        tool(f"tool-{n}", f"does the thing with the number{n}") for n in range(5000)
    ],
    "long": lambda: [tool("long", "x" * MEGABYTE)],
    "malformed": lambda: [
        {"inputSchema": 3},
        "nonsense",
        {"name": "bare"},
        tool("good"),
    ],
}
EXTRA_TOOLS: list[Message] = []


def tools() -> list[Any]:
    if make := TOOLS.get(BEHAVIOUR):
        return make()
    return [tool("echo", readOnlyHint=True), tool(BEHAVIOUR), *EXTRA_TOOLS]


def call(message: Message) -> Message | None:
    """The result of `tools/call`; None for none."""
    params = message["params"]
    match params["name"]:
        case "echo":
            return text(json.dumps(params["arguments"]))
        case "dies":
            os.write(2, b"a last word\n")
            os._exit(3)
        case "huge":
            return text("y" * (params["arguments"]["megabytes"] * MEGABYTE))
        case "progress" | "silent" as name:
            if token := params.get("_meta", {}).get("progressToken"):
                half = {"progress": 1, "total": 2, "message": "half"}
                notify("notifications/progress", progressToken=token, **half)
            return text("done") if name == "progress" else None
        case "grows":
            EXTRA_TOOLS.append(tool("new"))
            notify("notifications/tools/list_changed")
            return text("grown")
        case "asks":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            send(
                {
                    "id": "q1",
                    "method": "elicitation/create",
                    "params": {"message": "Who?", "requestedSchema": schema},
                }
            )
            answer = read()
            return text(json.dumps(answer and answer["result"]))
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "fails":
            return {**text("no"), "isError": True}
        case _:
            return break_rules(message)


def break_rules(message: Message) -> Message | None:
    """Answer what other clients may never have minded."""
    match message["params"]["name"]:
        case "refuses":
            # A number that servers take for any error, and the SDK for a connection that has ended.
            send(
                {
                    "id": message["id"],
                    "error": {"code": -32000, "message": "r" * MEGABYTE},
                }
            )
            return None
        case "inexact":
            return {**text("a\ud800"), "structuredContent": {"ratio": float("nan")}}
        case "answers-nothing":
            send({"id": message["id"], "result": None})
            return None
        case "nosy":
            for number in range(5000):
                send({"id": f"n{number}", "method": "ping"})
            return text("done")
        case "leaves":
            # Its output ends, and it does not.
            os.close(1)
            threading.Event().wait()
            return None
        case other:
            send(
                {
                    "id": message["id"],
                    "error": {"code": -32602, "message": f"no tool {other}"},
                }
            )
            return None


def endless(field: str, entries: list[Any], message: Message) -> Message:
    """A page with a new cursor, whatever was asked for."""
    page = int(message.get("params", {}).get("cursor", 0))
    return {field: entries if page == 0 else [], "nextCursor": str(page + 1)}


def answer(message: Message) -> Message | None:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}, "resources": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        case "tools/list":
            if BEHAVIOUR == "nervous":
                notify("notifications/tools/list_changed")
            if BEHAVIOUR == "endless":
                return endless("tools", tools(), message)
            if BEHAVIOUR == "tasks":
                kinds = ("required", "optional", "forbidden")
                more = [
                    {"name": kind, "execution": {"taskSupport": kind}} for kind in kinds
                ]
                return {"tools": [*tools(), *more]}
            return None if BEHAVIOUR == "unlisted" else {"tools": tools()}
        case "tools/call":
            return call(message)
        case "resources/list" if BEHAVIOUR == "endless":
            return endless("resources", [], message)
        case "resources/list":
            cursor = message.get("params", {}).get("cursor")
            page = {
                "resources": [
                    {
                        "uri": f"odd://{cursor or 1}",
                        "name": "a",
                        "mimeType": "text/plain",
                    }
                ]
            }
            return page if cursor else {**page, "nextCursor": "2"}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "odd://{n}", "name": "t"}]}
        case "resources/read" if message["params"]["uri"] == "odd://1":
            return {"contents": [{"uri": "odd://1", "text": "one"}]}
        case "resources/read":
            send(
                {
                    "id": message["id"],
                    "error": {"code": -32002, "message": "Resource not found"},
                }
            )
            return None
        case _:
            return None


def read() -> Message | None:
    line = sys.stdin.readline()
    if not line:
        return None
    with Path(FILE).open("a", encoding="utf-8") as log:
        log.write(line)
    return json.loads(line)


def serve() -> None:
    while (message := read()) is not None:
        if "method" not in message:
            continue
        result = answer(message)
        if result is not None:
            send({"id": message["id"], "result": result})


match BEHAVIOUR:
    case "dies-at-start":
        sys.exit("x" * 5000 + "\nno configuration found")
    case "mute":
        threading.Event().wait()
    case "stubborn":
        # With a child that keeps the output open, and neither ends when asked to.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork():
            serve()
        threading.Event().wait()
    case "banner":
        sys.stdout.write("Listening…\n\n[1, 2]\n")
        serve()
    case _:
        serve()
