"""A network of the test's own, in which loopback addresses look public. Takes root."""

import contextlib
import ctypes
import http.server
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Generator, Mapping
from pathlib import Path

_NEW_MOUNTS, _NEW_NETWORK = 1 << 17, 1 << 30
_OWN_FOLDERS = 1 << 9
_libc = ctypes.CDLL(None, use_errno=True)

ALLOWED, OTHER, PRIVATE = "93.184.216.34", "93.184.216.35", "10.9.8.7"
HOSTS = {
    "localhost": "127.0.0.1",
    "allowed.test": ALLOWED,
    "sub.allowed.test": ALLOWED,
    "denied.allowed.test": ALLOWED,
    "other.test": OTHER,
    "private.test": PRIVATE,
    "rebound.allowed.test": "127.0.0.1",
}


def can_have_a_network() -> bool:
    return os.geteuid() == 0 and shutil.which("ip") is not None


@contextlib.contextmanager
def public_network(folder: Path, hosts: Mapping[str, str] = HOSTS) -> Generator[None]:
    """This thread, and what it starts, are in a network of their own; `hosts` are its names."""
    spaces = [
        os.open(f"/proc/thread-self/ns/{name}", os.O_RDONLY) for name in ("mnt", "net")
    ]
    cwd = Path.cwd()
    try:
        _checked(_libc.unshare(_NEW_MOUNTS | _NEW_NETWORK))
        names = folder / "hosts"
        names.write_text(
            "".join(f"{address} {name}\n" for name, address in hosts.items()),
            encoding="ascii",
        )
        for command in (
            "mount --make-rprivate /",
            f"mount --bind {names} /etc/hosts",
            "ip link set lo up",
            *(
                f"ip address add {address}/32 dev lo"
                for address in (ALLOWED, OTHER, PRIVATE)
            ),
        ):
            subprocess.run(command.split(), check=True)
        yield
    finally:
        # A thread that still serves has its root and folder from this one, which could not leave the mounts then.
        _checked(_libc.unshare(_OWN_FOLDERS))
        for space in spaces:
            _checked(_libc.setns(space, 0))
            os.close(space)
        os.chdir(cwd)


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "no namespace")


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path:
            case "/redirect":
                self.send_response(302)
                self.send_header("Location", "http://other.test/")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case "/" | "/echo":
                size = int(self.headers.get("Content-Length", 0))
                said = f"{self.command} {self.headers['Host']} {len(self.rfile.read(size))}\n"
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said.encode())
            case _:
                super().do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def web_server(
    folder: Path, port: int, certificate: Path | None = None
) -> Generator[None]:
    """Serves the folder, and `/echo` and `/redirect`, at every address of the network."""

    def handler(*args: object) -> _Handler:
        return _Handler(*args, directory=str(folder))  # pyright: ignore[reportArgumentType]

    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
