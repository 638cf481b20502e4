"""The steps before a command runs: decide, ask if needed, choose the sandbox.

Under the policy `on-failure`, the user is also asked after a command that the sandbox seems to have
blocked: it may run again outside.

Sources: Codex, `core/src/tools/orchestrator.rs` for the steps, and `exec.rs` for the signs of a
blocked command.
"""

import signal
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from codex_py.config.environment import without_variables
from codex_py.errors import ToolError
from codex_py.execpolicy.decision import CommandRules
from codex_py.execpolicy.place import CommandPlace
from codex_py.process.process import Process
from codex_py.protocol.approval import (
    ApprovalRequest,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.dispatch import ToolContext
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

    async def approve(self, call: CommandCall, context: ToolContext) -> Run:
        """Decide how the command runs, and ask the user if needed.

        Raises:
            ToolError: the command was refused (`ApprovalDenied`).
        """
        is_final = context.sandbox_policy.is_final
        if is_final:
            call = replace(call, escalated=False)
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

    def argv(
        self,
        call: CommandCall,
        context: ToolContext,
        *,
        sandboxed: bool,
        setup: str | None = None,
    ) -> Sequence[str]:
        """The argv to start. Raises a `ToolError` if no sandbox is available.

        Args:
            setup: a script that a shell with `-lc` runs instead of the profile; None: the shell
                reads the profile.
        """
        argv = without_variables(call.argv, self.hidden, setup or "")
        if setup is not None:
            argv[1] = "-c"
        policy = context.sandbox_policy
        if sandboxed:
            return self.sandbox.command(argv, policy, call.cwd)
        domains = None
        if policy.domains and policy.domains.is_required:
            domains = policy.domains
        if not policy.files.denies and domains is None:
            return argv
        # Denied files and required domains hold outside of the sandbox too.
        remaining = SandboxPolicy(
            "danger-full-access",
            network_access=True,
            files=policy.files,
            domains=domains,
        )
        return self.sandbox.command(argv, remaining, call.cwd)

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


def _looks_blocked(exit_code: int | None, output: str) -> bool:
    if exit_code in {None, 0} or exit_code in _STOPPED:
        return False
    if exit_code == 128 + signal.SIGSYS:
        return True
    printed = output.lower()
    return any(word in printed for word in _SANDBOX_WORDS)
