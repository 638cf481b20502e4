"""The real program on a machine where an administrator requires something. Its `/etc` is one of the test's own."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
READ_ONLY = 'allowed_sandbox_modes = ["read-only"]\n'
Confine = Callable[[str], list[str]]


@pytest.fixture
def require(tmp_path: Path) -> Confine:
    """The words before a program so that it finds this text in `/etc/codex/requirements.toml`."""
    etc = tmp_path / "etc"
    (etc / "codex").mkdir(parents=True)
    for name in ("passwd", "group", "ld.so.cache"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), etc)
    script = f'mount --bind {shlex.quote(str(etc))} /etc && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("no namespace of mounts can be made here")

    def confine(text: str) -> list[str]:
        (etc / "codex" / "requirements.toml").write_text(text, encoding="utf-8")
        return words

    return confine


def run(
    place: Workplace, confined: list[str], *args: str, answers: list[Any]
) -> tuple[int, str, str, ScriptedServer]:
    with ScriptedServer(answers) as server:
        place.configure(server)
        done = run_codex_py(args, place.home, place.cwd, confined=confined, real=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode(), server


def calls(command: str, **more: Any) -> list[Any]:
    return [*ev_function_call("c1", "exec_command", {"cmd": command, **more}), ev_completed()]


@pytest.mark.parametrize(
    "flags",
    [
        ["--dangerously-bypass-approvals-and-sandbox"],
        ["-s", "danger-full-access"],
        ["-c", 'sandbox_mode="danger-full-access"'],
        ["-c", 'default_permissions=":danger-full-access"'],
        ["--dangerously-bypass-approvals-and-sandbox", "--ignore-user-config", "--ignore-rules"],
    ],
)
def test_no_option_gets_full_access(place: Workplace, require: Confine, flags: list[str]) -> None:
    confined = require(READ_ONLY)
    command = ["exec", "--skip-git-repo-check", *flags, "go"]
    code, out, err, server = run(place, confined, *command, answers=[DONE])
    assert (code, out, server.requests) == (78, "", [])
    assert "requirements do not allow `sandbox_mode" in err


@pytest.mark.parametrize(
    "flags", [["-s", "workspace-write"], ["--full-auto"], ["-c", 'sandbox_mode="workspace-write"']]
)
def test_a_run_falls_back_to_reading_and_says_so(
    place: Workplace, require: Confine, flags: list[str]
) -> None:
    confined = require(READ_ONLY)
    command = ["exec", "--json", "--skip-git-repo-check", *flags, "go"]
    code, out, err, _ = run(place, confined, *command, answers=[calls("touch made"), DONE])
    assert (code, (place.cwd / "made").exists()) == (0, False), err
    items = [json.loads(line).get("item", {}) for line in out.splitlines()]
    (warning,) = [item["message"] for item in items if item.get("type") == "error"]
    assert "falling back to required value `read-only`" in warning
    assert "(set by /etc/codex/requirements.toml)" in warning


def test_a_mode_of_the_sandbox_command_is_held_too(place: Workplace, require: Confine) -> None:
    confined = require(READ_ONLY)
    command = ["sandbox", "danger-full-access", "--", "touch", "made"]
    _, _, err, _ = run(place, confined, *command, answers=[])
    assert not (place.cwd / "made").exists()
    assert "falling back to required value `read-only`" in err


def test_a_required_rule_holds_where_rules_are_ignored(place: Workplace, require: Confine) -> None:
    rule = '{ pattern = [{token = "touch"}], decision = "forbidden", justification = "not here" }'
    confined = require(f"[rules]\nprefix_rules = [{rule}]\n")
    command = ["exec", "--skip-git-repo-check", "--ignore-rules", "-s", "danger-full-access", "go"]
    _, _, _, server = run(place, confined, *command, answers=[calls("touch made"), DONE])
    assert not (place.cwd / "made").exists()
    assert "not here" in server.requests[-1].raw.decode()


def test_required_instructions_reach_the_model(place: Workplace, require: Confine) -> None:
    confined = require('additional_developer_instructions = "Speak softly."')
    _, _, _, server = run(place, confined, "exec", "--skip-git-repo-check", "go", answers=[DONE])
    assert "Speak softly." in server.requests[0].raw.decode()


def test_explain_and_doctor_name_the_file(place: Workplace, require: Confine) -> None:
    confined = require(READ_ONLY)
    command = ["config", "explain", "sandbox_mode", "-s", "workspace-write"]
    code, out, err, _ = run(place, confined, *command, answers=[])
    assert code == 0, err
    assert "from requirements config /etc/codex/requirements.toml" in out
    _, out, _, _ = run(place, confined, "doctor", "--all", answers=[])
    assert "/etc/codex/requirements.toml" in out


def test_a_mistake_in_the_file_stops_every_command(place: Workplace, require: Confine) -> None:
    confined = require("nonsense = 1\n")
    for command in (["exec", "--skip-git-repo-check", "go"], ["sandbox", "true"]):
        code, _, err, _ = run(place, confined, *command, answers=[])
        assert code == 78
        assert "/etc/codex/requirements.toml:1: `nonsense` is unknown" in err
