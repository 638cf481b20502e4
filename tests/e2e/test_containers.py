"""The real program where a container leaves little to hold commands with."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.sandbox.local_backends import BACKENDS
from tests.support.containers import NOBODY, can_become, in_container
from tests.support.program import Outcome, Workplace, environment, jsonl
from tests.support.server import ScriptedServer

PYTHON = os.path.realpath(sys.executable)
WORK = f"""set -e
export PYTHONDONTWRITEBYTECODE= GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
git status --short && git diff --stat
touch new && mkdir -p build/lib && cp -p code.py build/lib && rm -r build && mv new newer
sed -i s/1/2/ code.py && chmod +x code.py && {PYTHON} -m unittest -q && ls
! git commit -qam second && ! mkdir .codex && ! touch /var/tmp/outside && ! chmod 700 /var/tmp
"""
_HAS_SETPRIV = shutil.which("setpriv") is not None and os.geteuid() == 0


def container(*needs: bool, **kinds: Any) -> Any:
    backend = "landlock" if kinds.get("asking") is False else "supervised"
    there = backend in {r.name for r in BACKENDS} and all(needs)
    skip = pytest.mark.skipif(not there, reason="cannot be had on this machine")
    return pytest.param(kinds, marks=skip, id=", ".join(kinds) or "docker")


@pytest.fixture
def repository(place: Workplace) -> Path:
    for name, text in {
        "code.py": "ONE = 1\n",
        "test_code.py": "import code, unittest\nclass T(unittest.TestCase):\n def test(self): pass\n",
    }.items():
        (place.cwd / name).write_text(text, encoding="ascii")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=place.cwd, check=True)
    (place.cwd / "code.py").write_text("ONE = 1  # one\n", encoding="ascii")
    return place.cwd


def run(place: Workplace, script: str, kinds: Mapping[str, Any]) -> Outcome:
    calls = [*ev_function_call("c1", "exec_command", {"cmd": script}), ev_completed()]
    with ScriptedServer([calls, [*ev_message("done"), ev_completed()]]) as server:
        place.configure(server)
        if (user := kinds.get("user")) is not None:
            for path in (place.home.parent, *place.home.parent.rglob("*")):
                os.chown(path, user, user, follow_symlinks=False)
            for folder in place.home.parent.parents:
                is_temporary = folder.is_relative_to(tempfile.gettempdir())
                if is_temporary and not folder.stat().st_mode & 0o001:
                    folder.chmod(0o755)
        program = [
            sys.executable,
            "-m",
            "codex_py",
            "exec",
            "--json",
            "-s",
            "workspace-write",
        ]
        done = subprocess.run(
            in_container([*program, "--skip-git-repo-check", "go"], **kinds),
            cwd=place.cwd,
            env={**environment(place.home), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    return Outcome(done.returncode, jsonl(done.stdout), done.stderr.decode())


@pytest.mark.parametrize(
    "kinds",
    [
        container(),
        container(_HAS_SETPRIV, capabilities=False),
        container(can_become(NOBODY), user=NOBODY),
    ],
)
def test_ordinary_work_is_done(
    place: Workplace, repository: Path, kinds: Mapping[str, Any]
) -> None:
    outcome = run(place, WORK, kinds)
    (command, message) = outcome.items
    assert (outcome.code, command["exit_code"], message["text"]) == (0, 0, "done"), (
        command
    )
    assert sorted(path.name for path in repository.iterdir()) == [
        *(".git", "__pycache__", "code.py", "newer", "test_code.py"),
    ]
    assert (repository / "code.py").read_text(encoding="ascii") == "ONE = 2  # one\n"


@pytest.mark.parametrize(
    "kinds",
    [
        container(asking=False),
        container(_HAS_SETPRIV, asking=False, capabilities=False),
    ],
)
def test_files_are_changed_where_nobody_can_be_asked(
    place: Workplace, repository: Path, kinds: Mapping[str, Any]
) -> None:
    outcome = run(place, "echo more >>code.py && ! touch /var/tmp/outside", kinds)
    assert (outcome.code, outcome.items[0]["exit_code"]) == (0, 0), outcome.items
    assert (repository / "code.py").read_text(encoding="ascii").endswith("more\n")


@pytest.mark.skipif(
    sys.platform != "linux", reason="system calls of Linux are taken away"
)
def test_without_any_way_to_hold_it_no_command_runs(place: Workplace) -> None:
    outcome = run(place, "echo ran >ran", {"landlock": False})
    assert outcome.code == 6, outcome.err
    text = str(outcome.events)
    assert "commands cannot be confined on this machine (namespaces: " in text
    assert "; only `-s danger-full-access` would run them" in text
    assert outcome.types[-1] == "turn.completed"
    assert list(place.cwd.iterdir()) == []
