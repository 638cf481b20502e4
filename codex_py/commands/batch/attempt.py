"""Makes one attempt at a task of a batch on this machine.

An attempt makes a work tree if the task needs one, runs an agent, and records the result.
"""

import asyncio
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from codex_py.app.exec_process import ExecInvocation, ExecResult, run_exec
from codex_py.app.worktrees.worktree import (
    Worktree,
    find_worktree,
    new_worktree,
    open_worktree,
)
from codex_py.commands.batch.tasks import Task
from codex_py.config.config import Config
from codex_py.config.paths import worktrees_folder
from codex_py.errors import CodexError, ExitCode
from codex_py.patch.trees import aside, diff_between, work_tree
from codex_py.process.guardian import Guardian
from codex_py.process.identity import is_over, process_name
from codex_py.streams.standard import tell

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
        self._home = config.home
        self._environment = environment
        self._guardian = Guardian()
        _sweep(config.home, environment)

    async def run(self, task: Task, folder: Path) -> dict[str, Any]:
        """Make an attempt and write its files to `folder`. Cancellation ends the agent first.

        Returns the `status`, see `_STATUSES`, and further fields of the result.
        """
        if task.repo is None:
            opened = nullcontext()
        else:
            make = partial(self._tree, task.repo, task.base)
            opened = open_worktree(make, tell, force=True)
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
                result = await run_exec(command, self._guardian, folder)
                return await asyncio.to_thread(_record, result, tree, folder)
        except (CodexError, OSError) as error:
            return failed("failed", str(error))

    def close(self) -> None:
        self._guardian.close()

    def _tree(self, repo: str, base: str) -> Worktree:
        name = f"{_PREFIX}{process_name()}-{secrets.token_hex(4)}"
        cwd = Path(repo).resolve()
        return new_worktree(cwd, self._home, self._environment, name=name, base=base)


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
    diff = _whole_diff(tree)
    patch.write_bytes(diff)
    record["base"] = tree.commit
    record["diff"] = diff[:_MAX_DIFF_BYTES].decode(errors="replace")
    return record


def _whole_diff(tree: Worktree) -> bytes:
    """The changes in a work tree, for `git apply`: with binary files, and without a size limit."""
    with aside(tree.git.without_filters(tree.path)) as git:
        now = work_tree(git, tree.path)
        return diff_between(git, tree.path, tree.commit, now)


def _sweep(home: Path, environment: Mapping[str, str]) -> None:
    """Remove the work trees of batches that were killed on this machine."""
    for folder in worktrees_folder(home).glob(f"{_PREFIX}*"):
        if not is_over(folder.name.removeprefix(_PREFIX)):
            continue
        with suppress(CodexError, OSError):
            # The tree is the only folder in it, and has the name of the repository.
            trees = [each for each in folder.iterdir() if each.is_dir()]
            path = trees[0] if trees else folder
            tree = find_worktree(path, home, environment)
            if tree is not None:
                tree.remove(force=True)
        shutil.rmtree(folder, ignore_errors=True)
