"""What it costs to hold a command: one that does nothing, run in each way that works here, and as it is."""

import os
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox, platform_backends, problem
from scripts.benchmarks.agent import Agent, fresh_place
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_MS = 1_000


def sandbox(server: BenchmarkServer, agent: Agent) -> Sample:  # noqa: ARG001
    """Of the checkout, without an agent around it. They take turns within a sample."""
    with fresh_place("") as place:
        plain = _wall_ms(["true"], place.repository)
        return {f"sandbox, {r.name}": _held_ms(r, place.repository) - plain for r in _backends()}


@cache
def _backends() -> list[Backend]:
    return [
        backend for backend in platform_backends(os.environ["PATH"]) if problem(backend) is None
    ]


def _held_ms(backend: Backend, folder: Path) -> float:
    confined = PlatformSandbox(dict(os.environ), backends=[backend])
    # Whatever else lies in the machine's temporary folder is no part of it.
    policy = SandboxPolicy(
        "workspace-write", (folder,), exclude_slash_tmp=True, exclude_tmpdir_env_var=True
    )
    try:
        return _wall_ms(confined.command(["true"], policy, folder), folder)
    finally:
        confined.release()


def _wall_ms(command: Sequence[str], folder: Path) -> float:
    started_s = time.monotonic()
    subprocess.run(command, cwd=folder, check=True)
    return (time.monotonic() - started_s) * _MS
