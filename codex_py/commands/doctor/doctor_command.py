"""`codex-py doctor`: checks the setup and gives advice. The JSON has the format of Codex 0.171."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_py.app.user_programs import secret_names
from codex_py.command_line.parser import working_folder
from codex_py.command_line.subcommand import command_config, command_parser
from codex_py.commands.doctor.check import Check, CheckResult, reported
from codex_py.commands.doctor.machine import machine_checks
from codex_py.commands.doctor.setup import setup_checks
from codex_py.config.paths import codex_home, user_home
from codex_py.errors import ConfigError, ExitCode
from codex_py.streams.standard import print_out
from codex_py.streams.terminal import on_one_line
from codex_py.version import __version__

_OPTIONS = ("--json", "--provider", "--all", "--network-only")
_NO_EFFECT = ("--summary", "--no-color", "--ascii")
"""Options of Codex: the report is short, plain and ASCII anyway."""
_MARKS = {"ok": "ok     ", "warning": "warning", "fail": "FAILED "}
_COUNTED = {"ok": "ok", "warning": "warnings", "fail": "failed"}
_INDENT = " " * 9
_SHORTEST_SECRET = 8
_NETWORK = {
    "config.load",
    "auth.credentials",
    "network.env",
    "network.provider_reachability",
}


def run_doctor(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the report. Returns 1 if a check failed, else 0."""
    options = command_parser(*_OPTIONS, *_NO_EFFECT).parse_args(list(argv))
    secrets: Iterable[str] = ()
    try:
        config = command_config(options, environment, warns=False)
    except ConfigError as error:
        home = _home(environment)
        problem = CheckResult("fail", "it cannot be used", str(error))
        checks = [Check("config.load", "config", lambda: problem)]
    else:
        home = config.home
        checks = setup_checks(config, environment, asks_provider=options.provider)
        secrets = [environment.get(name, "") for name in secret_names(config)]
    checks += machine_checks(environment, home, working_folder("."))
    reports = [
        reported(each)
        for each in checks
        if not options.network_only or each.id in _NETWORK
    ]
    statuses = {report["status"] for report in reports}
    worst = next(status for status in ("fail", "warning", "ok") if status in statuses)
    if options.json:
        facts = {
            "schemaVersion": 1,
            "generatedAt": f"{time.time():.0f}s since unix epoch",
            "overallStatus": worst,
            "codexVersion": f"codex-py {__version__}",
            "checks": {report["id"]: report for report in reports},
        }
        text = json.dumps(facts, indent=2)
    else:
        text = _text(reports, options.all)
    for secret in secrets:
        # No check prints a secret, but messages of other programs may.
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return print_out(f"{text}\n") or (
        ExitCode.TURN_FAILED if worst == "fail" else ExitCode.DONE
    )


def _home(environment: Mapping[str, str]) -> Path:
    try:
        return codex_home(environment)
    except ConfigError:
        return user_home(environment)


def _text(reports: Sequence[Mapping[str, Any]], shows_details: bool) -> str:
    lines: list[str] = []
    for report in reports:
        summary = on_one_line(report["summary"])
        lines.append(f"{_MARKS[report['status']]}  {report['category']:<12}  {summary}")
        notes = (report["remediation"] or "").splitlines()
        if shows_details:
            for name, value in report["details"].items():
                values = [value] if isinstance(value, str) else value
                notes += [f"{name}: {each}" for each in values]
        lines += [f"{_INDENT}{on_one_line(note)}" for note in notes]
    counts = Counter(report["status"] for report in reports)
    count = ", ".join(f"{counts[status]} {name}" for status, name in _COUNTED.items())
    return "\n".join([*lines, "", count])
