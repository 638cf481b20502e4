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
from codex_py.commands.doctor.check import Check, CheckResult, Details, reported
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
"""Shorter values of variables with keys are not hidden: they could be a part of any word."""
_NETWORK = {
    "config.load",
    "auth.credentials",
    "network.env",
    "network.provider_reachability",
}
"""The checks that `--network-only` runs, by id."""


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
    if options.network_only:
        checks = [check for check in checks if check.id in _NETWORK]
    reports = [reported(check) for check in checks]
    if options.json:
        text = _json(reports)
    else:
        text = _text(reports, options.all)
    for secret in secrets:
        # No check prints a secret, but messages of other programs may.
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    code = print_out(f"{text}\n")
    if code == ExitCode.DONE and _worst_status(reports) == "fail":
        return ExitCode.TURN_FAILED
    return code


def _home(environment: Mapping[str, str]) -> Path:
    """The folder `$CODEX_HOME`; if it cannot be used, the home of the user."""
    try:
        return codex_home(environment)
    except ConfigError:
        return user_home(environment)


def _worst_status(reports: Sequence[Mapping[str, Any]]) -> str:
    statuses = {report["status"] for report in reports}
    for status in ("fail", "warning"):
        if status in statuses:
            return status
    return "ok"


def _json(reports: Sequence[Mapping[str, Any]]) -> str:
    facts = {
        "schemaVersion": 1,
        "generatedAt": f"{time.time():.0f}s since unix epoch",
        "overallStatus": _worst_status(reports),
        "codexVersion": f"codex-py {__version__}",
        "checks": {report["id"]: report for report in reports},
    }
    return json.dumps(facts, indent=2)


def _text(reports: Sequence[Mapping[str, Any]], shows_details: bool) -> str:
    """Write a line for each report, with its advice under it, and a line with the counts."""
    lines: list[str] = []
    for report in reports:
        mark = _MARKS[report["status"]]
        summary = on_one_line(report["summary"])
        lines.append(f"{mark}  {report['category']:<12}  {summary}")
        notes = (report["remediation"] or "").splitlines()
        if shows_details:
            notes += _detail_lines(report["details"])
        lines += [f"{_INDENT}{on_one_line(note)}" for note in notes]
    counts = Counter(report["status"] for report in reports)
    totals = [f"{counts[status]} {name}" for status, name in _COUNTED.items()]
    return "\n".join([*lines, "", ", ".join(totals)])


def _detail_lines(details: Details) -> list[str]:
    lines: list[str] = []
    for name, value in details.items():
        values = [value] if isinstance(value, str) else value
        lines += [f"{name}: {each}" for each in values]
    return lines
