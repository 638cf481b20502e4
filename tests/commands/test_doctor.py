"""Tests `commands/doctor/check.py`, `commands/doctor/doctor_command.py`,
`commands/doctor/machine.py` and `commands/doctor/setup.py`.
"""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from codex_py.commands.doctor.check import Check, CheckResult, reported
from codex_py.testing import Reply, ev_completed, ev_message
from tests.support.codex import CODEX, needs_codex
from tests.support.program import KEY, Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

SECRET = "sk-secret-of-the-test-123"


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.home.chmod(0o700)
    return place


def doctor(
    place: Workplace, *argv: str, env: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """The exit code and the checks by their id; no key may be printed."""
    variables = {"OPENAI_API_KEY": SECRET, **(env or {})}
    done = run_codex_py(["doctor", "--json", *argv], place.home, place.cwd, variables)
    assert done.stderr == b""
    for secret in (SECRET, KEY):
        assert secret.encode() not in done.stdout
    report = json.loads(done.stdout)
    statuses = {check["status"] for check in report["checks"].values()}
    assert report["overallStatus"] == next(
        s for s in ("fail", "warning", "ok") if s in statuses
    )
    assert done.returncode == (1 if "fail" in statuses else 0)
    return done.returncode, report["checks"]


def configure(place: Workplace, text: str) -> None:
    (place.home / "config.toml").write_text(text, encoding="utf-8")


def test_a_good_setup_has_nothing_to_do(place: Workplace) -> None:
    _, checks = doctor(place)
    for name in (
        "config.load",
        "auth.credentials",
        "mcp.config",
        "hooks.trust",
        "extensions.load",
        "state.paths",
    ):
        assert (checks[name]["status"], checks[name]["remediation"]) == ("ok", None), (
            checks[name]
        )
    key = checks["auth.credentials"]
    assert key["summary"] == "sk-se***123 from environment variable OPENAI_API_KEY"
    assert checks["sandbox.helpers"]["details"]["sandbox mode"] == "read-only"
    assert list(place.home.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "check", "status", "remedy"),
    [
        (
            "\n[extensions.nosuch]\n[extensions.other]\n",
            "extensions.load",
            "fail",
            "config.toml:2: no installed package has an extension 'nosuch'\n",
        ),
        (
            'modle = "x"\n',
            "config.load",
            "warning",
            "`modle` (line 1; did you mean `model`?)",
        ),
        ("model = \n", "config.load", "fail", "config.toml:1:9: "),
        (
            "[features]\ncredential_masking = true\n",
            "config.load",
            "fail",
            "--allow-unenforced",
        ),
        (
            'model_provider = "nope"\n',
            "auth.credentials",
            "fail",
            "Correct what the message names",
        ),
        (
            '[model_providers.x]\nname = "x"\nbase_url = "http://127.0.0.1:1"\nenv_key = "X_KEY"\n'
            '[mcp_servers.a]\nurl = "http://127.0.0.1:1"\nbearer_token_env_var = "T"\n',
            "mcp.config",
            "warning",
            "a: the variable T is not set.\n`codex-py mcp test a` says more.",
        ),
        (
            '[mcp_servers.a]\ncommand = "no-such-program"\nrequired = true\n',
            "mcp.config",
            "fail",
            "'no-such-program' cannot be found",
        ),
        (
            '[mcp_servers.a]\ncommand = "npx -y @scope/server /tmp"\n',
            "mcp.config",
            "warning",
            "in the list of its arguments",
        ),
        (
            '[[hooks.Stop]]\nhooks = [{type = "command", command = "true"}]\n',
            "hooks.trust",
            "warning",
            "/hooks",
        ),
        (
            "hooks.PreTolUse = []\n",
            "hooks.trust",
            "fail",
            "Correct what the message names",
        ),
        (
            'sandbox_mode = "danger-full-access"\n',
            "sandbox.helpers",
            "warning",
            "workspace-write",
        ),
    ],
)
def test_a_problem_has_a_remedy(
    place: Workplace, config: str, check: str, status: str, remedy: str
) -> None:
    configure(place, config)
    found = doctor(place)[1][check]
    assert found["status"] == status
    assert remedy in found["remediation"]


@pytest.mark.parametrize(
    ("env", "check", "status"),
    [
        ({"HTTPS_PROXY": "ftp://x"}, "network.env", "fail"),
        ({"SSL_CERT_FILE": "/nowhere"}, "network.env", "fail"),
        ({"HTTPS_PROXY": f"http://me:{SECRET}@127.0.0.1:1"}, "network.env", "ok"),
        ({"HTTPS_PROXY": f"me:{SECRET}@127.0.0.1:1"}, "network.env", "ok"),
        ({"OPENAI_API_KEY": ""}, "auth.credentials", "fail"),
        ({"PATH": "/nowhere"}, "git.environment", "warning"),
        ({"CODEX_HOME": "/nowhere"}, "config.load", "fail"),
    ],
)
def test_the_environment_is_checked(
    place: Workplace, env: dict[str, str], check: str, status: str
) -> None:
    assert doctor(place, env=env)[1][check]["status"] == status


def test_settings_without_effect_are_named_with_their_lines(place: Workplace) -> None:
    configure(place, 'model = "x"\npersonality = "friendly"\n')
    found = doctor(place)[1]["config.load"]
    line = f"personality ({place.home / 'config.toml'}:2)"
    assert (found["status"], found["details"]["settings without effect"]) == (
        "ok",
        [line],
    )


def test_damaged_sessions_and_an_open_login_are_told(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("Hi"), ev_completed()]]) as server:
        place.run(server)
    (path,) = (place.home / "sessions").rglob("*.jsonl")
    path.write_bytes(path.read_bytes() + b"{broken}\n{}\n")
    (place.home / "auth.json").write_text("{}", encoding="utf-8")
    (place.home / "auth.json").chmod(0o644)
    checks = doctor(place)[1]
    assert checks["state.sessions"]["status"] == "warning"
    told = f"{path} is resumed without its damaged lines: 2."
    assert checks["state.sessions"]["remediation"] == told
    assert (
        checks["state.paths"]["remediation"] == f"chmod 600 {place.home / 'auth.json'}"
    )


def test_the_provider_is_asked_only_if_wanted(place: Workplace) -> None:
    refusal = {"error": {"message": f"bad key {KEY}", "type": "invalid_request_error"}}
    replies = [
        [*ev_message("OK"), ev_completed()],
        Reply(status=401, body=json.dumps(refusal).encode()),
    ]
    with ScriptedServer(replies) as server:
        place.configure(server)
        reached = [
            doctor(place, *argv)[1]["network.provider_reachability"]["status"]
            for argv in ([], ["--provider"], ["--provider"])
        ]
        assert len(server.requests) == 2
    assert reached == ["ok", "ok", "fail"]


def test_the_report_is_read_by_people(place: Workplace) -> None:
    configure(place, 'modle = "x"\n')
    done = run_codex_py(
        ["doctor", "--all"], place.home, place.cwd, {"OPENAI_API_KEY": SECRET}
    )
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "warning  config        loaded, with a warning"
    assert lines[1].startswith("         Ignored an unknown setting in ")
    assert lines[-1].endswith("failed")
    assert SECRET not in done.stdout.decode()


def test_a_check_that_is_broken_is_a_failed_check() -> None:
    def broken() -> CheckResult:
        raise ZeroDivisionError("by zero")

    report = reported(Check("x", "x", broken))
    assert report["status"] == "fail"
    assert report["summary"] == "the check itself failed: ZeroDivisionError: by zero"


@needs_codex
def test_the_json_has_the_shape_of_codex(place: Workplace) -> None:
    done = subprocess.run(
        [str(CODEX), "doctor", "--json"],
        env=environment(place.home),
        cwd=place.cwd,
        capture_output=True,
        timeout=120,
        check=False,
    )
    theirs = json.loads(done.stdout)
    ours = json.loads(run_codex_py(["doctor", "--json"], place.home, place.cwd).stdout)
    assert ours.keys() == theirs.keys()
    shared = ours["checks"].keys() & theirs["checks"].keys()
    assert len(shared) >= 10
    for name in shared:
        assert ours["checks"][name].keys() == theirs["checks"][name].keys()
        assert ours["checks"][name]["category"] == theirs["checks"][name]["category"]


def test_a_folder_that_cannot_be_read_is_no_bug() -> None:
    def locked() -> CheckResult:
        raise PermissionError(13, "Permission denied", "/x")

    report = reported(Check("x", "x", locked))
    assert report["status"] == "fail"
    assert report["remediation"] == "Correct what the message names."
