"""Decides whether a command of the model may run. This module neither runs commands nor asks.

If a rule forbids the command, it is refused; if a rule allows it, it runs outside the sandbox.
Otherwise there may be causes to ask: a rule says so, the command is dangerous, it wants to leave
the sandbox, or it is not read-only and the policy is `untrusted`. Without a cause the command runs
in the sandbox. With a cause the user is asked, or the command is refused if the policy does not
allow that kind of question.

The model may propose a rule for the user to approve: the first words of commands to allow
permanently. For some commands the program proposes a known rule. Source of the texts for the model:
Codex 0.169.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.errors import CallRefused
from codex_py.execpolicy.decision import CommandRules, Decision, PrefixRule, RuleMatch
from codex_py.execpolicy.known_prefixes import known_prefix
from codex_py.execpolicy.place import BY_NAME, CommandPlace
from codex_py.execpolicy.safety import FORCED_RM, dangerous, is_known_safe
from codex_py.execpolicy.script import all_commands, plain_commands
from codex_py.execpolicy.wrappers import SHELLS, program_name, wrapped_commands
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    AskForApproval,
    GranularPolicy,
    SandboxMode,
    may_ask,
)
from codex_py.protocol.frozen import frozen
from codex_py.tools.shell.quoting import quote_argv

_ALLOWING_RULE = 'a rule with decision="allow" in $CODEX_HOME/rules'
_NEVER_ESCALATES = (
    "approval policy is Never; reject command — you cannot ask for escalated permissions"
    " if the approval policy is Never"
)
_TYPED = "the model can type into it without asking again"
_MAX_NAMED = 3
"""Limit on the warnings about changeable programs."""
_MAX_PREFIX = 100
"""Limit on the characters of a rule that the user is offered."""
_RULE_ASKS = "approval required by policy, but AskForApproval is set to Never"
_DANGEROUS = "rm -f style commands are not permitted. Use a safer approach"
_UNREAD = "it is too long or too deeply nested to be checked for `rm -f`. Use a shorter script"

_GENERAL_PROGRAMS: Final = frozenset(
    (
        *SHELLS,
        "csh",
        "fish",
        "tcsh",
        "pwsh",
        "powershell",
        "awk",
        "gawk",
        "bun",
        "deno",
        "lua",
        "node",
        "nodejs",
        "osascript",
        "perl",
        "php",
        "py",
        "pypy",
        "python",
        "ruby",
        "tclsh",
        # Programs with so many subcommands that no user means to allow all of them.
        "apt",
        "apt-get",
        "aws",
        "brew",
        "bunx",
        "cargo",
        "docker",
        "gcloud",
        "gh",
        "git",
        "go",
        "kubectl",
        "make",
        "npm",
        "npx",
        "pip",
        "pipx",
        "pnpm",
        "podman",
        "rm",
        "ssh",
        "systemctl",
        "terraform",
        "uv",
        "uvx",
        "yarn",
    )
)
"""Programs that can do anything, depending on their arguments. A rule needs more words than the
name and options."""

_WRAPPERS: Final = frozenset(
    (
        "builtin",
        "busybox",
        "chroot",
        "command",
        "doas",
        "env",
        "eval",
        "exec",
        "find",
        "ionice",
        "nice",
        "nohup",
        "parallel",
        "script",
        "setsid",
        "source",
        "stdbuf",
        "su",
        "sudo",
        "time",
        "timeout",
        "unshare",
        "watch",
        "xargs",
    )
)
"""Programs that run another program. A rule is judged by the inner program, if it can be
identified."""


@frozen
class CommandCall:
    """A command that the model wants to run."""

    argv: tuple[str, ...]
    cwd: Path
    """The working directory, absolute."""
    escalated: bool = False
    """True: the model asks to run the command outside of the sandbox."""
    justification: str | None = None
    """The model's question to the user."""
    prefix_rule: tuple[str, ...] = ()
    """First words of commands that the model would like a rule to allow."""
    tty: bool = False
    """True: the command gets a terminal, and the model can type into it without an approval."""

    @property
    def approval(self) -> "Approval":
        return self.argv, self.cwd, self.escalated, self.tty


Approval: TypeAlias = tuple[tuple[str, ...], Path, bool, bool]
"""The command that an approval for the session covers: argv, cwd, `escalated` and `tty`."""


@frozen
class Run:
    """The decision that a command runs."""

    sandboxed: bool
    environment: Mapping[str, str] | None = None
    """The command's variables if a rule lets it leave the sandbox; None: the session's
    variables."""


@frozen
class Ask:
    """The decision that the user is asked about a command."""

    request: ApprovalRequest
    sandboxed: bool
    """True: the command runs in the sandbox after an approval."""


@frozen
class _Cause:
    """A cause to ask the user about a command."""

    kind: Literal["sandbox_approval", "rules"]
    reason: str | None
    """The reason to ask, for the user."""
    never: str
    """The refusal for the model, if the policy does not allow to ask."""


def decide(
    call: CommandCall,
    policy: AskForApproval,
    sandbox: SandboxMode,
    rules: CommandRules,
    approved: Collection[Approval],
    place: CommandPlace = BY_NAME,
) -> Run | Ask:
    """Decide whether a command runs, or which question to ask.

    Args:
        sandbox: the mode of the sandbox. In `danger-full-access`, commands need not ask to leave
            it.
        approved: the approvals for the session. They replace a question that the policy allows, if
            the model cannot change the program.
        place: the place where the command runs.

    Raises:
        CallRefused: the command may not run.
    """
    match = rules.decide(call.argv, place)
    if match is not None and match.decision is Decision.FORBIDDEN:
        raise _forbidden(call, match)
    if match is not None and match.decision is Decision.ALLOW:
        return Run(sandboxed=False, environment=place.safe_environment())
    danger = dangerous(call.argv)
    causes = _causes(call, policy, sandbox, match, danger, place)
    for cause in causes:
        if not may_ask(policy, cause.kind):
            raise _not_askable(call, cause, policy)
    sandboxed = not call.escalated
    if not causes or is_approved(call.approval, approved, place):
        return Run(sandboxed)
    prefix = None
    if not danger:
        prefix = offered_prefix(call.argv, call.prefix_rule, rules, place)
        if not prefix and call.escalated:
            prefix = offered_known_prefix(call, rules, place)
    return Ask(_question(call, causes, prefix, place), sandboxed)


def _question(
    call: CommandCall,
    causes: Sequence[_Cause],
    prefix: tuple[str, ...] | None,
    place: CommandPlace,
) -> ApprovalRequest:
    """The question about a command. `prefix` has the words of a rule that is offered."""
    reasons: list[str] = []
    if call.escalated:
        reasons += reasons_outside(call, place)
    reasons += [cause.reason for cause in causes if cause.reason is not None]
    return ApprovalRequest(
        "command",
        quote_argv(call.argv),
        call.cwd,
        "; ".join(reasons) or None,
        prefix,
        justification=call.justification,
        can_last=is_approved(call.approval, {call.approval}, place),
    )


def _forbidden(call: CommandCall, match: RuleMatch) -> CallRefused:
    """The refusal of a command that a rule forbids."""
    reason = match.deciding.justification
    if not reason:
        words = " ".join(match.deciding.prefix)
        reason = f"policy forbids commands starting with `{words}`"
    text = _rejected(call, reason)
    return CallRefused(text, code="ApprovalDenied", cause="a rule forbids it")


def _not_askable(
    call: CommandCall, cause: _Cause, policy: AskForApproval
) -> CallRefused:
    """The refusal of a command because the policy does not allow the question that it needs."""
    if isinstance(policy, GranularPolicy):
        reason = (
            f"it needs approval ({cause.reason}), and the approval policy lets nobody be asked"
            f" for `{cause.kind}`"
        )
        text = _rejected(call, reason)
    else:
        text = cause.never
    return CallRefused(
        text,
        code="ApprovalDenied",
        cause="it needs an approval",
        allow=_ALLOWING_RULE,
    )


def is_approved(
    approval: Approval, approved: Collection[Approval], place: CommandPlace
) -> bool:
    """True if a command is approved for the session, and its program is still the approved one.

    The second condition is that the model cannot have replaced the program. Outside of the sandbox
    it applies to each program of a plain script too.
    """
    if approval not in approved:
        return False
    argv, _cwd, escalated, _tty = approval
    if place.program(argv[0]) is None:
        return False
    if not escalated:
        return True
    inner = plain_commands(argv, place) or ()
    return not any(place.leads_to_changeable(command[0]) for command in inner)


def reasons_outside(call: CommandCall, place: CommandPlace) -> list[str]:
    """Warnings for the user about a command that leaves the sandbox, each a clause.

    They name the first programs that `PATH` finds in folders where the model, or the author of the
    repository, may have put them.
    """
    commands = all_commands(call.argv).commands
    names = dict.fromkeys([command[0] for command in commands if command])
    warnings: list[str] = []
    for name in names:
        path = place.changeable_program(name)
        if path:
            warnings.append(f"`{name}` is {path} by PATH")
    warnings = warnings[:_MAX_NAMED]
    if call.tty:
        warnings.append(_TYPED)
    return warnings


def _causes(
    call: CommandCall,
    policy: AskForApproval,
    sandbox: SandboxMode,
    match: RuleMatch | None,
    danger: str | None,
    place: CommandPlace,
) -> list[_Cause]:
    """The causes to ask about a command that no rule forbids or allows; see the module.

    Args:
        match: a rule that asks, if there is one.
        danger: the reason why the command is dangerous, if it is.
    """
    causes: list[_Cause] = []
    if match is not None:
        reason = match.deciding.justification
        if not reason:
            words = " ".join(match.deciding.prefix)
            reason = f"a rule asks before commands that start with `{words}`"
        causes.append(_Cause("rules", reason, _rejected(call, _RULE_ASKS)))
    if danger is not None:
        why = _DANGEROUS if danger == FORCED_RM else _UNREAD
        causes.append(_Cause("sandbox_approval", danger, _rejected(call, why)))
    # Without a sandbox, `escalated` needs no question; but a model that was told never to ask is
    # refused.
    must_ask_to_leave = (
        sandbox != "danger-full-access" or policy is ApprovalPolicy.NEVER
    )
    if call.escalated and must_ask_to_leave:
        reason = "outside of the sandbox"
        if call.justification:
            reason = f"{reason}: {call.justification}"
        causes.append(_Cause("sandbox_approval", reason, _NEVER_ESCALATES))
    elif policy is ApprovalPolicy.UNTRUSTED and not is_known_safe(call.argv, place):
        causes.append(_Cause("sandbox_approval", call.justification, ""))
    return causes


def _rejected(call: CommandCall, reason: str) -> str:
    return f"`{quote_argv(call.argv)}` rejected: {reason}"


def offered_prefix(
    argv: Sequence[str],
    words: tuple[str, ...],
    rules: CommandRules,
    place: CommandPlace = BY_NAME,
) -> tuple[str, ...] | None:
    """Return the words if the user may be offered a rule of them; else None.

    The rule must be narrow and short enough to be read. Together with the existing rules, it must
    allow every command of this call. The model must not be able to change a program or script among
    the words.
    """
    if not all(word.isprintable() for word in words):
        return None
    if not words or len(shlex.join(words)) > _MAX_PREFIX or _is_broad(words):
        return None
    match = allowing(rules, words).decide(argv, place)
    files = [place.cwd / word for word in words]
    if any(file.is_file() and place.can_change(file) for file in files):
        return None
    if match is None or match.decision is not Decision.ALLOW:
        return None
    if any(rule.prefix == words for rule in match.matched):
        return words
    return None


def offered_known_prefix(
    call: CommandCall, rules: CommandRules, place: CommandPlace
) -> tuple[str, ...] | None:
    """The known prefix of the command if the user may be offered a rule of it; else None."""
    return offered_prefix(call.argv, known_prefix(call.argv, place), rules, place)


def allowing(rules: CommandRules, prefix: Sequence[str]) -> CommandRules:
    """Add a rule that allows commands that begin with these words, at least one."""
    rule = PrefixRule(tuple((word,) for word in prefix))
    return replace(rules, prefix_rules=(*rules.prefix_rules, rule))


def _is_broad(words: tuple[str, ...]) -> bool:
    """True if a rule of these words would allow nearly everything, as of `python -c`."""
    name = program_name(words)
    if name == "find":
        # Its own arguments can delete files and run programs.
        return True
    if name in _WRAPPERS:
        wrapped = wrapped_commands(words)
        return not wrapped or any(_is_broad(inner) for inner in wrapped)
    unversioned = name.rstrip("0123456789.")
    if name in _GENERAL_PROGRAMS or unversioned in _GENERAL_PROGRAMS:
        arguments = words[1:]
        if arguments[:1] == ("-m",):
            arguments = arguments[1:]
        return not arguments or arguments[0].startswith("-")
    return not name
