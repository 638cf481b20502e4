"""`codex-py config explain` prints where a setting comes from; `execpolicy check` prints what rules
decide about a command."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import config_sources
from codex_py.command_line.subcommand import command_parser
from codex_py.config.explain import explain
from codex_py.config.layers import read_layers
from codex_py.config.paths import codex_home
from codex_py.config.requirements import required
from codex_py.errors import UsageError
from codex_py.execpolicy.decision import RuleMatch
from codex_py.execpolicy.rules import read_rules
from codex_py.streams.standard import print_out, tell
from codex_py.streams.terminal import printable

_CHECK_USAGE = "codex-py execpolicy check --rules FILE -- COMMAND"


def run_config(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Print where a setting comes from. Returns the exit code."""
    words = arguments.words[1:]
    if len(words) != 2 or words[0] != "explain":
        home = codex_home(environment)
        raise UsageError(
            "say which setting: codex-py config explain KEY. No command changes a setting:"
            f" write `KEY = VALUE` into {home / 'config.toml'}, or pass -c KEY=VALUE"
        )
    layers, requirements = required(
        read_layers(**config_sources(arguments, environment))
    )
    text = explain(words[1], layers, requirements.file)
    return print_out(f"{text}\n")


def run_check(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the decision of the rules about a command. Returns the exit code."""
    # The parser also accepts `-c` and the like, as Codex does for every command. They have no effect
    # here.
    parser = command_parser("--pretty", "--resolve-host-executables")
    parser.add_argument("-r", "--rules", action="append")
    options, command = parser.parse_before_command(argv)
    if not options.rules:
        raise UsageError(f"say which rules: {_CHECK_USAGE}")
    if not command:
        raise UsageError(f"say which command: {_CHECK_USAGE}")
    rules = read_rules([Path(file) for file in options.rules])
    for warning in rules.warnings:
        tell(f"Warning: {warning}")
    match = rules.decide(command, resolve_paths=options.resolve_host_executables)
    report = _report(match)
    text = _encoded(report, pretty=options.pretty, ensure_ascii=False)
    if printable(text) != text:
        # A character could change the state of the terminal, so escape all but ASCII.
        text = _encoded(report, pretty=options.pretty, ensure_ascii=True)
    return print_out(f"{text}\n")


def _encoded(
    report: dict[str, Any],
    *,
    pretty: bool,
    ensure_ascii: bool,
) -> str:
    if pretty:
        return json.dumps(report, indent=2, ensure_ascii=ensure_ascii)
    return json.dumps(report, separators=(",", ":"), ensure_ascii=ensure_ascii)


def _report(match: RuleMatch | None) -> dict[str, Any]:
    """Make the object that Codex prints. Keys without a value are left out."""
    report: dict[str, Any] = {"matchedRules": []}
    if match is None:
        return report
    for rule in match.matched:
        fields = {
            "matchedPrefix": rule.prefix,
            "decision": rule.decision,
            "resolvedProgram": rule.resolved_program,
            "justification": rule.justification,
        }
        found = {name: value for name, value in fields.items() if value is not None}
        report["matchedRules"].append({"prefixRuleMatch": found})
    return report | {"decision": match.decision}
