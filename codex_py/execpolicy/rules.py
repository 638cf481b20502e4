"""Reads `.rules` files.

    prefix_rule(
        pattern = ["git", ["push", "fetch"]],    # words; a list holds alternatives
        decision = "prompt",                     # allow (the default), prompt, forbidden
        justification = "talks to the server",
        match = ["git push origin"],             # tried when the file is loaded
        not_match = [["git", "status"]],
    )
    host_executable(name = "git", paths = ["/usr/bin/git"])

Source: the README of Codex's `execpolicy` crate, and how Codex 0.169 reads such files.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_py.errors import ConfigError
from codex_py.execpolicy.decision import CommandRules, Decision, PrefixRule
from codex_py.execpolicy.starlark import Argument, Call, Value, kind, read_calls
from codex_py.execpolicy.words import Command

_NO_RULES = CommandRules()
_PROTOCOLS = [
    "http",
    "https",
    "https_connect",
    "http-connect",
    "socks5_tcp",
    "socks5_udp",
]


def parse_rules(
    text: str,
    source: str,
    base: CommandRules = _NO_RULES,
) -> CommandRules:
    """Parse the rules of one file and add them to those of `base`; errors call the file `source`.

    Raises:
        ConfigError: `Error loading rules: FILE:LINE:COLUMN: …`, and what is expected there. Also
            raised if an example does not match as the file says.
    """
    calls = read_calls(text, source)
    executables = dict(base.host_executables)
    warnings = list(base.warnings)
    for call in calls:
        match call.name:
            case "prefix_rule":
                # Wait with rules: their examples need the executables of the whole file.
                continue
            case "host_executable":
                name, paths = _host_executable(call)
                executables[name] = paths
            case "network_rule":
                warnings.append(_network_rule(call))
            case _:
                expected = "prefix_rule, host_executable or network_rule"
                raise call.position.error(
                    f"unknown rule {call.name!r}; expected {expected}"
                )
    added = (
        _prefix_rule(call, executables) for call in calls if call.name == "prefix_rule"
    )
    return CommandRules((*base.prefix_rules, *added), executables, tuple(warnings))


def read_rules(files: Sequence[Path]) -> CommandRules:
    """Read the rules of these files, in this order.

    Raises:
        ConfigError: see `parse_rules`; or a file cannot be read.
    """
    rules = _NO_RULES
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(file, error) from error
        rules = parse_rules(text, str(file), rules)
    return rules


def load_rules(folders: Sequence[Path]) -> CommandRules:
    """Read all `*.rules` files of the folders, sorted by name within each. A folder may be missing.

    Raises:
        ConfigError: see `read_rules`.
    """
    files: list[Path] = []
    for folder in folders:
        try:
            entries = sorted(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _unreadable(folder, error) from error
        files += [
            entry for entry in entries if entry.suffix == ".rules" and entry.is_file()
        ]
    return read_rules(files)


def required_rules(
    tables: Sequence[Mapping[str, Any]], base: CommandRules
) -> CommandRules:
    """Check the rules in the tables of `requirements.toml`, and add them to those of `base`."""
    added = [
        PrefixRule(
            tuple(
                tuple(word.get("any_of", [word.get("token")]))
                for word in table["pattern"]
            ),
            Decision(table["decision"]),
            table.get("justification"),
        )
        for table in tables
    ]
    return replace(base, prefix_rules=(*base.prefix_rules, *added))


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigError:
    if isinstance(error, OSError):
        reason = error.strerror
    else:
        reason = "not UTF-8"
    return ConfigError(f"Error loading rules: {path}: {reason}")


def _prefix_rule(call: Call, executables: Mapping[str, tuple[str, ...]]) -> PrefixRule:
    """A rule, checked against its examples. `executables`: see `CommandRules.host_executables`."""
    names = ("pattern", "decision", "match", "not_match", "justification")
    arguments = call.arguments(names, required=["pattern"])
    pattern = arguments["pattern"]
    words = tuple(_alternatives(word, pattern) for word in pattern.elements())
    if not words:
        raise pattern.error("must not be empty")
    decision = arguments.get("decision")
    justification = arguments.get("justification")
    rule = PrefixRule(
        words,
        Decision.ALLOW if decision is None else _decision(decision),
        None if justification is None else justification.text(),
    )
    # An example is only about words. `allow` would not cover paths that are unknown here.
    rules = CommandRules((replace(rule, decision=Decision.PROMPT),), executables)
    for name, wrong in (("not_match", "matches"), ("match", "does not match")):
        examples = arguments.get(name)
        if examples is None:
            continue
        for command in [_example(value, examples) for value in examples.elements()]:
            if bool(rules.matches(command)) is not (name == "match"):
                raise examples.position.error(
                    f"this rule {wrong} {' '.join(command)!r}, which is in its `{name}`"
                )
    return rule


def _host_executable(call: Call) -> tuple[str, tuple[str, ...]]:
    """The bare name of a program, and the absolute paths at which it is this program."""
    arguments = call.arguments(("name", "paths"), required=["name", "paths"])
    name = arguments["name"].text()
    if "/" in name or name in {".", ".."}:
        raise arguments["name"].error(f"expected a name without a folder, not {name!r}")
    paths: list[str] = []
    listed = arguments["paths"]
    for value in listed.elements():
        if not isinstance(value, str):
            raise listed.error(f"expected strings, not {kind(value)}")
        path = os.path.normpath(os.path.expanduser(value))  # noqa: PTH111
        if not path.startswith("/"):
            raise listed.error(f"expected absolute paths, not {value!r}")
        if path.rpartition("/")[2] != name:
            raise listed.error(f"{value!r} does not end in {name!r}")
        paths.append(path)
    return name, tuple(paths)


def _network_rule(call: Call) -> str:
    """A warning that the rule has no effect: commands reach the network without a proxy."""
    names = ("host", "protocol", "decision", "justification")
    arguments = call.arguments(names, required=names[:3])
    texts = {name: argument.text() for name, argument in arguments.items()}
    host = texts["host"]
    if any(character in host for character in "*/?#") or len(host.split()) != 1:
        raise arguments["host"].error(
            f"expected one host name or address, not {host!r}"
        )
    if texts["protocol"] not in _PROTOCOLS:
        raise arguments["protocol"].error(
            "expected http, https, socks5_tcp or socks5_udp"
        )
    if texts["decision"] != "deny":
        _decision(arguments["decision"])
    return f"{call.position.source}:{call.position.line}: network_rule for {host!r} has no effect"


def _decision(argument: Argument) -> Decision:
    value = argument.text()
    if value not in list(Decision):
        raise argument.error(f"expected one of {', '.join(Decision)}, not {value!r}")
    return Decision(value)


def _alternatives(value: Value, pattern: Argument) -> tuple[str, ...]:
    alternatives = value if isinstance(value, list) else [value]
    if not alternatives:
        raise pattern.error("alternatives must not be empty")
    words: list[str] = []
    for word in alternatives:
        if not isinstance(word, str):
            raise pattern.error(f"expected words or lists of words, not {kind(word)}")
        words.append(word)
    return tuple(words)


def _example(value: Value, examples: Argument) -> Command:
    if isinstance(value, str):
        try:
            listed = shlex.split(value)
        except ValueError as error:
            raise examples.error(
                f"{value!r} is no shell command: {str(error).lower()}"
            ) from None
    else:
        listed = value if isinstance(value, list) else [value]
    words = tuple(word for word in listed if isinstance(word, str))
    if len(words) < len(listed):
        raise examples.error("expected commands, as strings or lists of words")
    if not words:
        raise examples.error("an example must not be empty")
    return words
