"""A model server to try the package with, without a key: `python plain_server.py 8000`.

It runs the prompt as a command, and answers with the output. To `say hello` it answers at once.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    last = messages[-1]
    if "result" in last:
        _, _, output = last["result"]["text"].partition("Output:\n")
        return {"text": output.strip()}
    if last["text"].startswith("say "):
        return {"text": last["text"].removeprefix("say ")}
    arguments = json.dumps({"cmd": last["text"]})
    call = {"id": f"call_{len(messages)}", "name": "exec_command"}
    return {"call": {**call, "arguments": arguments}}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (answer(request["messages"]), {"tokens": [10, 5]}):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
