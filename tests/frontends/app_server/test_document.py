"""The conversation and the program of `docs/app-server.md` happen as the page shows them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from codex_py.testing import call
from tests.support.app_server import AppServer, Message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

_ROOT = Path(__file__).parent.parent.parent.parent
_PAGE = (_ROOT / "docs" / "app-server.md").read_text(encoding="utf-8")
_PROGRAM_S = 60


class _Ids:
    """The values of the words in capitals, from the first message that has them on."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def put_into(self, shown: Any) -> Any:
        text = json.dumps(shown)
        for word, value in self._values.items():
            text = text.replace(f'"{word}"', json.dumps(value))
        return json.loads(text)

    def fits(self, shown: Any, real: Any) -> bool:
        """True if everything that is shown is in the real message."""
        found: dict[str, Any] = {}
        if not _fits(self.put_into(shown), real, found):
            return False
        self._values |= found
        return True


def _fits(shown: Any, real: Any, found: dict[str, Any]) -> bool:
    if isinstance(shown, str) and shown.isupper():
        return found.setdefault(shown, real) == real
    if not isinstance(shown, dict):
        return shown == real
    if not isinstance(real, dict):
        return False
    members = cast("Mapping[str, Any]", shown)
    fields = cast("Mapping[str, Any]", real)
    return all(
        name in fields and _fits(value, fields[name], found)
        for name, value in members.items()
    )


def _block(language: str, number: int) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
    return blocks[number]


def test_the_conversation_happens_as_the_page_shows_it(place: Workplace) -> None:
    escalated = {"sandbox_permissions": "require_escalated", "justification": "why"}
    script = [
        call("exec_command", cmd="touch notes.txt", **escalated),
        "I made notes.txt.",
    ]
    shown = _block("text", 0)
    shown = shown.replace("/home/me/project", str(place.cwd))
    shown = shown.replace("/home/me/.codex", str(place.home))
    ids = _Ids()
    with ScriptedServer(script) as model:
        place.configure(model)
        server = AppServer(place.home, place.cwd)
        server.answer = None
        for line in shown.splitlines():
            side, _, text = line.partition(" ")
            message: Message = json.loads(text)
            if side == ">":
                server.write(ids.put_into(message))
            else:
                server.until(lambda real, message=message: ids.fits(message, real))
        assert server.leave() == 0
    assert (place.cwd / "notes.txt").exists()


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    program = tmp_path / "codex-py"
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m codex_py "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    variables = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(_ROOT),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", _block("python", 1)],
        cwd=folder,
        env=variables,
        capture_output=True,
        timeout=_PROGRAM_S,
        check=False,
    )
    assert (done.stderr.decode(), done.stdout.decode()) == ("", "It is empty. 0\n")
    assert "It prints `It is empty. 0`." in _PAGE
