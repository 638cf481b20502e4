"""The steps before a command runs: decide, ask if needed, choose the sandbox.

Under the policy `on-failure`, the user is also asked after a command that the sandbox seems to have
blocked: it may run again outside.

Sources: Codex, `core/src/tools/orchestrator.rs` for the steps, and `exec.rs` for the signs of a
blocked command.
"""

import signal
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.config.environment import without_variables
from codex_py.errors import ToolError
from codex_py.execpolicy.decision import CommandRules
from codex_py.execpolicy.place import CommandPlace
from codex_py.execpolicy.safety import is_known_safe
from codex_py.process.process import Process, Spawn, SpawnOutside
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    ReviewDecision,
    SandboxPolicy,
    may_ask,
)
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.shell.permission import (
    Approval,
    Ask,
    CommandCall,
    Run,
    allowing,
    decide,
    is_approved,
    offered_known_prefix,
    reasons_outside,
)
from codex_py.tools.shell.quoting import quote_argv
from codex_py.tools.truncate import truncate_output

_REJECTED = "exec command rejected by user"
_NOT_AGAIN = "the user did not let it run again outside of the sandbox"
_AGAIN = "it failed in the sandbox; run it again outside of it?"

_SANDBOX_WORDS: Final = (
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "network is unreachable",
    "name resolution",
    "could not resolve host",
    "landlock",
    "seccomp",
    "sandbox",
    "failed to write file",
)
"""Words in the output, in lower case, that suggest that the sandbox blocked something."""

_STOPPED: Final = frozenset(
    {124, 128 + signal.SIGINT, 128 + signal.SIGKILL, 128 + signal.SIGTERM}
)
"""Exit codes of commands that something else ended: `timeout(1)`, or a signal of someone else."""


@frozen
class Launch:
    """The way to start a command."""

    argv: Sequence[str]
    spawn: Spawn | None = None
    """Starts it; None: it is a process of ours."""


@dataclass(eq=False)
class Orchestrator:
    """Decides and asks about all commands of a session."""

    sandbox: PlatformSandbox
    hidden: Collection[str] = ()
    """The variables to hide from a login shell although the user's profile sets them."""
    shell: str = ""
    """The path of the user's own shell. Rules may allow its scripts wherever it is installed."""
    rules: CommandRules = field(default_factory=CommandRules)
    """The user's rules."""
    write_rule: Callable[[Sequence[str]], None] = lambda _: None
    """Saves a rule of the user for later sessions. Never raises."""
    outside: SpawnOutside | None = None
    """Starts the commands that no limit of the sandbox holds for; None: they are processes of ours.

    It gives them no terminal to type into, so commands with a `tty` are not started by it.
    """
    leads_outside: bool = False
    """True: with `outside`, commands that would run in the sandbox ask to leave it."""

    async def approve(self, call: CommandCall, context: ToolContext) -> Run:
        """Decide how the command runs, and ask the user if needed.

        Raises:
            ToolError: the command was refused (`ApprovalDenied`).
        """
        is_final = context.sandbox_policy.is_final
        if is_final:
            call = replace(call, escalated=False)
        elif self._asks_to_leave(call, context):
            call = replace(call, escalated=True)
        verdict = self._decide(call, context)
        if isinstance(verdict, Ask):
            async with context.approvals.asking:
                # The previous answer may cover this command.
                verdict = self._decide(call, context)
                while isinstance(verdict, Ask):
                    await self._ask(verdict.request, call.approval, context, _REJECTED)
                    # A command in the background may have replaced the program meanwhile: then the
                    # question has changed.
                    again = self._decide(call, context)
                    if not isinstance(again, Ask) or again.request == verdict.request:
                        break
                    verdict = again
        if is_final:
            # Not even a rule lets the command leave the sandbox.
            return Run(sandboxed=True)
        if isinstance(verdict, Ask):
            # The user has approved it.
            return Run(verdict.sandboxed)
        return verdict

    def launch(
        self,
        call: CommandCall,
        context: ToolContext,
        *,
        sandboxed: bool,
        tty: bool = False,
        setup: str | None = None,
    ) -> Launch:
        """Choose how to start the command. Raises a `ToolError` if no sandbox is available.

        Args:
            tty: the command gets a terminal, and the model can type into it.
            setup: a script that a shell with `-lc` runs instead of the profile; None: the shell
                reads the profile.
        """
        argv = without_variables(call.argv, self.hidden, setup or "")
        if setup is not None:
            argv[1] = "-c"
        limits: SandboxPolicy | None = context.sandbox_policy
        if not sandboxed:
            limits = _limits_outside(context.sandbox_policy)
        if self.outside is not None and not tty and not self._confines(limits):
            return Launch(argv, partial(self.outside, title=call.argv[-1]))
        if limits is not None:
            return Launch(self.sandbox.command(argv, limits, call.cwd))
        return Launch(argv)

    async def may_leave(
        self, call: CommandCall, process: Process, context: ToolContext
    ) -> bool:
        """If the sandbox seems to have blocked the command, ask whether to run it again outside.

        Call this for a command in the sandbox, under the policy `on-failure`.

        Raises:
            ToolError: the user refused.
        """
        policy = context.sandbox_policy
        if policy.mode == "danger-full-access" or policy.is_final:
            return False
        if not process.finished.is_set():
            return False
        if not _looks_blocked(process.exit_code, process.all_output().text()):
            return False
        outside = replace(call, escalated=True).approval
        place = self._place(call, context)
        if is_approved(outside, context.approvals.granted, place):
            return True
        reason = "; ".join([*reasons_outside(call, place), _AGAIN])
        prefix = offered_known_prefix(call, self.rules, place)
        request = ApprovalRequest(
            "command", quote_argv(call.argv), call.cwd, reason, prefix
        )
        try:
            async with context.approvals.asking:
                await self._ask(request, outside, context, _NOT_AGAIN)
            return True
        except ToolError as error:
            output = process.all_output()
            printed = truncate_output(output.text(), context.output_token_limit)
            text = (
                f"{error}\nIn it, it exited with code {process.exit_code} and printed:\n"
                f"{printed}"
            )
            raise ToolError(text, code=error.code) from error

    async def _ask(
        self,
        request: ApprovalRequest,
        approval: Approval,
        context: ToolContext,
        rejected: str,
    ) -> None:
        """Ask the user. A rule that the user approves is in force from then on, and is saved.

        Args:
            approval: what an approval for the session covers.
            rejected: the error for the model if the user refuses.

        Raises:
            ToolError: the user refused.
        """
        request = replace(request, item_id=context.next_item_id.upcoming)
        answer = await context.approvals.ask(request, [approval], rejected=rejected)
        if answer is ReviewDecision.APPROVED_WITH_RULE and request.prefix is not None:
            self.rules = allowing(self.rules, request.prefix)
            self.write_rule(request.prefix)

    def _decide(self, call: CommandCall, context: ToolContext) -> Run | Ask:
        return decide(
            call,
            context.approval_policy,
            context.sandbox_policy.mode,
            self.rules,
            context.approvals.granted,
            self._place(call, context),
        )

    def _asks_to_leave(self, call: CommandCall, context: ToolContext) -> bool:
        """True if the command has to ask to leave the sandbox because others run outside of it.

        It need not if it only reads, and it cannot if the user is not asked before it runs, or if
        there are limits outside of the sandbox too: then it runs in the sandbox.
        """
        if self.outside is None or not self.leads_outside or call.tty:
            return False
        policy = context.approval_policy
        asks = policy is not ApprovalPolicy.ON_FAILURE and may_ask(
            policy, "sandbox_approval"
        )
        limits = context.sandbox_policy
        if not asks or not self._confines(limits):
            return False
        if self._confines(_limits_outside(limits)):
            return False
        return not is_known_safe(call.argv, self._place(call, context))

    def _confines(self, limits: SandboxPolicy | None) -> bool:
        return limits is not None and self.sandbox.confines(limits)

    def _place(self, call: CommandCall, context: ToolContext) -> CommandPlace:
        policy = context.sandbox_policy
        environment = context.environment
        return CommandPlace(
            call.cwd,
            environment,
            workspace=(context.cwd, *policy.writable_roots),
            # These folders count in every mode: an earlier mode may have allowed writing there, and
            # other people may have written the repository.
            temporary=(Path("/tmp"), Path(environment.get("TMPDIR") or "/tmp")),
            shell=self.shell,
        )


def _limits_outside(policy: SandboxPolicy) -> SandboxPolicy | None:
    """The limits outside of the sandbox: denied files and required domains. None without any."""
    domains = None
    if policy.domains and policy.domains.is_required:
        domains = policy.domains
    if not policy.files.denies and domains is None:
        return None
    return SandboxPolicy(
        "danger-full-access", network_access=True, files=policy.files, domains=domains
    )


def _looks_blocked(exit_code: int | None, output: str) -> bool:
    if exit_code in {None, 0} or exit_code in _STOPPED:
        return False
    if exit_code == 128 + signal.SIGSYS:
        return True
    printed = output.lower()
    return any(word in printed for word in _SANDBOX_WORDS)
