"""Makes one attempt at a task of a batch on this machine.

An attempt makes a work tree if the task needs one, runs an agent, and records the result.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codex_py.api.attempts import Attempts, ExecInvocation, ExecResult
from codex_py.api.commands import CodexError, ExitCode, tell
from codex_py.api.configuration import Config
from codex_py.api.worktrees import Worktree, sweep_temporary, temporary_name
from codex_py.extensions.batch.tasks import Task

_STATUSES = {
    ExitCode.DONE: "done",
    ExitCode.DENIED: "refused",
    ExitCode.BUDGET: "over_budget",
    ExitCode.WALL_CLOCK: "over_budget",
    ExitCode.UNAVAILABLE: "try_later",
    ExitCode.TEMPORARY: "try_later",
    ExitCode.AUTHENTICATION: "stopped",
    ExitCode.CONFIGURATION: "stopped",
    # A signal that we did not send ended the agent.
    None: "lost",
    129: "lost",
    ExitCode.INTERRUPTED: "lost",
    143: "lost",
}
"""The status of an attempt by the exit code of its agent. All other codes mean `failed`."""
_MAX_DIFF_BYTES = 16 * 1024 * 1024
"""Limit for the diff in a result; `patch.diff` has the whole diff."""
_PREFIX = "batch-"
"""Prefix of the names of work trees."""


class LocalEngine:
    """Makes attempts on this machine.

    Args:
        options: options of `exec` for all tasks.
        timeout_s: the limit of an attempt, if its task has none.
    """

    def __init__(
        self,
        options: Sequence[str],
        timeout_s: float,
        config: Config,
        environment: Mapping[str, str],
    ) -> None:
        self._options = options
        self._timeout_s = timeout_s
        self._environment = environment
        self._attempts = Attempts(config.home, environment, tell)
        sweep_temporary(_PREFIX, config.home, environment)

    async def run(self, task: Task, folder: Path) -> dict[str, Any]:
        """Make an attempt and write its files to `folder`. Cancellation ends the agent first.

        Returns the `status`, see `_STATUSES`, and further fields of the result.
        """
        if task.repo is None:
            opened = nullcontext()
        else:
            opened = self._worktree(task.repo, task.base)
        try:
            async with opened as tree:
                if tree is None:
                    cwd = Path(task.cwd or ".")
                else:
                    cwd = tree.cwd
                command = ExecInvocation(
                    [*self._options, *task.exec_options()],
                    task.whole_prompt(),
                    cwd,
                    self._environment,
                    task.timeout or self._timeout_s,
                )
                result = await self._attempts.run(command, folder)
                return await asyncio.to_thread(_record, result, tree, folder)
        except (CodexError, OSError) as error:
            return failed("failed", str(error))

    def _worktree(self, repo: str, base: str) -> AbstractAsyncContextManager[Worktree]:
        name = temporary_name(_PREFIX)
        return self._attempts.worktree(Path(repo).resolve(), name=name, base=base)

    def close(self) -> None:
        self._attempts.close()


def failed(status: str, message: str) -> dict[str, Any]:
    """Make the record of an attempt that has only a status and an error message."""
    error = {"message": message, "code": "batch"}
    return {
        "status": status,
        "exit_code": None,
        "error": error,
        "diff": None,
        "usage": None,
    }


def _record(
    result: ExecResult,
    tree: Worktree | None,
    folder: Path,
) -> dict[str, Any]:
    """Write the files of an attempt, and make its record."""
    record = asdict(result)
    record["status"] = _STATUSES.get(result.exit_code, "failed")
    if result.timed_out:
        record["status"] = "timeout"
    message = folder / "last_message.md"
    message.write_text(result.last_message or "", encoding="utf-8", errors="replace")
    patch = folder / "patch.diff"
    if tree is None:
        patch.write_text(result.diff or "", encoding="utf-8", errors="surrogateescape")
        return record
    diff = tree.diff()
    patch.write_bytes(diff)
    record["base"] = tree.commit
    record["diff"] = diff[:_MAX_DIFF_BYTES].decode(errors="replace")
    return record
