"""Turns the calls of a `.rules` file into rules, and checks their arguments."""

import os.path
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from codex_py.execpolicy.decision import Decision, PrefixRule
from codex_py.execpolicy.starlark import Argument, Call, Position
from codex_py.execpolicy.words import Command

_PROTOCOLS = ["http", "https", "https_connect", "http-connect", "socks5_tcp", "socks5_udp"]


@dataclass(frozen=True, slots=True)
class Example:
    command: Command
    matches: bool
    """True if the rule should cover it."""
    position: Position


@dataclass(frozen=True, slots=True)
class Definition:
    rule: PrefixRule
    examples: tuple[Example, ...]


class _Arguments:
    """The arguments of a call by their names."""

    def __init__(self, call: Call, names: Sequence[str], required: Sequence[str]) -> None:
        self._call = call
        for extra in call.positional[len(names) :]:
            raise extra.position.error(f"{call.name} takes {len(names)} arguments")
        self._found: dict[str, Argument] = dict(zip(names, call.positional, strict=False))
        for name, argument in call.named.items():
            if name not in names:
                known = ", ".join(names)
                raise argument.position.error(f"{call.name} has no {name!r}; it has {known}")
            if name in self._found:
                raise argument.position.error(f"{name!r} is given twice")
            self._found[name] = argument
        for name in required:
            if name not in self._found:
                raise call.position.error(f"{call.name} needs {name}=…")

    def refuse(self, name: str, reason: str) -> NoReturn:
        raise self._found[name].position.error(f"{name}: {reason}")

    def text(self, name: str) -> str | None:
        """A string that is not blank."""
        if name not in self._found:
            return None
        value = self._found[name].value
        if not isinstance(value, str):
            self.refuse(name, f"expected a string, not {_kind(value)}")
        if not value.strip():
            self.refuse(name, "must not be empty")
        return value

    def elements(self, name: str) -> list[Argument]:
        """The elements of a list, each with the position of the list; empty if the list is not given."""
        if name not in self._found:
            return []
        value, position = self._found[name].value, self._found[name].position
        if not isinstance(value, list):
            self.refuse(name, f"expected a list, not {_kind(value)}")
        return [Argument(element, position) for element in cast("list[Any]", value)]


def prefix_rule(call: Call) -> Definition:
    """
    Raises:
        ConfigError: an argument is missing, unknown or not what it should be.
    """
    names = ("pattern", "decision", "match", "not_match", "justification")
    arguments = _Arguments(call, names, required=["pattern"])
    pattern = tuple(_alternatives(word.value, arguments) for word in arguments.elements("pattern"))
    if not pattern:
        arguments.refuse("pattern", "must not be empty")
    rule = PrefixRule(
        pattern, _decision(arguments) or Decision.ALLOW, arguments.text("justification")
    )
    examples = [
        Example(_example(found.value, name, arguments), matches, found.position)
        for name, matches in (("not_match", False), ("match", True))
        for found in arguments.elements(name)
    ]
    return Definition(rule, tuple(examples))


def host_executable(call: Call) -> tuple[str, tuple[str, ...]]:
    """The bare name of a program, and the absolute paths that are this program.

    Raises:
        ConfigError: as for `prefix_rule`.
    """
    arguments = _Arguments(call, ("name", "paths"), required=["name", "paths"])
    name = arguments.text("name") or ""
    if "/" in name or name in {".", ".."}:
        arguments.refuse("name", f"expected a name without a folder, not {name!r}")
    paths: list[str] = []
    for value in (found.value for found in arguments.elements("paths")):
        if not isinstance(value, str):
            arguments.refuse("paths", f"expected strings, not {_kind(value)}")
        path = os.path.normpath(os.path.expanduser(value))  # noqa: PTH111
        if not path.startswith("/"):
            arguments.refuse("paths", f"expected absolute paths, not {value!r}")
        if path.rpartition("/")[2] != name:
            arguments.refuse("paths", f"{value!r} does not end in {name!r}")
        paths.append(path)
    return name, tuple(paths)


def network_rule(call: Call) -> str:
    """A warning that the rule has no effect: there is no proxy between commands and the network here.

    Raises:
        ConfigError: as for `prefix_rule`.
    """
    names = ("host", "protocol", "decision", "justification")
    arguments = _Arguments(call, names, required=names[:3])
    host = arguments.text("host") or ""
    if any(character in host for character in "*/?#") or len(host.split()) != 1:
        arguments.refuse("host", f"expected one host name or address, not {host!r}")
    if arguments.text("protocol") not in _PROTOCOLS:
        arguments.refuse("protocol", "expected http, https, socks5_tcp or socks5_udp")
    arguments.text("justification")
    if arguments.text("decision") != "deny":
        _decision(arguments)
    return f"{call.position.source}:{call.position.line}: network_rule for {host!r} has no effect"


def _decision(arguments: _Arguments) -> Decision | None:
    value = arguments.text("decision")
    if value is None:
        return None
    if value not in list(Decision):
        expected = ", ".join(Decision)
        arguments.refuse("decision", f"expected one of {expected}, not {value!r}")
    return Decision(value)


def _alternatives(value: Any, arguments: _Arguments) -> tuple[str, ...]:
    words = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not words:
        arguments.refuse("pattern", "alternatives must not be empty")
    for word in words:
        if not isinstance(word, str):
            arguments.refuse("pattern", f"expected words or lists of words, not {_kind(word)}")
    return tuple(words)


def _example(value: Any, name: str, arguments: _Arguments) -> Command:
    words: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            arguments.refuse(name, f"{value!r} is no shell command: {str(error).lower()}")
    elif not isinstance(value, list) or not all(isinstance(word, str) for word in words):
        arguments.refuse(name, "expected commands, as strings or lists of words")
    if not words:
        arguments.refuse(name, "an example must not be empty")
    return tuple(words)


def _kind(value: Any) -> str:
    kinds = {str: "a string", list: "a list", bool: "a truth value", type(None): "None"}
    return kinds.get(type(value), "a number")  # pyright: ignore[reportUnknownArgumentType]
