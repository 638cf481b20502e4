"""Turns the calls of a `.rules` file into rules, and checks their arguments."""

import os.path
import shlex
from collections.abc import Mapping
from dataclasses import replace

from codex_py.execpolicy.decision import Decision, PrefixRule, Rules
from codex_py.execpolicy.starlark import Argument, Call, Value, kind
from codex_py.execpolicy.words import Command

_PROTOCOLS = ["http", "https", "https_connect", "http-connect", "socks5_tcp", "socks5_udp"]


def prefix_rule(call: Call, executables: Mapping[str, tuple[str, ...]]) -> PrefixRule:
    """A rule that covers its examples. `executables`: see `Rules.host_executables`.

    Raises:
        ConfigError: an argument is missing, unknown or not what it should be, or the rule does not cover an
            example as it should.
    """
    names = ("pattern", "decision", "match", "not_match", "justification")
    arguments = call.arguments(names, required=["pattern"])
    pattern = arguments["pattern"]
    words = tuple(_alternatives(word, pattern) for word in pattern.elements())
    if not words:
        raise pattern.error("must not be empty")
    decision, justification = arguments.get("decision"), arguments.get("justification")
    rule = PrefixRule(
        words,
        Decision.ALLOW if decision is None else _decision(decision),
        None if justification is None else justification.text(),
    )
    # An example is about the words alone: `allow` would not cover paths that are unknown.
    rules = Rules((replace(rule, decision=Decision.PROMPT),), executables)
    for name, wrong in (("not_match", "matches"), ("match", "does not match")):
        if (examples := arguments.get(name)) is None:
            continue
        for command in [_example(value, examples) for value in examples.elements()]:
            if bool(rules.matches(command)) is not (name == "match"):
                raise examples.position.error(
                    f"this rule {wrong} {' '.join(command)!r}, which is in its `{name}`"
                )
    return rule


def host_executable(call: Call) -> tuple[str, tuple[str, ...]]:
    """The bare name of a program, and the absolute paths that are this program.

    Raises:
        ConfigError: an argument is missing, unknown or not what it should be.
    """
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


def network_rule(call: Call) -> str:
    """A warning that the rule has no effect: there is no proxy between commands and the network here.

    Raises:
        ConfigError: as for `host_executable`.
    """
    names = ("host", "protocol", "decision", "justification")
    arguments = call.arguments(names, required=names[:3])
    texts = {name: argument.text() for name, argument in arguments.items()}
    host = texts["host"]
    if any(character in host for character in "*/?#") or len(host.split()) != 1:
        raise arguments["host"].error(f"expected one host name or address, not {host!r}")
    if texts["protocol"] not in _PROTOCOLS:
        raise arguments["protocol"].error("expected http, https, socks5_tcp or socks5_udp")
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
            raise examples.error(f"{value!r} is no shell command: {str(error).lower()}") from None
    else:
        listed = value if isinstance(value, list) else [value]
    words = tuple(word for word in listed if isinstance(word, str))
    if len(words) < len(listed):
        raise examples.error("expected commands, as strings or lists of words")
    if not words:
        raise examples.error("an example must not be empty")
    return words
