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
    """Parse the rules of one file, and add them to those of `base`.

    Args:
        source: the name of the file, for errors.

    Raises:
        ConfigError: the text is not as expected, or an example does not match as the file says.
            The message is `Error loading rules: FILE:LINE:COLUMN: …`.
    """
    calls = read_calls(text, source)
    executables = dict(base.host_executables)
    warnings = list(base.warnings)
    for call in calls:
        match call.name:
            case "prefix_rule":
                # Read below: the examples of rules need the executables of the whole file.
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
    added = [
        _prefix_rule(call, executables) for call in calls if call.name == "prefix_rule"
    ]
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
    """Make rules of the checked tables of `requirements.toml`, and add them to those of `base`.

    In a pattern, each word is a table with either `token`, or the list `any_of`.
    """
    rules = list(base.prefix_rules)
    for table in tables:
        pattern: list[tuple[str, ...]] = []
        for word in table["pattern"]:
            if "any_of" in word:
                pattern.append(tuple(word["any_of"]))
            else:
                pattern.append((word.get("token"),))
        decision = Decision(table["decision"])
        rules.append(PrefixRule(tuple(pattern), decision, table.get("justification")))
    return replace(base, prefix_rules=tuple(rules))


def forbidding(
    tables: Sequence[Mapping[str, Any]], command: Sequence[str]
) -> str | None:
    """The reason why rules of `requirements.toml` forbid a command; None if they do not.

    `tables`: see `required_rules`.
    """
    found = required_rules(tables, CommandRules()).decide(command)
    if found is None or found.decision is not Decision.FORBIDDEN:
        return None
    deciding = found.deciding
    words = " ".join(deciding.prefix)
    return deciding.justification or f"it starts with `{words}`"


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigError:
    if isinstance(error, OSError):
        reason = error.strerror
    else:
        reason = "not UTF-8"
    return ConfigError(f"Error loading rules: {path}: {reason}")


def _prefix_rule(call: Call, executables: Mapping[str, tuple[str, ...]]) -> PrefixRule:
    """Make a rule, and check it against its examples.

    Args:
        executables: see `CommandRules.host_executables`.
    """
    names = ("pattern", "decision", "match", "not_match", "justification")
    arguments = call.arguments(names, required=["pattern"])
    pattern = arguments["pattern"]
    words = tuple(_alternatives(word, pattern) for word in pattern.elements())
    if not words:
        raise pattern.error("must not be empty")
    decision = Decision.ALLOW
    if "decision" in arguments:
        decision = _decision(arguments["decision"])
    justification = None
    if "justification" in arguments:
        justification = arguments["justification"].text()
    # An example is only about words. `allow` would not cover paths that are unknown here.
    words_only = PrefixRule(words, Decision.PROMPT, justification)
    rules = CommandRules((words_only,), executables)
    if "not_match" in arguments:
        _check_examples(arguments["not_match"], rules, should_match=False)
    if "match" in arguments:
        _check_examples(arguments["match"], rules, should_match=True)
    return PrefixRule(words, decision, justification)


def _check_examples(
    examples: Argument, rules: CommandRules, *, should_match: bool
) -> None:
    """Check that the rules cover each of the examples, or none of them.

    Raises:
        ConfigError: an example is not a command, or matches otherwise.
    """
    commands = [_example(value, examples) for value in examples.elements()]
    for command in commands:
        is_match = bool(rules.matches(command))
        if is_match is should_match:
            continue
        if is_match:
            fault = "matches"
        else:
            fault = "does not match"
        raise examples.position.error(
            f"this rule {fault} {' '.join(command)!r}, which is in its `{examples.name}`"
        )


def _host_executable(call: Call) -> tuple[str, tuple[str, ...]]:
    """The bare name of a program, and the absolute paths at which it is this program."""
    arguments = call.arguments(("name", "paths"), required=["name", "paths"])
    name = arguments["name"].text()
    if "/" in name or name in {".", ".."}:
        raise arguments["name"].error(f"expected a name without a folder, not {name!r}")
    listed = arguments["paths"]
    paths = [_executable_path(value, name, listed) for value in listed.elements()]
    return name, tuple(paths)


def _executable_path(value: Value, name: str, listed: Argument) -> str:
    """One of the listed paths, normalised: an absolute path that ends in the program's name."""
    if not isinstance(value, str):
        raise listed.error(f"expected strings, not {kind(value)}")
    path = os.path.normpath(os.path.expanduser(value))  # noqa: PTH111
    if not path.startswith("/"):
        raise listed.error(f"expected absolute paths, not {value!r}")
    if path.rpartition("/")[2] != name:
        raise listed.error(f"{value!r} does not end in {name!r}")
    return path


def _network_rule(call: Call) -> str:
    """Check a rule about the network; returns a warning that it has no effect.

    Codex would apply it in a proxy; here, commands reach the network without one.
    """
    names = ("host", "protocol", "decision", "justification")
    arguments = call.arguments(names, required=names[:3])
    texts = {name: argument.text() for name, argument in arguments.items()}
    host = texts["host"]
    has_pattern = any(character in host for character in "*/?#")
    is_one_word = len(host.split()) == 1
    if has_pattern or not is_one_word:
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
    """The alternatives for one word of a pattern, which is a word or a list of words."""
    if not isinstance(value, list):
        value = [value]
    if not value:
        raise pattern.error("alternatives must not be empty")
    words: list[str] = []
    for word in value:
        if not isinstance(word, str):
            raise pattern.error(f"expected words or lists of words, not {kind(word)}")
        words.append(word)
    return tuple(words)


def _example(value: Value, examples: Argument) -> Command:
    """The words of one example, which is a shell command or a list of words."""
    listed: Sequence[Value]
    if isinstance(value, str):
        try:
            listed = shlex.split(value)
        except ValueError as error:
            raise examples.error(
                f"{value!r} is no shell command: {str(error).lower()}"
            ) from None
    elif isinstance(value, list):
        listed = value
    else:
        listed = [value]
    words = tuple(word for word in listed if isinstance(word, str))
    if len(words) < len(listed):
        raise examples.error("expected commands, as strings or lists of words")
    if not words:
        raise examples.error("an example must not be empty")
    return words
