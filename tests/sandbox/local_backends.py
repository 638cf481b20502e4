"""The ways to hold a command that work on the machine of the tests."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox, platform_backends, problem
from codex_py.sandbox.layout import Layout

BACKENDS = [
    backend
    for backend in platform_backends(os.environ["PATH"])
    if problem(backend) is None
]
_DEADLINE_S = 120.0


class Unconfined:
    name = "none"

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        return list(argv)


def workspace(*roots: Path) -> SandboxPolicy:
    """Only these folders can be written to; no temporary ones."""
    return SandboxPolicy(
        "workspace-write", roots, exclude_slash_tmp=True, exclude_tmpdir_env_var=True
    )


def run_in(
    backend: Backend,
    argv: Sequence[str],
    policy: SandboxPolicy,
    cwd: Path,
    environment: dict[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; both outputs are one."""
    variables = {**os.environ, **(environment or {})}
    sandbox = PlatformSandbox(variables, backends=[backend])
    try:
        return subprocess.run(
            sandbox.command(argv, policy, cwd),
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=_DEADLINE_S,
            pass_fds=pass_fds,
        )
    finally:
        sandbox.release()
