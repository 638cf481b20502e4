"""The tutorial is done as it is written: each of its commands runs, in order, in a terminal, and a test is fixed.

The model is scripted. `pipx` is a stand-in that installs this checkout, as the tests have no network.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from codex_py.testing import RecordedRequest, call
from codex_py.testing.script import Script
from tests.support.documents import DOCS, ROOT, blocks, reader_environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

PAGE: Final = DOCS / "tutorial.md"
_FIX: Final = "sed -i 's/a - b/a + b/' calc.py"
_NEW_TEST: Final = (
    r"""\n    def test_negative(self):\n        self.assertEqual(add(-1, -2), -3)\n"""
)
_TESTS: Final = """\
import unittest
from calc import add

class Sum(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)
"""
_PIPX: Final = """\
#!/bin/sh
test "$*" = "install ." && test -f pyproject.toml && mv "$HOME/not-installed" "$HOME/bin/codex-py"
"""


def answer(request: RecordedRequest) -> Script:
    """A model that claims to be done before it is, once."""
    last = request.input[-1]
    if last["type"] != "message":
        return "It is done."
    said = last["content"][-1]["text"]
    if said.startswith("Run the tests."):
        return call("exec_command", cmd="python3 -m unittest -q")
    if said.startswith(("Fix the failing test.", "This run is not accepted")):
        return call("exec_command", cmd=_FIX)
    if said.startswith("Add a test"):
        return call("exec_command", cmd=f"printf '{_NEW_TEST}' >> test_calc.py")
    return "It is done."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a test that fails."""
    folder = tmp_path / "home" / "src" / "project"
    folder.mkdir(parents=True)
    (folder / "calc.py").write_text(
        "def add(a, b):\n    return a - b\n", encoding="utf-8"
    )
    (folder / "test_calc.py").write_text(_TESTS, encoding="utf-8")
    for command in (
        "init -q",
        "config user.name a",
        "config user.email a@example.com",
        "add .",
        "commit -qm First",
    ):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    return folder


def environment(tmp_path: Path, server: ScriptedServer) -> dict[str, str]:
    """The environment of a reader who has `pipx`, and no `codex-py` yet."""
    variables = reader_environment(tmp_path)
    home = tmp_path / "home"
    (home / "bin").mkdir()
    (tmp_path / "bin" / "codex-py").rename(home / "not-installed")
    pipx = home / "bin" / "pipx"
    pipx.write_text(_PIPX, encoding="utf-8")
    pipx.chmod(0o755)
    return {
        **variables,
        "PATH": f"{home / 'bin'}{os.pathsep}{variables['PATH']}",
        "OPENAI_BASE_URL": server.base_url,
        "GIT_PAGER": "cat",
        "TERM": "xterm-256color",
    }


@pytest.mark.timeout(240)
def test_the_tutorial_fixes_a_failing_test(tmp_path: Path, project: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    script = "".join(blocks("sh", page)).replace("…", "sk-test")
    assert script.endswith("codex-py resume --last\n")
    with ScriptedServer([answer] * 20) as server:
        variables = environment(tmp_path, server)
        shell = ["bash", "-exc", script]
        with PtyProgram(shell, ROOT, variables, columns=100, rows=40) as terminal:
            terminal.wait_for("Do you trust", timeout_s=120)
            terminal.wait_for_question("Do you trust")
            terminal.press("enter")
            terminal.wait_until(lambda: "Do you trust" not in terminal.text)
            terminal.wait_for("? keys")
            terminal.type("/quit")
            terminal.press("enter")
            assert terminal.wait() == 0, "\n".join(terminal.scrollback)
            shown = "\n".join(terminal.scrollback)
    assert server.violations == []
    tests = ["python3", "-m", "unittest", "-v"]
    done = subprocess.run(tests, cwd=project, capture_output=True, check=False)
    assert re.search(rb"Ran 2 tests.*OK", done.stderr, re.DOTALL)
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=project, capture_output=True, check=True
    )
    assert log.stdout == b"Fix the sum\nFirst\n"
    assert "FAILED (failures=1)" in shown
    assert "Not accepted yet, so the model goes on" in shown
