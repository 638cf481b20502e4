"""Whether a command may run, from what is known of it and from what the user wants. Nothing is run or asked here.

A rule that forbids refuses; one that allows lets it run outside the sandbox. Otherwise there may be causes
to ask: a rule says so, the command is dangerous, it wants to leave the sandbox, or it is more than
reading and the user trusts nothing. Without a cause it runs in the sandbox. With one it is put to the user,
or refused if the policy does not let that kind of question through. Source of the texts for the
model: Codex 0.169.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from codex_py.execpolicy.decision import Decision, RuleMatch, Rules
from codex_py.execpolicy.safety import dangerous, is_known_safe
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    AskForApproval,
    GranularPolicy,
    SandboxMode,
    may_ask,
)
from codex_py.tools.prefix_rule import offered_prefix
from codex_py.tools.quoting import quote_argv
from codex_py.tools.verdict import Approval, Ask, CommandCall, Refuse, Run, Verdict

_NEVER_ESCALATES = (
    "approval policy is Never; reject command — you cannot ask for escalated permissions"
    " if the approval policy is Never"
)
_RULE_ASKS = "approval required by policy, but AskForApproval is set to Never"
_FORCED_RM = "rm -f style commands are not permitted. Use a safer approach"


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why the user has to be asked."""

    kind: Literal["sandbox_approval", "rules"]
    reason: str | None
    """For the user."""
    never: str
    """For the model where nobody can be asked."""


def decide(
    call: CommandCall,
    policy: AskForApproval,
    sandbox: SandboxMode,
    rules: Rules,
    approved: Collection[Approval],
) -> Verdict:
    """
    Args:
        sandbox: what commands are held to. Under `danger-full-access` there is nothing to leave.
        approved: what the user has agreed to for the whole session. It saves the question, where one
            may be put at all.
    """
    match = rules.decide(call.argv)
    if match is not None and match.decision is Decision.FORBIDDEN:
        return Refuse(_rejected(call, match.justification or _forbidden(match)), by_rule=True)
    if match is not None and match.decision is Decision.ALLOW:
        return Run(sandboxed=False)
    danger = dangerous(call.argv)
    causes = _causes(call, policy, sandbox, match, danger)
    for cause in causes:
        if not may_ask(policy, cause.kind):
            return Refuse(_unasked(cause, policy, call))
    sandboxed = not call.escalated
    if not causes or call.approval in approved:
        return Run(sandboxed)
    reasons = "; ".join(cause.reason for cause in causes if cause.reason is not None)
    prefix = None if danger else offered_prefix(call.argv, call.prefix_rule, rules)
    request = ApprovalRequest("command", quote_argv(call.argv), call.cwd, reasons or None, prefix)
    return Ask(request, sandboxed)


def _causes(
    call: CommandCall,
    policy: AskForApproval,
    sandbox: SandboxMode,
    match: RuleMatch | None,
    danger: str | None,
) -> list[_Cause]:
    causes: list[_Cause] = []
    if match is not None:
        words = " ".join(match.deciding.prefix)
        reason = match.justification or f"a rule asks before commands that start with `{words}`"
        causes.append(_Cause("rules", reason, _rejected(call, _RULE_ASKS)))
    if danger is not None:
        causes.append(_Cause("sandbox_approval", danger, _rejected(call, _FORCED_RM)))
    # Where there is no sandbox, there is nothing to ask for; but who is told never to ask is held to it.
    if call.escalated and (sandbox != "danger-full-access" or policy is ApprovalPolicy.NEVER):
        outside = "outside of the sandbox"
        reason = f"{outside}: {call.justification}" if call.justification else outside
        causes.append(_Cause("sandbox_approval", reason, _NEVER_ESCALATES))
    elif policy is ApprovalPolicy.UNTRUSTED and not is_known_safe(call.argv):
        causes.append(_Cause("sandbox_approval", call.justification, ""))
    return causes


def _unasked(cause: _Cause, policy: AskForApproval, call: CommandCall) -> str:
    if not isinstance(policy, GranularPolicy):
        return cause.never
    return _rejected(
        call,
        f"it needs approval ({cause.reason}), and the approval policy lets nobody be asked for"
        f" `{cause.kind}`",
    )


def _forbidden(match: RuleMatch) -> str:
    return f"policy forbids commands starting with `{' '.join(match.deciding.prefix)}`"


def _rejected(call: CommandCall, reason: str) -> str:
    return f"`{quote_argv(call.argv)}` rejected: {reason}"
