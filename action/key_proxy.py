"""Keeps the key of a model's provider away from an agent that uses it, and from the agent's commands.

`python -P key_proxy.py PATH ADDRESS HEADER` reads the key from standard input, and
prints `{"port": 1, "token": "…"}`. A POST to `http://127.0.0.1:1/PATH` with this token is sent to ADDRESS, with the key
in HEADER; nothing else is forwarded. It ends with the first connection that asked for `GET /until-closed`.
"""

import contextlib
import hmac
import json
import os
import secrets
import sys
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import httpx

from codex_py.sandbox.child import kernel

LIFELINE: Final = "/until-closed"
_UNUSED_S: Final = 600.0
"""It ends if nobody asks for the lifeline in this time."""
_SILENT_S: Final = 60.0
"""A client may be silent so long in the middle of a request, or between two."""
_MAX_BODY_BYTES: Final = 256 * 1024 * 1024
_MAX_AT_ONCE: Final = 32
_HOP_BY_HOP: Final = frozenset(
    {
        *(
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
        ),
        *("trailer", "transfer-encoding", "upgrade", "content-length"),
    }
)
"""Headers that are about one connection, by RFC 9110, and the length, which is that of another encoding."""
_OF_THE_CLIENT: Final = _HOP_BY_HOP | {
    "host",
    "authorization",
    "x-api-key",
    "api-key",
    "cookie",
    # An answer that is not packed shows where the key is in it.
    "accept-encoding",
}


class KeyProxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, path: str, address: str, key: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.path, self.address, self.key = path, address, key
        (value,) = key.values()
        self.secret = value.removeprefix("Bearer ").encode()
        self.token = secrets.token_urlsafe(32)
        # It follows no redirect: the key is for this address.
        self.client = httpx.Client(timeout=httpx.Timeout(_SILENT_S, read=600.0))
        self.slots = threading.BoundedSemaphore(_MAX_AT_ONCE)
        self.unused = threading.Timer(_UNUSED_S, self.shutdown)
        self.unused.daemon = True


def without_secret(parts: Iterable[bytes], secret: bytes) -> Iterator[bytes]:
    """Pass an answer on with `***` in place of the secret: some providers quote a key that they refuse.

    What arrives is passed on at once, except for an end that may be the beginning of the secret. No
    part is empty: an empty chunk ends an answer.
    """
    kept = b""
    for part in parts:
        data = (kept + part).replace(secret, b"***")
        kept = _beginning(data, secret)
        whole = data[: len(data) - len(kept)]
        if whole:
            yield whole
    if kept:
        yield kept


def _beginning(data: bytes, secret: bytes) -> bytes:
    """The longest end of the data with which the secret begins."""
    for length in range(min(len(data), len(secret) - 1), 0, -1):
        if data.endswith(secret[:length]):
            return secret[:length]
    return b""


class _Handler(BaseHTTPRequestHandler):
    server: KeyProxy  # pyright: ignore[reportIncompatibleVariableOverride] - it is made by this one alone
    protocol_version = "HTTP/1.1"
    timeout = _SILENT_S

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self._is_allowed(LIFELINE):
            self.server.unused.cancel()
            self._say(200, "held")
            self.connection.settimeout(None)
            try:
                self.connection.recv(1)
            finally:
                self.server.shutdown()

    def do_POST(self) -> None:
        if not self._is_allowed(self.server.path):
            return
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _MAX_BODY_BYTES:
            self._say(413, "the request has no length, or a too large one")
        elif not self.server.slots.acquire(blocking=False):
            self._say(503, "too many requests at once")
        else:
            try:
                self._forward(self.rfile.read(int(length)))
            finally:
                self.server.slots.release()

    def _is_allowed(self, path: str) -> bool:
        given = self.headers.get("authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            self._say(401, "the proxy of the key has another token")
        elif self.path != path:
            self._say(404, "the proxy of the key forwards one address alone")
        else:
            return True
        return False

    def _forward(self, body: bytes) -> None:
        headers = {
            k: v for k, v in self.headers.items() if k.lower() not in _OF_THE_CLIENT
        }
        client, address = self.server.client, self.server.address
        headers |= {"accept-encoding": "identity", **self.server.key}
        request = client.build_request("POST", address, content=body, headers=headers)
        try:
            answer = client.send(request, stream=True)
        except httpx.TransportError as error:
            self._say(502, f"{address} cannot be reached: {error}")
            return
        with contextlib.closing(answer):
            self.send_response_only(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in _HOP_BY_HOP:
                    self.send_header(
                        name, value.replace(self.server.secret.decode(), "***")
                    )
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            # What raises here ends the connection before the last chunk, which is an error to the client.
            for part in without_secret(answer.iter_raw(), self.server.secret):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

    def _say(self, status: int, message: str) -> None:
        body = json.dumps({"error": {"message": message}}).encode()
        self.close_connection = status != 200
        self.send_response_only(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    if sys.platform == "linux":
        # Other processes of this user could read the key in our memory, and what we have in `/proc`.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    path, address, header = sys.argv[1:]
    key = sys.stdin.read().strip()
    server = KeyProxy(
        path, address, {header: key if header == "x-api-key" else f"Bearer {key}"}
    )
    server.unused.start()
    sys.stdout.write(
        json.dumps({"port": server.server_port, "token": server.token}) + "\n"
    )
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
