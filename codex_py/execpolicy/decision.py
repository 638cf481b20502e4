"""Rules about commands, and their decisions."""

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import chain
from typing import TypeAlias

from codex_py.execpolicy import git
from codex_py.execpolicy.known_prefixes import is_local_install
from codex_py.execpolicy.place import BY_NAME, CommandPlace
from codex_py.execpolicy.safety import is_system_program
from codex_py.execpolicy.script import all_commands, plain_commands
from codex_py.execpolicy.words import Command
from codex_py.execpolicy.wrappers import program_name, wrapped_commands
from codex_py.protocol.frozen import frozen


class Decision(StrEnum):
    """The decisions, from the mildest to the strictest."""

    ALLOW = "allow"
    """The command runs without approval, and outside the sandbox."""
    PROMPT = "prompt"
    FORBIDDEN = "forbidden"


_UNREAD = (
    "the command is too long or too deeply nested to be checked against the rules;"
    " make it shorter"
)
_SHIFTING = frozenset(
    """
    . alias builtin cd command declare enable eval exec export function hash local popd
    printf pushd read readonly set shopt source trap typeset unalias unset
    """.split()  # noqa: SIM905 -- as a list, a line for each name
)
"""Words of a shell after which a name may mean another program, or a program may work in another
folder."""

_STRICTNESS = {decision: rank for rank, decision in enumerate(Decision)}

Pattern: TypeAlias = tuple[tuple[str, ...], ...]
"""The alternatives for each word of a prefix."""


@frozen
class PrefixRule:
    pattern: Pattern
    """The pattern, which is not empty."""
    decision: Decision = Decision.ALLOW
    justification: str | None = None

    def covers(self, command: Command) -> bool:
        """True if the command begins with words that match the pattern."""
        # A quick exit: most rules are about other programs.
        is_long_enough = len(command) >= len(self.pattern)
        if not is_long_enough or command[0] not in self.pattern[0]:
            return False
        return all(
            word in words for word, words in zip(command, self.pattern, strict=False)
        )


@frozen
class MatchedRule:
    prefix: Command
    """The words of the command that the pattern covers, in the spelling of the rule."""
    decision: Decision
    justification: str | None = None
    resolved_program: str | None = None
    """The path that the command has where the rule has a bare name."""


@frozen
class RuleMatch:
    matched: tuple[MatchedRule, ...]
    """The rules, at least one."""

    @property
    def deciding(self) -> MatchedRule:
        """Among the strictest rules, the first with the longest prefix."""
        return max(
            self.matched,
            key=lambda rule: (_STRICTNESS[rule.decision], len(rule.prefix)),
        )

    @property
    def decision(self) -> Decision:
        return self.deciding.decision


@frozen
class CommandRules:
    prefix_rules: tuple[PrefixRule, ...] = ()
    host_executables: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """The absolute paths of each program, by its bare name."""
    warnings: tuple[str, ...] = ()
    """Sentences about accepted rules that have no effect."""

    def decide(
        self,
        argv: Sequence[str],
        place: CommandPlace = BY_NAME,
        *,
        resolve_paths: bool = True,
    ) -> RuleMatch | None:
        """Decide about all commands that `argv` runs; None if the rules do not decide.

        `prompt` and `forbidden` hold if a rule covers any command that `all_commands` finds. A
        script that it cannot read counts as covered by the strictest rule.

        `allow` needs more, because it lifts the sandbox. A rule must cover `argv` itself, or each
        of its `plain_commands`, and every program must be one that no command can change. So a
        redirection, an expansion, or a command without a rule prevents `allow`.

        Args:
            resolve_paths: if no rule covers the path of a program as written, a rule for a bare
                name such as `git` also covers paths that end in it. If `host_executables` has the
                name, only its paths count, else any path. `allow` then also requires a path in a
                folder of the system, or one of `host_executables`, written without detours.
        """
        if not self.prefix_rules:
            return None
        read = all_commands(argv)
        # A dict instead of a set, which would lose the order.
        everything = dict.fromkeys(read.commands)
        found = {
            command: self.matches(command, resolve_paths=resolve_paths)
            for command in everything
        }
        matched = tuple(chain.from_iterable(found.values()))
        if not read.is_complete:
            matched += self._for_unread()
        if any(match.decision is not Decision.ALLOW for match in matched):
            return RuleMatch(matched)
        return _allowed(argv, found, place)

    def _for_unread(self) -> tuple[MatchedRule, ...]:
        """Return the strictest rule, for a script that cannot be read; empty if all rules allow."""
        decisions = {rule.decision for rule in self.prefix_rules} - {Decision.ALLOW}
        if not decisions:
            return ()
        strictest = max(decisions, key=_STRICTNESS.__getitem__)
        return (MatchedRule((), strictest, _UNREAD),)

    def matches(
        self, command: Command, *, resolve_paths: bool = True
    ) -> tuple[MatchedRule, ...]:
        """Return the rules that cover one simple command, in order."""
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
        # Compare the path as written: after a symbolic link, `..` leads elsewhere than it seems.
        # The model could write a program with an allowed name, and leave the sandbox with it.
        if paths is None:
            certain = is_system_program(program)
        else:
            certain = program in paths
        bare = (name, *command[1:])
        return tuple(
            MatchedRule(
                bare[: len(rule.pattern)], rule.decision, rule.justification, program
            )
            for rule in self.prefix_rules
            if rule.covers(bare) and (certain or rule.decision is not Decision.ALLOW)
        )


def _allowed(
    argv: Sequence[str],
    found: Mapping[Command, tuple[MatchedRule, ...]],
    place: CommandPlace,
) -> RuleMatch | None:
    """Return the rules that lift the sandbox for `argv`; None if the sandbox stays.

    See `CommandRules.decide`.

    Args:
        found: the rules for each command that `argv` runs. All of them allow.
    """
    itself = _allowing(tuple(argv), found, place)
    if itself:
        return RuleMatch(itself)
    plain = tuple(dict.fromkeys(plain_commands(argv, place) or ()))
    shifts = any(command[0] in _SHIFTING for command in plain)
    if shifts and len(plain) > 1:
        return None
    uses_of_git = sum(program_name(command) == "git" for command in plain)
    if place.writable and uses_of_git > 1:
        # The first command may add a submodule that the next one enters.
        return None
    allowed = [_allowing(command, found, place) for command in plain]
    if plain and all(allowed):
        return RuleMatch(tuple(chain.from_iterable(allowed)))
    return None


def _allowing(
    command: Command,
    found: Mapping[Command, tuple[MatchedRule, ...]],
    place: CommandPlace,
) -> tuple[MatchedRule, ...]:
    """Return the rules that allow one command to leave the sandbox; empty if it must not."""
    matches = found.get(command, ())
    if matches and _may_leave_sandbox(command, matches, place):
        return matches
    return ()


def _may_leave_sandbox(
    command: Command, matches: Sequence[MatchedRule], place: CommandPlace
) -> bool:
    """True if, judged by its words, the command runs only programs that the model cannot change."""
    if not place.has_safe_home:
        return False
    covered = max(len(match.prefix) for match in matches)
    # The list grows in the loop: a wrapper such as `env` runs further commands.
    parts = [command]
    try:
        for part in parts:
            if place.program(part[0]) is None:
                return False
            # The rule is about the words of the command itself.
            known_words = covered if part is command else 0
            if is_local_install(part, known_words):
                return False
            if program_name(part) != "git":
                parts += wrapped_commands(part)
            elif git.is_held_back(part, known_words, place):
                return False
    except ValueError:  # no path can have such a word in it
        return False
    return True
