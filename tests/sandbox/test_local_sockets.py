"""Servers that a command starts itself: it reaches them, and none of the machine.

Tests `sandbox/child/local_sockets.py`.
"""

import os
import select
import shutil
import socket
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from tests.sandbox.local_backends import BACKENDS, run_in, workspace

PYTHON = os.path.realpath(sys.executable)
ISOLATED = [each for each in BACKENDS if each.name in {"namespaces", "bwrap", "views"}]
LOCAL = [each for each in BACKENDS if each.name == "namespaces"]
OTHERS = [each for each in BACKENDS if each not in ISOLATED]


def on_each(backends: list[Backend]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "backend", backends, ids=lambda backend: backend.name
    )


def python(
    backend: Backend, code: str, cwd: Path, policy: SandboxPolicy | None = None
) -> str:
    argv = [PYTHON, "-I", "-c", f"import os, socket, threading, time\n{code}"]
    return run_in(backend, argv, policy or workspace(cwd), cwd).stdout


@pytest.fixture
def service(tmp_path: Path) -> Generator[socket.socket]:
    """One of the machine, beside the workspace."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "service"))
        listening.listen()
        yield listening


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def is_reached(service: socket.socket) -> bool:
    return bool(select.select([service], [], [], 0.1)[0])


@on_each(ISOLATED)
def test_loopback_works_without_a_network(backend: Backend, work: Path) -> None:
    code = """
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    server = socket.create_server((host, 0), family=family)
    client = socket.create_connection(server.getsockname()[:2], 30)
    accepted, _ = server.accept()
    client.sendall(b"tcp")
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((host, 0))
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    sender.send(b"udp")
    print(accepted.recv(9), receiver.recv(9))
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    print(error.strerror)
"""
    printed = "b'tcp' b'udp'\n" * 2 + "Network is unreachable\n"
    assert python(backend, code, work) == printed


@on_each(ISOLATED)
def test_only_tcp_and_udp_are_there(backend: Backend, work: Path) -> None:
    code = """
internet = (2, 1, 132), (2, 2, 136), (2, 6, 0), (2, 5, 0), (2, 1, 262), (2, 3, 1), (10, 1, 132)
others = (16, 3, 0), (17, 3, 0), (40, 1, 0), (38, 5, 0), (1, 2, 0), (1, 3, 0)
for kind in (*internet, *others):
    try:
        socket.socket(*kind)
        print(kind)
    except OSError:
        pass
"""
    assert python(backend, code, work) == ""


_SERVE = """
server = socket.socket(socket.AF_UNIX)
server.bind({path!r})
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect({path!r})
accepted, _ = server.accept()
client.sendall(b"x")
print(accepted.recv(9))
"""


@on_each(LOCAL)
@pytest.mark.parametrize(
    "path", ["s", "./s", "sub/../s", "sub/s", "link/s", "absolute/s", "\0abstract"]
)
def test_local_sockets_of_the_command_work(
    backend: Backend, work: Path, path: str
) -> None:
    (work / "sub").mkdir()
    (work / "link").symlink_to("sub")
    (work / "absolute").symlink_to(work / "sub")
    for each in (path, path if path.startswith("\0") else f"{work}/{path}"):
        code = (
            _SERVE.format(path=each) + f"\nif {each!r}[0] != '\\0': os.unlink({each!r})"
        )
        assert python(backend, code, work) == "b'x'\n"


@on_each(LOCAL)
def test_local_sockets_are_as_without_a_sandbox(backend: Backend, work: Path) -> None:
    code = """
os.umask(0o077)
deep = "d" * 60
os.makedirs(f"{deep}/{deep}")
os.chdir(f"{deep}/{deep}")
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind("n" * 100)
print(oct(os.stat("n" * 100).st_mode), server.getsockname() == "n" * 100)
def attempt(act):
    try:
        return act()
    except OSError as error:
        return error.strerror
print(attempt(lambda: socket.socket(1).bind("n" * 100)))
print(attempt(lambda: socket.socket(1).connect("missing")))
open("file", "w").close()
print(attempt(lambda: socket.socket(1).connect("file")))
print(attempt(lambda: socket.socket(1, 5).connect("n" * 100)))
server.listen(1)
clients = [socket.socket(1, 5) for _ in range(8)]
threads = [threading.Thread(target=client.connect, args=("n" * 100,)) for client in clients]
for thread in threads:
    thread.start()
accepted = [server.accept()[0] for _ in clients]
for thread in threads:
    thread.join()
late = socket.socket(1, 5)
late.setblocking(False)
user = os.getuid().to_bytes(4, "little")
print(late.connect_ex("n" * 100), {a.getsockopt(1, 17, 12)[4:8] == user for a in accepted})
server.close()
print(attempt(lambda: socket.socket(1, 5).connect("n" * 100)))
"""
    assert python(backend, code, work).splitlines() == [
        "0o140700 True",
        "Address already in use",
        "No such file or directory",
        # Whatever is no socket of the command is refused.
        "Operation not permitted",
        "Connection refused",
        "0 {True}",
        "Connection refused",
    ]


@on_each(LOCAL)
@pytest.mark.parametrize(
    "code",
    [
        "from concurrent.futures import ProcessPoolExecutor as P; from multiprocessing import get_context as g\n"
        "print(P(2, g('forkserver')).submit(pow, 2, 3).result())",
        "from multiprocessing.managers import SyncManager\n"
        "m = SyncManager(); m.start(); q = m.Queue(); q.put(8); print(q.get())",
        "from multiprocessing.connection import Listener, Client\n"
        "l = Listener(family='AF_UNIX'); c = Client(l.address); a = l.accept(); c.send(8); print(a.recv())",
        "import asyncio\nasync def main():\n"
        "    async def serve(r, w): w.write(b'8\\n'); await w.drain(); w.close()\n"
        "    await asyncio.start_unix_server(serve, 's'); r, w = await asyncio.open_unix_connection('s')\n"
        "    print((await r.readline()).decode().strip())\nasyncio.run(main())",
        "import http.server, urllib.request\n"
        "class H(http.server.SimpleHTTPRequestHandler):\n    def log_message(self, *words): pass\n"
        "s = http.server.HTTPServer(('127.0.0.1', 0), H)\n"
        "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
        "print(8 if urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').status == 200 else 0)",
    ],
    ids=["forkserver", "manager", "connection", "asyncio", "http"],
)  # fmt: skip
def test_the_socket_calls_of_libraries_work(
    backend: Backend, work: Path, code: str
) -> None:
    policy = SandboxPolicy("workspace-write", (work,))
    assert python(backend, code, work, policy) == "8\n"


@on_each(LOCAL)
@pytest.mark.parametrize(
    ("program", "script"),
    [
        ("redis-server", "redis-server --port 0 --unixsocket r --save '' >/dev/null &"
                         " until redis-cli -s r ping; do :; done"),
        ("node", "node -e 'const n = require(\"net\"); n.createServer(s => s.end(\"PONG\")).listen(\"p\", () =>"
                 " n.connect(\"p\").on(\"data\", d => { console.log(String(d)); process.exit() }))'"),
    ],
)  # fmt: skip
def test_programs_with_local_sockets_work(
    backend: Backend, work: Path, program: str, script: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip("not here")
    done = run_in(backend, ["/bin/bash", "-c", script], workspace(work), work)
    assert done.stdout.splitlines()[-1:] == ["PONG"]


_WAYS = """
import ctypes
def attempt(act):
    try:
        act()
        print("REACHED")
    except OSError:
        pass
os.symlink("../service", "link")
paths = ["../service", "link", service, f"/dev/../{service}"]
paths += [f"/proc/self/root{service}", "/proc/self/cwd/../service", f"/proc/1/root{service}"]
try:
    os.link("../service", "hard")
    paths.append("hard")
except OSError:
    pass
for path in paths:
    for kind in (1, 5):
        attempt(lambda: socket.socket(1, kind).connect(path))
        attempt(lambda: print("SENT") if socket.socket(1, kind).sendto(b"x", path) else None)
    attempt(lambda: socket.socketpair(1, 2)[0].sendto(b"x", path))
"""


@on_each(BACKENDS)
def test_services_of_the_machine_are_not_reached(
    backend: Backend, work: Path, service: socket.socket
) -> None:
    code = f"service = {str(work.parent / 'service')!r}\n{_WAYS}"
    assert python(backend, code, work) == ""
    assert not is_reached(service)


@on_each(LOCAL)
def test_a_service_in_a_writable_folder_is_not_reached(
    backend: Backend, work: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(work / "service"))
        service.listen()
        code = """
def attempt(act):
    try:
        act()
        print("REACHED")
    except OSError as error:
        print(error.strerror)
attempt(lambda: socket.socket(1).connect("service"))
os.link("service", "hard")
attempt(lambda: socket.socket(1).connect("hard"))
own = socket.socket(1)
own.bind("own")
own.listen()
os.rename("own", "moved")
os.rename("service", "own")
attempt(lambda: socket.socket(1).connect("own"))
client = socket.socket(1)
client.connect("moved")
print("moved")
"""
        assert python(backend, code, work).splitlines() == [
            *["Operation not permitted"] * 3,
            "moved",
        ]
        assert not is_reached(service)


_RACE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
own = socket.socket(1)
own.bind("own")
own.listen(1000)
def address(path):
    return b"\\1\\0" + path + b"\\0" * (60 - len(path))
good, bad = address(b"own"), address(b"service")
shared = ctypes.create_string_buffer(good, len(good))
over = time.monotonic() + 3
os.symlink("own", "good"); os.symlink("service", "bad")
def flip_text():
    while time.monotonic() < over:
        ctypes.memmove(shared, bad, len(bad)); ctypes.memmove(shared, good, len(good))
def flip_link():
    n = 0
    while time.monotonic() < over:
        n += 1
        os.symlink(("own", "service")[n % 2], "next"); os.rename("next", "link")
def flip_bound():
    while time.monotonic() < over:
        s = socket.socket(1)
        try:
            s.bind("made")
        except OSError:
            pass
        try:
            os.rename("service", "made"); os.rename("made", "service")
        except OSError:
            pass
def flip_descriptor():
    inet = socket.socket(2, 1)
    local = socket.socket(1)
    spare = os.dup(local.fileno())
    while time.monotonic() < over:
        os.dup2(inet.fileno(), spare); os.dup2(local.fileno(), spare)
def use(path):
    while time.monotonic() < over:
        s = socket.socket(1); s.setblocking(False)
        s.connect_ex(path)
        s.close()
def use_shared():
    while time.monotonic() < over:
        s = socket.socket(1); s.setblocking(False)
        libc.connect(s.fileno(), shared, len(good))
        s.close()
def drain():
    own.settimeout(1)
    while time.monotonic() < over:
        try:
            own.accept()[0].close()
        except OSError:
            pass
works = [flip_text, flip_link, flip_bound, flip_descriptor, use_shared, drain]
works += [lambda: use("link"), lambda: use("made")]
threads = [threading.Thread(target=work) for work in works]
for thread in threads: thread.start()
for thread in threads: thread.join()
if not os.path.exists("service"): os.rename("made", "service")
print("end")
"""


@on_each(LOCAL)
def test_no_race_reaches_a_service(backend: Backend, work: Path) -> None:
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(work / "service"))
        service.listen()
        assert python(backend, _RACE, work) == "end\n"
        assert not is_reached(service)


@on_each(LOCAL)
def test_a_socket_is_made_only_where_the_command_may_write(
    backend: Backend, work: Path
) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (work / ".git").mkdir()
    (work / "link").symlink_to(outside)
    code = f"""
for path in "../s", "../outside/s", "link/s", ".git/s", {str(outside)!r} + "/s", "/proc/self/root{outside}/s", "/s":
    try:
        socket.socket(1).bind(path)
        print(path)
    except OSError:
        pass
"""
    assert python(backend, code, work) == ""
    assert sorted(os.listdir(outside)) == []
    assert not (work.parent / "s").exists()


@on_each([*OTHERS, *(each for each in ISOLATED if each not in LOCAL)])
def test_elsewhere_local_sockets_are_pairs_alone(backend: Backend, work: Path) -> None:
    code = """
a, b = socket.socketpair()
a.send(b"x")
print(b.recv(1))
try:
    socket.socket(1)
except OSError as error:
    print(error.strerror)
"""
    printed = python(backend, code, work)
    assert printed == "b'x'\nOperation not permitted\n"


@on_each(LOCAL)
def test_thousands_of_sockets_come_and_go(backend: Backend, work: Path) -> None:
    code = """
for n in range(1500):
    s = socket.socket(1)
    s.bind("s")
    s.listen()
    c = socket.socket(1)
    c.connect("s")
    os.unlink("s")
print("end")
"""
    assert python(backend, code, work) == "end\n"
