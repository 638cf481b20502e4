import json
import re
from pathlib import Path

import pytest

from codex_py.commands.exit_codes import meanings, run_exit_codes
from codex_py.errors import ExitCode

EXEC = (Path(__file__).parents[2] / "docs" / "exec.md").read_text(encoding="utf-8")


def test_every_exit_code_has_a_meaning_and_the_documentation_has_the_same() -> None:
    assert set(ExitCode) <= meanings().keys()
    section = EXEC.partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", section, re.MULTILINE)
    assert [(int(code), text) for code, text in rows] == list(meanings().items())


def test_the_codes_are_printed_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_exit_codes(["--json"], {}) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {row["code"]: row["meaning"] for row in rows} == meanings()
