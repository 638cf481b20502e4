"""`codex-py execpolicy check`: what files of rules say of a command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codex_py.execpolicy.decision import RuleMatch
from codex_py.execpolicy.rules import read_rules
from codex_py.frontends.arguments import CommandParser, UsageError
from codex_py.frontends.help import EXECPOLICY
from codex_py.frontends.streams import OutputStream, print_out
from codex_py.frontends.terminal import printable

_WITH_VALUE = {"-r", "--rules", "-c", "--config", "--enable", "--disable"}


def run_execpolicy(argv: Sequence[str]) -> int:
    """Do what the words after `execpolicy` ask for; the exit code.

    Raises:
        CodexError: the command line, or a file of rules, is not good.
    """
    if argv[:1] in (["-h"], ["--help"], ["help"]):
        return print_out(EXECPOLICY)
    if argv[:1] != ["check"]:
        raise UsageError("say what to do: codex-py execpolicy check --rules FILE -- COMMAND")
    start = _command_start(argv)
    options = _parser().parse_args(list(argv[1:start]))
    command = argv[start + 1 :] if argv[start : start + 1] == ["--"] else argv[start:]
    if options.help:
        return print_out(EXECPOLICY)
    if not options.rules:
        raise UsageError("say which rules: codex-py execpolicy check --rules FILE -- COMMAND")
    if not command:
        raise UsageError("say which command: codex-py execpolicy check --rules FILE -- COMMAND")
    rules = read_rules([Path(file) for file in options.rules])
    for warning in rules.warnings:
        OutputStream(2).write_text(f"Warning: {printable(warning)}\n")
    match = rules.decide(command, resolve_paths=options.resolve_host_executables)
    style: dict[str, Any] = {"indent": 2} if options.pretty else {"separators": (",", ":")}
    report = json.dumps(_report(match), ensure_ascii=False, **style)
    if printable(report) != report:
        report = json.dumps(_report(match), **style)
    return print_out(f"{report}\n")


def _parser() -> CommandParser:
    parser = CommandParser()
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-r", "--rules", action="append")
    parser.add_argument("--pretty", action="store_true")
    parser.add_argument("--resolve-host-executables", action="store_true")
    # Codex takes them for every command. None of them has to do with this one.
    parser.add_argument("-c", "--config", action="append")
    parser.add_argument("--enable", action="append")
    parser.add_argument("--disable", action="append")
    return parser


def _command_start(argv: Sequence[str]) -> int:
    """Where the command begins: at the first word that is no option of ours, or at `--`."""
    index = 1
    while index < len(argv) and argv[index].startswith("-") and argv[index] != "--":
        index += 2 if argv[index] in _WITH_VALUE else 1
    return min(index, len(argv))


def _report(match: RuleMatch | None) -> dict[str, Any]:
    """The object that Codex prints; a key without a value is left out."""
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
