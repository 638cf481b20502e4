"""The released Codex, where it is installed."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Workplace, environment


def _program() -> str | None:
    """What `CODEX_BINARY` names. In place of the script that npm installs, the program that it starts: Node reads
    arguments as UTF-8, and passes other bytes on changed."""
    named = os.environ.get("CODEX_BINARY")
    if named is None:
        return None
    script = Path(named).resolve()
    beside = script.parents[2] if script.suffix == ".js" else script
    return next(
        (str(path) for path in beside.glob("codex-*/vendor/*/bin/codex")), named
    )


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
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def hooks_of_codex(environment: Mapping[str, str], cwd: Path) -> list[dict[str, Any]]:
    """The hooks that Codex finds in a folder, and what it thinks of each."""
    (answer,) = ask_app_server(environment, cwd, ("hooks/list", {"cwds": [str(cwd)]}))
    return answer["data"][0]["hooks"]


def ask_app_server(
    environment: Mapping[str, str], cwd: Path, *questions: tuple[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """The results of these methods with their parameters, one after another, by an `app-server` of Codex."""
    answers = answers_of_app_server(environment, cwd, *questions)
    for answer in answers:
        assert "result" in answer, answer
    return [answer["result"] for answer in answers]


def answers_of_app_server(
    environment: Mapping[str, str], cwd: Path, *questions: tuple[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """As `ask_app_server`, but the whole answers, which may be errors."""
    assert CODEX is not None
    about = {
        "clientInfo": {"name": "x", "version": "1"},
        "capabilities": {"experimentalApi": True},
    }
    asked = [("initialize", about), *questions]
    found: list[dict[str, Any]] = []
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
            for number, (method, params) in enumerate(asked):
                request = {"id": number, "method": method, "params": params}
                program.stdin.write(json.dumps(request).encode() + b"\n")
                program.stdin.flush()
                answers = map(json.loads, program.stdout)
                found.append(next(each for each in answers if each.get("id") == number))
        finally:
            program.kill()
    return found[1:]
