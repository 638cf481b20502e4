"""Rules about commands, and what they decide."""

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from codex_py.execpolicy.safety import is_system_program
from codex_py.execpolicy.script import all_commands, plain_commands
from codex_py.execpolicy.words import Command


class Decision(StrEnum):
    """From the mildest to the strictest."""

    ALLOW = "allow"
    """It runs without a question, and outside of the sandbox."""
    PROMPT = "prompt"
    FORBIDDEN = "forbidden"


_STRICTNESS = {decision: rank for rank, decision in enumerate(Decision)}

Pattern: TypeAlias = tuple[tuple[str, ...], ...]
"""For each word of a prefix, the words that it may be."""


@dataclass(frozen=True, slots=True)
class PrefixRule:
    pattern: Pattern
    """Not empty."""
    decision: Decision = Decision.ALLOW
    justification: str | None = None

    def covers(self, command: Command) -> bool:
        """Whether the command begins as the pattern says."""
        # Most rules are about other programs.
        if len(command) < len(self.pattern) or command[0] not in self.pattern[0]:
            return False
        return all(word in words for word, words in zip(command, self.pattern, strict=False))


@dataclass(frozen=True, slots=True)
class MatchedRule:
    prefix: Command
    """The words of the command that the pattern covers, as the rule spells them."""
    decision: Decision
    justification: str | None = None
    resolved_program: str | None = None
    """The path that stood in the command where the rule has a bare name."""


@dataclass(frozen=True, slots=True)
class RuleMatch:
    decision: Decision
    """The strictest of `matched`."""
    justification: str | None
    """Of the rule that decides."""
    matched: tuple[MatchedRule, ...]
    """Not empty."""

    @property
    def deciding(self) -> MatchedRule:
        """The first of those with the longest prefix among the strictest."""
        return _deciding(self.matched)


@dataclass(frozen=True, slots=True)
class Rules:
    prefix_rules: tuple[PrefixRule, ...] = ()
    host_executables: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """By the bare name of a program, the absolute paths that are this program."""
    warnings: tuple[str, ...] = ()
    """What was accepted and has no effect, a sentence each."""

    def decide(self, argv: Sequence[str], *, resolve_paths: bool = True) -> RuleMatch | None:
        """What the rules say of all that `argv` runs; None where they leave it open.

        `prompt` and `forbidden` hold for every command that `all_commands` finds. `allow` needs more, because
        it takes the sandbox away: a rule that covers `argv` itself, or for each of its `plain_commands` one
        that allows it. So a redirection, an expansion, or a command without a rule leaves it open.

        `resolve_paths`: a rule for a bare name, `git`, also holds for paths that end in it where no rule
        covers the path as written: for those in `host_executables`, or if the name is not there,
        for any, save that `allow` then asks for one in a folder of the system. For
        `allow` a path has to be written without detours.
        """
        if not self.prefix_rules:
            return None
        # A set would lose the order.
        everything = dict.fromkeys(all_commands(argv))
        found = {
            command: self.matches(command, resolve_paths=resolve_paths) for command in everything
        }
        matched = tuple(match for matches in found.values() for match in matches)
        if any(match.decision is not Decision.ALLOW for match in matched):
            return _rule_match(matched)
        if itself := found.get(tuple(argv)):
            return _rule_match(itself)
        plain = dict.fromkeys(plain_commands(argv) or ())
        if plain and all(found.get(command) for command in plain):
            return _rule_match(tuple(match for command in plain for match in found[command]))
        return None

    def matches(self, command: Command, *, resolve_paths: bool = True) -> tuple[MatchedRule, ...]:
        """The rules that cover one simple command, in their order."""
        exact = tuple(
            MatchedRule(command[: len(rule.pattern)], rule.decision, rule.justification)
            for rule in self.prefix_rules
            if rule.covers(command)
        )
        program = command[0] if command else ""
        if exact or not resolve_paths or "/" not in program:
            return exact
        path = os.path.normpath(program)
        name = os.path.basename(path)  # noqa: PTH119 (a word of a command, which may be no path)
        paths = self.host_executables.get(name)
        if paths is not None and path not in paths:
            return ()
        # As written: behind a symbolic link, `..` leads elsewhere than it seems. And a model could write
        # a program of a name that is allowed, and leave the sandbox with it.
        certain = is_system_program(program) if paths is None else program in paths
        bare = (name, *command[1:])
        return tuple(
            MatchedRule(bare[: len(rule.pattern)], rule.decision, rule.justification, program)
            for rule in self.prefix_rules
            if rule.covers(bare) and (certain or rule.decision is not Decision.ALLOW)
        )


def _rule_match(matched: tuple[MatchedRule, ...]) -> RuleMatch:
    deciding = _deciding(matched)
    return RuleMatch(deciding.decision, deciding.justification, matched)


def _deciding(matched: Sequence[MatchedRule]) -> MatchedRule:
    return max(matched, key=lambda match: (_STRICTNESS[match.decision], len(match.prefix)))
