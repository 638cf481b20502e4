import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import codex_py
from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.child.seccomp import filter_program
from codex_py.sandbox.choice import PlatformSandbox, problem
from codex_py.sandbox.layout import Layout, own_paths
from tests.sandbox.local_backends import BACKENDS, run_in
from tests.support.containers import in_container


@dataclass
class FakeBackend:
    """Runs `start` instead of the command, and counts how often it was asked."""

    name: str
    start: list[str] | None
    asked: list[list[str]] = field(default_factory=list[list[str]])

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        self.asked.append(list(argv))
        return self.start


def test_the_first_that_works_is_found_once(tmp_path: Path) -> None:
    broken = FakeBackend("broken", ["sh", "-c", "echo 'x: not here' >&2; exit 1"])
    missing = FakeBackend("missing", None)
    good, last = FakeBackend("good", ["true"]), FakeBackend("last", ["true"])
    sandbox = PlatformSandbox({}, backends=[broken, missing, good, last])
    assert broken.asked == []
    for _ in range(2):
        assert sandbox.command(["ls"], SandboxPolicy(), tmp_path) == ["true"]
    assert [len(backend.asked) for backend in (broken, missing, good, last)] == [
        1,
        1,
        3,
        0,
    ]
    assert sandbox.unavailable is None


def test_without_any_that_works_nothing_runs(tmp_path: Path) -> None:
    broken = FakeBackend("broken", ["sh", "-c", "echo 'x: not here' >&2; exit 1"])
    sandbox = PlatformSandbox({}, backends=[broken, FakeBackend("missing", None)])
    with pytest.raises(ToolError):
        sandbox.command(["ls"], SandboxPolicy(), tmp_path)
    with pytest.raises(ToolError) as caught:
        sandbox.command(["ls"], SandboxPolicy(), tmp_path)
    assert caught.value.code == "SandboxUnavailable"
    assert sandbox.unavailable == str(caught.value)
    assert sandbox.unavailable == (
        "commands cannot be confined on this machine (broken: not here; missing: not there);"
        " only `-s danger-full-access` would run them"
    )
    assert len(broken.asked) == 1


def test_the_findings_of_a_probe_are_shared_by_sandboxes(tmp_path: Path) -> None:
    broken = FakeBackend("broken", ["sh", "-c", "echo 'x: not here' >&2; exit 1"])
    good = FakeBackend("good", ["true"])
    problems: dict[str, str | None] = {}
    for _ in range(2):
        sandbox = PlatformSandbox({}, backends=[broken, good], problems=problems)
        sandbox.command(["ls"], SandboxPolicy(), tmp_path)
        assert sandbox.warning is None
    assert problems == {"broken": "not here", "good": None}
    assert len(broken.asked) == 1


def test_no_weaker_backend_is_taken_without_a_word_when_one_is_silent(
    tmp_path: Path,
) -> None:
    silent, good = FakeBackend("silent", ["sleep", "60"]), FakeBackend("good", ["true"])
    sandbox = PlatformSandbox({}, backends=[silent, good])
    sandbox.command(["ls"], SandboxPolicy(), tmp_path)
    assert sandbox.warning == (
        "Commands are confined by the sandbox backend 'good', which may hold less than 'silent':"
        " no answer within 10 s when that was tried."
    )


def test_a_refusal_to_notify_a_supervisor_is_known_by_its_error() -> None:
    if "supervised" not in {backend.name for backend in BACKENDS}:
        pytest.skip("it does not work here anyway")
    code = (
        "from codex_py.sandbox.choice import platform_backends, problem\n"
        "print([problem(r) for r in platform_backends('') if r.name == 'supervised'])"
    )
    done = subprocess.run(
        in_container([sys.executable, "-c", code], asking=False),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == b"['Operation not permitted']\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "bwrap: Creating new namespace failed: Operation not permitted",
            "Operation not permitted",
        ),
        (
            "OSError: [Errno 30] Read-only file system: '/proc/self/mem'",
            "Read-only file system: '/proc/self/mem'",
        ),
        (
            "PermissionError: [Errno 13] Permission denied: '/a: b'",
            "Permission denied: '/a: b'",
        ),
        ("no colon", "no colon"),
    ],
)
def test_a_bare_path_is_no_reason(line: str, reason: str) -> None:
    script = f"cat >&2 <<'END'\n{line}\nEND\nexit 1"
    assert problem(FakeBackend("broken", ["sh", "-c", script])) == reason


def test_full_access_asks_nothing(tmp_path: Path) -> None:
    backend = FakeBackend("good", ["true"])
    sandbox = PlatformSandbox({}, backends=[backend])
    policy = SandboxPolicy("danger-full-access")
    assert sandbox.command(["ls"], policy, tmp_path) == ["ls"]
    assert backend.asked == []


def test_the_folders_of_our_own_modules_are_known(tmp_path: Path) -> None:
    for module in (pytest, codex_py, subprocess):
        file = Path(module.__file__ or "").resolve()
        assert any(file.is_relative_to(path.resolve()) for path in own_paths())


def test_a_machine_with_other_system_calls_has_no_filter() -> None:
    assert filter_program("s390x", offline=True) is None


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_a_filter_is_whole_and_short_enough(machine: str) -> None:
    program = filter_program(
        machine, offline=True, guard_truncate=True, backend="supervised"
    )
    assert program is not None
    assert len(program) % 8 == 0
    # The most that the kernel takes.
    assert len(program) // 8 < 4096
    jumps = [(n, *program[8 * n + 2 : 8 * n + 4]) for n in range(len(program) // 8)]
    ends = [n + 1 + max(yes, no) for n, yes, no in jumps if yes or no]
    assert max(ends) < len(program) // 8


@pytest.mark.parametrize(
    "backend", [r for r in BACKENDS if r.name == "namespaces"], ids=["namespaces"]
)
def test_the_whole_disk_can_be_the_workspace(
    backend: FakeBackend, tmp_path: Path
) -> None:
    policy = SandboxPolicy("workspace-write", (Path("/"),))
    done = run_in(
        backend, ["/bin/sh", "-c", "echo x >new; ls -d /.codex"], policy, tmp_path
    )
    if os.access("/", os.W_OK):
        assert (done.returncode, done.stdout) == (0, "/.codex\n")
    assert (tmp_path / "new").exists()
    assert not os.path.lexists("/.codex")
