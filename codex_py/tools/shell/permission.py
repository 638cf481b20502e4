"""Decides whether a command of the model may run. This module neither runs commands nor asks.

If a rule forbids the command, it is refused; if a rule allows it, it runs outside the sandbox. Otherwise there may
be causes to ask: a rule says so, the command is dangerous, it wants to leave the sandbox, or it is not read-only and
the policy is `untrusted`. Without a cause the command runs in the sandbox. With a cause the user is
asked, or the command is refused if the policy does not allow that kind of question. The model may
propose a rule for the user to approve: the first words of commands to allow permanently. For some
commands the program proposes a known rule. Source of the texts for the model: Codex 0.169.
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
_MAX_PREFIX = 100
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
    sandboxed: bool
    environment: Mapping[str, str] | None = None
    """The command's variables if a rule lets it leave the sandbox; None: the session's
    variables."""


@frozen
class Ask:
    request: ApprovalRequest
    sandboxed: bool
    """True: the command runs in the sandbox after an approval."""


@frozen
class _Cause:
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
        words = " ".join(match.deciding.prefix)
        forbids = f"policy forbids commands starting with `{words}`"
        text = _rejected(call, match.deciding.justification or forbids)
        raise CallRefused(text, code="ApprovalDenied", cause="a rule forbids it")
    if match is not None and match.decision is Decision.ALLOW:
        return Run(sandboxed=False, environment=place.safe_environment())
    danger = dangerous(call.argv)
    causes = _causes(call, policy, sandbox, match, danger, place)
    for cause in causes:
        if not may_ask(policy, cause.kind):
            why = f"it needs approval ({cause.reason}), and the approval policy lets nobody be asked"
            granular = isinstance(policy, GranularPolicy)
            if granular:
                text = _rejected(call, f"{why} for `{cause.kind}`")
            else:
                text = cause.never
            needs = "it needs an approval"
            raise CallRefused(
                text, code="ApprovalDenied", cause=needs, allow=_ALLOWING_RULE
            )
    sandboxed = not call.escalated
    if not causes or is_approved(call.approval, approved, place):
        return Run(sandboxed)
    warnings = [] if sandboxed else reasons_outside(call, place)
    reasons = [
        *warnings,
        *(cause.reason for cause in causes if cause.reason is not None),
    ]
    prefix = None
    if not danger:
        proposed = offered_prefix(call.argv, call.prefix_rule, rules, place)
        prefix = proposed or (
            offered_known_prefix(call, rules, place) if call.escalated else None
        )
    request = ApprovalRequest(
        "command",
        quote_argv(call.argv),
        call.cwd,
        "; ".join(reasons) or None,
        prefix,
        justification=call.justification,
        can_last=is_approved(call.approval, {call.approval}, place),
    )
    return Ask(request, sandboxed)


def is_approved(
    approval: Approval, approved: Collection[Approval], place: CommandPlace
) -> bool:
    """True if the command is approved for the session, and the model cannot have replaced its program since.

    Outside of the sandbox, the second condition applies to each program of a plain script too.
    """
    if approval not in approved:
        return False
    argv, _, escalated, _ = approval
    if escalated:
        inside = plain_commands(argv, place) or ()
    else:
        inside = ()
    return place.program(argv[0]) is not None and not any(
        place.leads_to_changeable(command[0]) for command in inside
    )


def reasons_outside(call: CommandCall, place: CommandPlace) -> list[str]:
    """Warnings for the user about a command that leaves the sandbox: clauses that precede the
    model's justification.

    They name the first programs that `PATH` finds in folders where the model, or the author of the
    repository, may have put them.
    """
    words = dict.fromkeys(
        command[0] for command in all_commands(call.argv).commands if command
    )
    found = ((word, place.changeable_program(word)) for word in words)
    warnings = [f"`{word}` is {path} by PATH" for word, path in found if path]
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
    causes: list[_Cause] = []
    if match is not None:
        words = " ".join(match.deciding.prefix)
        reason = (
            match.deciding.justification
            or f"a rule asks before commands that start with `{words}`"
        )
        causes.append(_Cause("rules", reason, _rejected(call, _RULE_ASKS)))
    if danger is not None:
        why = _DANGEROUS if danger == FORCED_RM else _UNREAD
        causes.append(_Cause("sandbox_approval", danger, _rejected(call, why)))
    # Without a sandbox, `escalated` needs no question; but a model that was told never to ask is
    # refused.
    if call.escalated and (
        sandbox != "danger-full-access" or policy is ApprovalPolicy.NEVER
    ):
        outside = "outside of the sandbox"
        if call.justification:
            reason = f"{outside}: {call.justification}"
        else:
            reason = outside
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
    """The words if the user may be offered a rule of them; else None.

    The rule must be narrow and short enough to be read. Together with the existing rules, it must
    allow every command of this call. The model must not be able to change a program or script among
    the words.
    """
    shows = (
        all(word.isprintable() for word in words)
        and len(shlex.join(words)) <= _MAX_PREFIX
    )
    if not words or not shows or _is_broad(words):
        return None
    match = allowing(rules, words).decide(argv, place)
    files = (place.cwd / word for word in words)
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
    """True if a rule of these words would allow nearly everything: `python -c`, `sudo -u x bash`."""
    name = program_name(words)
    if name in _WRAPPERS:
        if name != "find":
            wrapped = wrapped_commands(words)
        else:
            wrapped = []
        return not wrapped or any(_is_broad(inner) for inner in wrapped)
    if {name, name.rstrip("0123456789.")} & _GENERAL_PROGRAMS:
        if words[1:2] == ("-m",):
            first = words[2:3]
        else:
            first = words[1:2]
        return not first or first[0].startswith("-")
    return not name
