import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = '''
import atexit
import threading
from codex_py import Agent
from codex_py.testing import FakeModel, call

def stock(part: str) -> int:
    """How many are there?"""
    return 7

agent = Agent(FakeModel({script}), {arguments})
print(agent.run_sync("How many bolts?").text)

def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")

def begin_shutdown():
    threading.Thread.start = refuse

# What was registered last runs first: from now on no thread can be started, as in Python 3.12.1.
atexit.register(begin_shutdown)
'''


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ('call("stock", part="bolts"), "There are 7."', "tools=[stock]"),
        (
            'call("exec_command", cmd="true", sandbox_permissions="require_escalated"), "There are 7."',
            'approve=lambda request: True, sandbox="workspace-write"',
        ),
        ('"There are 7."', ""),
    ],
    ids=["tool", "approver", "answer"],
)
def test_an_agent_of_a_module_ends_with_the_program(
    tmp_path: Path, script: str, arguments: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        _PROGRAM.format(script=script, arguments=arguments), encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "There are 7.\n"), done.stderr
    assert done.stderr == ""
