"""What it costs to hold a command: one that does nothing, run in each way that works here, and as it is."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.network_report import NetworkReport
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox, platform_backends, problem
from scripts.benchmarks.agent import Agent, fresh_place
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_MS = 1_000
HIDING = {"namespaces", "bwrap", "views"}


def sandbox(server: BenchmarkServer, agent: Agent) -> Sample:  # noqa: ARG001
    """Of the checkout, without an agent around it. They take turns within a sample."""
    with fresh_place("") as place:
        plain = _wall_ms(["true"], place.repository)
        found: Sample = {}
        for backend in _backends():
            before, held = _held_ms(backend, place.repository)
            found[f"sandbox, {backend.name}"] = held - plain
            if backend.name in HIDING:
                rules = _denials(place.repository)
                denying = sum(_held_ms(backend, place.repository, rules))
                found[f"denials, {backend.name}"] = denying - before - held
                found[f"proxy, {backend.name}"] = _proxied_ms(backend, place.repository)
        return found


_REQUESTS = 200
_ASK = """
import socket, sys, time
port, url, times = int(sys.argv[1]), sys.argv[2], []
for _ in range(int(sys.argv[3])):
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(f"GET {url} HTTP/1.1\\r\\nHost: 127.0.0.1:{sys.argv[4]}\\r\\n\\r\\n".encode())
        s.recv(1024)
    times.append(time.perf_counter() - began)
print(sorted(times)[len(times) // 2] * 1000)
"""
_ANSWER = """
import socket
with socket.create_server(("127.0.0.1", 0)) as s:
    print(s.getsockname()[1], flush=True)
    while True:
        with s.accept()[0] as c:
            c.recv(1024)
            c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
"""


def _proxied_ms(backend: Backend, folder: Path) -> float:
    """What a request takes longer through the proxy than without, in the median."""
    confined = PlatformSandbox(
        dict(os.environ), backends=[backend], network=NetworkReport()
    )
    domains = DomainRules(("127.0.0.1",))
    policy = SandboxPolicy(
        "workspace-write", (folder,), network_access=True, domains=domains
    )
    argv = [sys.executable, "-c", _ANSWER]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, encoding="ascii"
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()

        def took_ms(at: str, url: str, *, is_held: bool) -> float:
            ask = [sys.executable, "-c", _ASK, at, url, str(_REQUESTS), port]
            command = confined.command(ask, policy, folder) if is_held else ask
            return float(subprocess.check_output(command, cwd=folder))

        try:
            direct = took_ms(port, "/", is_held=False)
            return took_ms("28128", f"http://127.0.0.1:{port}/", is_held=True) - direct
        finally:
            server.kill()
            confined.release()


def _denials(folder: Path) -> FileRules:
    """Twenty: paths, half of which are there, and patterns."""
    for number in range(10):
        (folder / f"denied-{number}").write_text("", encoding="ascii")
    paths = [folder / f"denied-{number}" for number in range(18)]
    globs = ((folder, "**/.env*"), (folder, "*.pem"))
    return FileRules(tuple((path, "deny") for path in paths), globs)


@cache
def _backends() -> list[Backend]:
    return [
        backend
        for backend in platform_backends(os.environ["PATH"])
        if problem(backend) is None
    ]


def _held_ms(
    backend: Backend, folder: Path, rules: FileRules = NO_RULES
) -> tuple[float, float]:
    """The time until the command line is there, and that of the command."""
    confined = PlatformSandbox(dict(os.environ), backends=[backend])
    # Whatever else lies in the machine's temporary folder is no part of it.
    policy = SandboxPolicy(
        "workspace-write",
        (folder,),
        exclude_slash_tmp=True,
        exclude_tmpdir_env_var=True,
        files=rules,
    )
    try:
        # The first command finds its backend, and lists the folders.
        confined.command(["true"], policy, folder)
        started_s = time.monotonic()
        command = confined.command(["true"], policy, folder)
        return (time.monotonic() - started_s) * _MS, _wall_ms(command, folder)
    finally:
        confined.release()


def _wall_ms(command: Sequence[str], folder: Path) -> float:
    started_s = time.monotonic()
    subprocess.run(command, cwd=folder, check=True)
    return (time.monotonic() - started_s) * _MS
