"""What it costs to hold a command: one that does nothing, run in each way that works here, and as it is."""

import os
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.file_rules import NO_RULES, FileRules
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
        return found


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
        backend for backend in platform_backends(os.environ["PATH"]) if problem(backend) is None
    ]


def _held_ms(backend: Backend, folder: Path, rules: FileRules = NO_RULES) -> tuple[float, float]:
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
