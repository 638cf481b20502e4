"""One of several attempts at a prompt: an agent in its own worktree, judged by scripts of the user.

Scripts run in a clean checkout of the change, so that ignored files that an agent leaves do not
help it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from glob import glob
from math import isfinite
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from codex_py.api.attempts import (
    EVENTS,
    STDERR,
    Attempts,
    ExecInvocation,
    ExecResult,
)
from codex_py.api.commands import CodexError, ExitCode
from codex_py.api.configuration import Config, verifications
from codex_py.api.files import read_whole
from codex_py.api.models import Usage
from codex_py.api.patches import changed_lines
from codex_py.api.prices import Price
from codex_py.api.worktrees import BaseSnapshot, Worktree

_GRACE_S: Final = 0.7
_SCRIPT_TIMEOUT_S: Final = 600.0
_MAX_REPORT_BYTES: Final = 50_000_000
_STATES: Final[Mapping[int | None, str]] = {
    ExitCode.DONE: "done",
    ExitCode.GATE: "gate failed",
    ExitCode.TURN_LIMIT: "over budget",
    ExitCode.BUDGET: "over budget",
    ExitCode.WALL_CLOCK: "over budget",
}
"""The state after each exit code. Any other code, and None after a signal, means "failed"."""
_INTERNAL: Final = {"json": False}
"""Marks a field that is left out of the JSON."""


@dataclass(slots=True, eq=False)
class Attempt:
    """The task of an attempt and its outcome, for JSON."""

    attempt: int
    varied: Mapping[str, str]
    options: Sequence[str] = field(metadata=_INTERNAL)
    """The options of `exec`."""
    prompt: str = field(metadata=_INTERNAL)
    price: Price | None = field(metadata=_INTERNAL)
    state: str = "not begun"
    passed: bool = False
    why: str | None = None
    """The reason why the attempt did not pass, or has no score."""
    score: float | None = None
    passed_tests: int | None = None
    failed_tests: int | None = None
    diff_lines: int | None = None
    patch: str | None = None
    diff: bytes = field(default=b"", metadata=_INTERNAL)
    thread_id: str | None = None
    exit_code: int | None = None
    error: Mapping[str, Any] | None = None
    last_message: str | None = field(default=None, metadata=_INTERNAL)
    usage: Usage = field(default_factory=Usage)
    """The usage, as far as it is known."""
    seconds: float | None = None


@dataclass(slots=True, eq=False)
class AttemptRunner:
    """Makes attempts, each in its own worktree."""

    engine: Attempts
    snapshot: BaseSnapshot
    config: Config
    environment: Mapping[str, str]
    sandbox: Sequence[str]
    """The words after `codex-py sandbox` for scripts, without those for the worktree."""
    score: str | None
    junit: str | None
    worktrees: Path | None
    patches: Path
    watch: Callable[[Attempt, bytes], None]
    """Called with each event of an agent, as a line."""

    def close(self) -> None:
        self.engine.close()

    async def make(
        self,
        attempt: Attempt,
        ends_at: float | None,
    ) -> None:
        """Run an attempt to its end.

        Args:
            ends_at: the time, on the clock of the loop, at which an agent that exceeds its own
                budget is ended.
        """
        attempt.state = "running"
        opened = self.engine.worktree(
            self.config.cwd,
            name=f"{self.snapshot.id}-{attempt.attempt}",
            base=self.snapshot.commit,
            parent=self.worktrees,
        )
        try:
            async with opened as worktree:
                confined = self._confined(worktree)
                is_done = await self._run_agent(attempt, worktree, confined, ends_at)
                tree = await asyncio.to_thread(self._keep_change, attempt, worktree)
                if is_done:
                    await self._run_scripts(attempt, worktree, tree, confined)
        except (CodexError, OSError) as error:
            attempt.state = "failed"
            attempt.passed = False
            attempt.why = str(error)

    async def _run_agent(
        self,
        attempt: Attempt,
        worktree: Worktree,
        confined: Sequence[str],
        ends_at: float | None,
    ) -> bool:
        """Run the agent. Returns False if it failed or did not end."""
        timeout_s = None
        if ends_at is not None:
            timeout_s = ends_at - asyncio.get_running_loop().time()
        command = ExecInvocation(
            [*attempt.options, *confined],
            attempt.prompt,
            worktree.cwd,
            self.environment,
            timeout_s,
        )
        folder = worktree.path.parent
        result = None
        try:
            result = await self.engine.run(
                command,
                folder,
                watch=partial(self._watch, attempt),
                grace_s=_GRACE_S,
            )
        except TimeoutError:
            pass
        finally:
            for name in (EVENTS, STDERR):
                (folder / name).unlink(missing_ok=True)
        if result is None or result.timed_out:
            attempt.state = "over budget"
            attempt.why = "the budget of all attempts is used up"
            return False
        _take_result(attempt, result)
        return attempt.state == "done"

    def _keep_change(self, attempt: Attempt, worktree: Worktree) -> str:
        """Write the patch of an attempt. Returns the git tree that the agent left."""
        name = str(attempt.attempt)
        tree, attempt.diff = self.snapshot.keep_worktree(name, worktree)
        diff = attempt.diff.decode(errors="replace")
        attempt.diff_lines = changed_lines(diff)
        patch = self.patches / f"{attempt.attempt}.diff"
        patch.write_bytes(attempt.diff)
        attempt.patch = str(patch)
        return tree

    async def _run_scripts(
        self,
        attempt: Attempt,
        worktree: Worktree,
        tree: str,
        confined: Sequence[str],
    ) -> None:
        """Verify and measure an attempt, in a clean checkout of the tree that the agent left."""
        run = partial(self._run_script, worktree, confined)
        required = verifications(self.config)
        scripts = [(script, of.timeout_s) for of in required for script in of.scripts]
        if scripts or self.score or self.junit:
            await asyncio.to_thread(_check_out, worktree, tree)
        for script, timeout_s in scripts:
            code, ending, _ = await run(script, timeout_s)
            if code != 0:
                attempt.why = f"verify: {script}: {ending} in a clean checkout"
                return
        attempt.passed = True
        if self.score is not None:
            limits = [each.timeout_s for each in required]
            timeout_s = max(limits, default=_SCRIPT_TIMEOUT_S)
            code, ending, last = await run(self.score, timeout_s)
            if code == 0:
                attempt.score = _score(last)
            if attempt.score is None:
                said = f"{ending}, and its last line is {last[:80]!r}, not `score=<number>`"
                attempt.why = f"--score: {said}"
        if self.junit is not None:
            await asyncio.to_thread(_count_tests, attempt, worktree.cwd, self.junit)

    async def _run_script(
        self,
        worktree: Worktree,
        confined: Sequence[str],
        script: str,
        timeout_s: float,
    ) -> tuple[int | None, str, str]:
        """Run a script in the sandbox.

        Returns its exit code (None after the time-out), its ending in words, and the last line of
        its standard output.
        """
        sandbox = [*self.sandbox, *confined]
        code, printed = await self.engine.run_script(
            script, worktree.cwd, sandbox, timeout_s
        )
        if code is None:
            ending = f"did not end within {timeout_s:g} s"
        else:
            ending = f"exit code {code}"
        _, _, last_line = printed.rstrip().rpartition("\n")
        return code, ending, last_line.strip()

    def _confined(self, worktree: Worktree) -> list[str]:
        """Options that keep commands out of the user's tree, wherever the worktree is."""
        policy = worktree.confined(
            self.config.sandbox_workspace_write, self.environment
        )
        settings = {
            "writable_roots": [str(root) for root in policy.writable_roots],
            "exclude_slash_tmp": policy.exclude_slash_tmp,
            "exclude_tmpdir_env_var": policy.exclude_tmpdir_env_var,
        }
        words: list[str] = []
        for name, value in settings.items():
            words += ["-c", f"sandbox_workspace_write.{name}={json.dumps(value)}"]
        return words

    def _watch(self, attempt: Attempt, line: bytes) -> None:
        """Keep the usage that an event of the agent tells, and pass the event on."""
        if line.startswith(b'{"type":"usage"'):
            event = json.loads(line)
            attempt.usage = Usage(**event["usage"])
        self.watch(attempt, line)


def _take_result(attempt: Attempt, result: ExecResult) -> None:
    """Copy the result of the agent's process into the attempt."""
    attempt.state = _STATES.get(result.exit_code, "failed")
    attempt.exit_code = result.exit_code
    attempt.thread_id = result.thread_id
    attempt.last_message = result.last_message
    attempt.error = result.error
    attempt.seconds = result.seconds
    if result.usage is not None:
        attempt.usage = Usage(**result.usage)
    reasons = [
        f"{gate['name']}: {gate.get('reason')}"
        for gate in result.gates or ()
        if gate["status"] == "failed"
    ]
    if reasons:
        attempt.why = "; ".join(reasons)
    elif result.error is not None:
        attempt.why = result.error.get("message")
    else:
        attempt.why = None


def _score(line: str) -> float | None:
    """Read a line `score=<number>`. Returns None for any other line, and for `nan` and `inf`."""
    with suppress(ValueError):
        score = float(line.removeprefix("score="))
        if line.startswith("score=") and isfinite(score):
            return score
    return None


def _check_out(worktree: Worktree, tree: str) -> None:
    """Make the folder of the worktree equal to this tree, without any other file.

    Raises a `CodexError` if git fails.
    """
    # Without an index, git rewrites every file.
    folder = Path(worktree.git.variables["GIT_DIR"])
    (folder / "index").unlink(missing_ok=True)
    git = worktree.git.without_filters(worktree.path)
    git.output(worktree.path, "clean", "-ffdxq")
    git.output(worktree.path, "read-tree", "--reset", "-u", tree)


def _count_tests(attempt: Attempt, folder: Path, pattern: str) -> None:
    """Count the tests of all JUnit reports. Files of another kind are left out."""
    # Unlike `Path.glob`, this takes any pattern.
    for name in glob(pattern, root_dir=folder, recursive=True, include_hidden=True):  # noqa: PTH207
        # A `LookupError` means an unknown encoding.
        with suppress(OSError, ElementTree.ParseError, ValueError, LookupError):
            text = read_whole(folder / name, _MAX_REPORT_BYTES)
            failed, passed = _count_cases(ElementTree.fromstring(text))
            attempt.failed_tests = (attempt.failed_tests or 0) + failed
            attempt.passed_tests = (attempt.passed_tests or 0) + passed


def _count_cases(report: ElementTree.Element) -> tuple[int, int]:
    """Count the failed and the passed tests of a JUnit report. Skipped tests are neither."""
    failed = 0
    passed = 0
    for case in report.iter("testcase"):
        tags = {child.tag for child in case}
        if tags & {"failure", "error"}:
            failed += 1
        elif "skipped" not in tags:
            passed += 1
    return failed, passed
