"""A loopback server of raw sockets and threads, for what happens below HTTP while the test waits for a program."""

import socket
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

_TIMEOUT_S = 30.0

Handler = Callable[[socket.socket, bytes], object]
"""Gets a connection and the request read from it; the connection is closed afterwards."""


def read_some(connection: socket.socket) -> bytes:
    """What has come first, whatever it is."""
    return connection.recv(65_536)


@contextmanager
def tcp_server(
    *handlers: Handler, read: Callable[[socket.socket], bytes] | None = None
) -> Generator[tuple[str, list[bytes]]]:
    """One handler for each connection, the last for all further ones.

    Gives the address, `http://127.0.0.1:PORT`, and the list of the requests read so far.

    Args:
        read: reads a request; `read_request` where it is not given.
    """
    requests: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        waiting = list(handlers)
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            handler = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            threading.Thread(
                target=serve, args=(connection, handler), daemon=True
            ).start()

    def serve(connection: socket.socket, handler: Handler) -> None:
        connection.settimeout(_TIMEOUT_S)
        # The client may leave at any time.
        with connection, suppress(OSError):
            request = (read or read_request)(connection)
            if request:
                requests.append(request)
                handler(connection, request)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
    finally:
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """A request with its whole body; empty where the connection ends before."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65_536)):
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        line
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    missing = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while missing > 0 and (more := connection.recv(65_536)):
        data += more
        missing -= len(more)
    return data


def reset(connection: socket.socket) -> None:
    """Have the close of a connection be a reset instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
