import asyncio
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from codex_py.config.environment import (
    ShellEnvironmentPolicy,
    environment_after_profile,
)
from codex_py.process.sessions import ProcessSessions
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.shell.snapshot import LoginShell, ShellSnapshot
from tests.sandbox.local_backends import BACKENDS, workspace

BASH = "/bin/bash"


def login_shell(home: Path, sandbox: PlatformSandbox) -> LoginShell:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    merge = partial(environment_after_profile, ShellEnvironmentPolicy(), ())

    def confine(argv: Sequence[str]) -> Sequence[str]:
        return sandbox.command(argv, workspace(home / "work"), home)

    return LoginShell(BASH, environment, merge, confine, home, {})


@pytest.mark.parametrize(
    "backend", BACKENDS, ids=[backend.name for backend in BACKENDS]
)
def test_every_backend_lets_it_through(backend: Backend, tmp_path: Path) -> None:
    """Also what does not fit into one variable."""
    functions = "\n".join(f"f{n}() {{ echo 'ä{'x' * 1000} {n}'; }}" for n in range(300))
    (tmp_path / ".profile").write_text(functions, "utf-8")
    (tmp_path / "work").mkdir()
    sandbox = PlatformSandbox({}, backends=[backend])
    shell = login_shell(tmp_path, sandbox)

    async def main() -> str:
        sessions = ProcessSessions()
        try:
            snapshot = await shell.snapshot([BASH, "-lc", ""])
            assert snapshot is not None
            assert len(snapshot.pieces) > 1
            script = f"{snapshot.command}; f0; f299; env | wc -c"
            process = sessions.spawn(
                shell.confine([BASH, "-c", script]),
                cwd=tmp_path,
                environment=shell.merge(snapshot.exported, shell.environment)
                | snapshot.pieces,
            )
            await process.finished.wait()
            return process.all_output().text()
        finally:
            await shell.aclose()
            await sessions.aclose()
            sandbox.release()

    first, second, bytes_ = asyncio.run(main()).splitlines()
    assert (first, second) == (f"ä{'x' * 1000} 0", f"ä{'x' * 1000} 299")
    assert int(bytes_) < 1000


def test_commands_at_once_wait_for_one_profile(tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text("echo ran >>~/runs; sleep 0.2", "ascii")
    (tmp_path / "work").mkdir()
    shell = login_shell(tmp_path, PlatformSandbox({}, backends=[]))
    shell.confine = list

    async def main() -> None:
        try:
            found = await asyncio.gather(
                *(shell.snapshot([BASH, "-lc", str(n)]) for n in range(5))
            )
            assert len({id(snapshot) for snapshot in found}) == 1
            assert found[0] is not None
            for other in (
                [BASH, "-c", "x"],
                [BASH, "-lc", "x", "name"],
                ["/repo/bash", "-lc", "x"],
            ):
                assert await shell.snapshot(other) is None
        finally:
            await shell.aclose()

    asyncio.run(main())
    assert (tmp_path / "runs").read_text("ascii") == "ran\n"


@pytest.mark.parametrize("name", ["zsh", "dash"])
@pytest.mark.parametrize(
    "text", ["two() { echo 2; }", "ONE=1", "alias two='echo 2'", "set -f", "umask 027"]
)
def test_another_shell_runs_a_profile_that_does_more_than_export(
    tmp_path: Path, name: str, text: str
) -> None:
    exports = "export TWO=2; echo noise; echo noise >&2\n"
    taken = snapshot_of(name, tmp_path, exports)
    assert taken is not None
    assert taken.exported["TWO"] == "2"
    assert snapshot_of(name, tmp_path, exports + text) is None


def snapshot_of(name: str, home: Path, text: str) -> ShellSnapshot | None:
    if (path := shutil.which(name)) is None:
        pytest.skip(f"{name} is not installed")
    for file in (".profile", ".zprofile"):
        (home / file).write_text(text, "utf-8")
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    merge = partial(environment_after_profile, ShellEnvironmentPolicy(), ())
    shell = LoginShell(path, environment, merge, lambda argv: argv, home, {})

    async def main() -> ShellSnapshot | None:
        try:
            return await shell.snapshot([path, "-lc", ""])
        finally:
            await shell.aclose()

    return asyncio.run(main())
