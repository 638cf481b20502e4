"""Names of files that are not ASCII, on systems that know nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_custom_tool_call, ev_message
from tests.support.patching import enveloped
from tests.support.program import Outcome, Workplace, environment, jsonl
from tests.support.server import ScriptedServer

ASCII_ONLY = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""What a system is told that really wants it: Python takes `LC_ALL=C` alone for UTF-8."""
PATCH = enveloped("*** Add File: dß/ü", "+ö")
DIFF = "diff --git a/é b/è\nrename from é\nrename to è\n--- a/é\n+++ b/è\n@@ -1 +1 @@\n-1\n+2\n"

# With a word of its own, the interpreter stays as it is, as it does for a program that uses the library.
COMMANDS = pytest.mark.parametrize(
    "python",
    [[sys.executable], [sys.executable, "-X", "utf8=0"]],
    ids=["program", "library"],
)


def run(
    python: list[str], tmp_path: Path, *argv: str, stdin: str = ""
) -> subprocess.CompletedProcess[bytes]:
    work, home = tmp_path / "wörk", tmp_path / "höme"
    work.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [*python, "-m", "codex_py", *argv],
        cwd=work,
        env=environment(home, ASCII_ONLY),
        input=stdin.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )


@COMMANDS
def test_a_patch_may_name_any_file(tmp_path: Path, python: list[str]) -> None:
    work = tmp_path / "wörk"
    added = run(python, tmp_path, "apply", stdin=PATCH)
    assert (added.returncode, added.stdout.decode()) == (
        0,
        "Success. Updated the following files:\nA dß/ü\n",
    )
    assert (work / "dß" / "ü").read_text(encoding="utf-8") == "ö\n"
    (work / "é").write_text("1\n", encoding="utf-8")
    assert run(python, tmp_path, "apply", stdin=DIFF).returncode == 0
    assert (work / "è").read_text(encoding="utf-8") == "2\n"
    for _ in range(2):
        assert run(python, tmp_path, "undo").returncode == 0
    assert {path.name for path in work.rglob("*")} == {"é"}


def test_names_are_told_as_they_are(tmp_path: Path) -> None:
    done = run([sys.executable], tmp_path, "apply", "--json", stdin=PATCH)
    assert json.loads(done.stdout)["files"] == [
        {"path": f"{tmp_path}/wörk/dß/ü", "kind": "add"}
    ]
    missing = run([sys.executable], tmp_path, "apply", "-C", "nicht/dä")
    assert "nicht/dä" in missing.stderr.decode()


def test_a_session_goes_by_the_same_names(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "höme", tmp_path / "wörk")
    place.home.mkdir()
    calls = ev_custom_tool_call("c", "apply_patch", PATCH)
    with ScriptedServer(
        [[*calls, ev_completed()], [*ev_message("ja ü"), ev_completed()]]
    ) as server:
        place.configure(server)
        done = run(
            [sys.executable],
            tmp_path,
            *(
                "exec",
                "--json",
                "--skip-git-repo-check",
                "-s",
                "danger-full-access",
                "grüß",
            ),
        )
        assert str(place.cwd) in server.requests[0].raw.decode()
        assert "grüß" in server.requests[0].raw.decode()
    outcome = Outcome(done.returncode, jsonl(done.stdout), done.stderr.decode())
    assert (outcome.code, outcome.messages) == (0, ["ja ü"])
    assert outcome.items[0]["changes"] == [{"path": f"{place.cwd}/dß/ü", "kind": "add"}]
