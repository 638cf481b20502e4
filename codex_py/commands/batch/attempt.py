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
    **dict.fromkeys((ExitCode.BUDGET, ExitCode.WALL_CLOCK), "over_budget"),
    **dict.fromkeys((ExitCode.UNAVAILABLE, ExitCode.TEMPORARY), "try_later"),
    **dict.fromkeys((ExitCode.AUTHENTICATION, ExitCode.CONFIGURATION), "stopped"),
    # A signal that we did not send ended the agent.
    **dict.fromkeys((None, 129, ExitCode.INTERRUPTED, 143), "lost"),
}
_MAX_DIFF_BYTES = 16 * 1024 * 1024
"""Limit for the diff in a result; `patch.diff` has the whole diff."""
_PREFIX = "batch-"
"""Prefix of the names of work trees."""


class LocalEngine:
    """Makes attempts on this machine. `options`: options of `exec` for all tasks."""

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
        options = [*self._options, *task.exec_options()]
        timeout_s = task.timeout or self._timeout_s
        make = partial(self._tree, task.repo or "", task.base)
        try:
            if task.repo is None:
                opened = nullcontext()
            else:
                opened = open_worktree(make, tell, force=True)
            async with opened as tree:
                cwd = Path(task.cwd or ".") if tree is None else tree.cwd
                command = ExecInvocation(
                    options, task.whole_prompt(), cwd, self._environment, timeout_s
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
    found = asdict(result)
    found["status"] = _STATUSES.get(result.exit_code, "failed")
    if result.timed_out:
        found["status"] = "timeout"
    patch = folder / "patch.diff"
    message = folder / "last_message.md"
    message.write_text(result.last_message or "", encoding="utf-8", errors="replace")
    if tree is None:
        patch.write_text(result.diff or "", encoding="utf-8", errors="surrogateescape")
    else:
        # This diff is for `git apply`: it includes binary files and has no size limit.
        with aside(tree.git.without_filters(tree.path)) as git:
            diff = diff_between(git, tree.path, tree.commit, work_tree(git, tree.path))
        patch.write_bytes(diff)
        found |= {
            "base": tree.commit,
            "diff": diff[:_MAX_DIFF_BYTES].decode(errors="replace"),
        }
    return found


def _sweep(home: Path, environment: Mapping[str, str]) -> None:
    """Remove the work trees of batches that were killed on this machine."""
    for folder in worktrees_folder(home).glob(f"{_PREFIX}*"):
        if not is_over(folder.name.removeprefix(_PREFIX)):
            continue
        with suppress(CodexError, OSError):
            folders = [each for each in folder.iterdir() if each.is_dir()]
            path = next(iter(folders), folder)
            tree = find_worktree(path, home, environment)
            if tree is not None:
                tree.remove(force=True)
        shutil.rmtree(folder, ignore_errors=True)
