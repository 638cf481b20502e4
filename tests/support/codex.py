"""The released Codex, where it is installed."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Workplace, environment


def _program() -> str | None:
    """What `CODEX_BINARY` names. In place of the script that npm installs, the program that it starts: Node reads arguments
    as UTF-8, and passes other bytes on changed."""
    named = os.environ.get("CODEX_BINARY")
    if named is None:
        return None
    script = Path(named).resolve()
    beside = script.parents[2] if script.suffix == ".js" else script
    return next((str(path) for path in beside.glob("codex-*/vendor/*/bin/codex")), named)


CODEX = _program()
needs_codex = pytest.mark.skipif(CODEX is None, reason="CODEX_BINARY names no Codex")


def codex_resumes(place: Workplace, thread_id: str, prompt: str) -> None:
    """Have Codex resume a session with this prompt."""
    assert CODEX is not None
    done = subprocess.run(
        [CODEX, "exec", "--skip-git-repo-check", "resume", thread_id, prompt],
        cwd=place.cwd,
        env={**environment(place.home), "HOME": str(place.home.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def hooks_of_codex(environment: Mapping[str, str], cwd: Path) -> list[dict[str, Any]]:
    """The hooks that Codex finds in a folder, and what it thinks of each."""
    assert CODEX is not None
    requests: Sequence[dict[str, Any]] = (
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "x", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "hooks/list", "params": {"cwds": [str(cwd)]}},
    )
    with subprocess.Popen(
        [CODEX, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
        cwd=cwd,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            program.stdin.write(b"".join(json.dumps(r).encode() + b"\n" for r in requests))
            program.stdin.flush()
            for line in program.stdout:
                answer = json.loads(line)
                if answer.get("id") == 1:
                    return answer["result"]["data"][0]["hooks"]
        finally:
            program.kill()
    raise AssertionError("Codex did not answer")
