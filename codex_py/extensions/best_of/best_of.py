"""`codex-py exec --best-of N`: makes several attempts at one prompt, and applies the best one.

docs/ci.md describes it.

Standard output carries the last message of the best attempt, or with `--json` the events of all
attempts. Everything else goes to standard error.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import fields, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from codex_py.api.attempts import Attempts
from codex_py.api.commands import CodexError, ExitCode, UsageError
from codex_py.api.configuration import ConfigError
from codex_py.api.data import encode_json, plain_data
from codex_py.api.exec_runs import (
    ExecProgram,
    exec_stderr,
    load_exec_config,
    require_images,
    start_reading,
)
from codex_py.api.files import make_record_folder
from codex_py.api.git import for_another_tree
from codex_py.api.options import (
    Arguments,
    exec_target,
    option_words,
    working_folder,
)
from codex_py.api.patches import PatchError
from codex_py.api.prices import price_of, unknown_price
from codex_py.api.streams import on_one_line, printable
from codex_py.api.worktrees import BaseSnapshot, project_root, snapshot_of
from codex_py.extensions.best_of.attempt import Attempt, AttemptRunner
from codex_py.extensions.best_of.attempt_table import attempt_lines
from codex_py.extensions.best_of.choice import best_first, judged
from codex_py.extensions.best_of.options import AttemptOptions
from codex_py.extensions.best_of.variations import variations, varied_prompt

_AT_ONCE: Final = 4
"""The number of attempts that run side by side, unless `--jobs` says otherwise."""
_SLACK_S: Final = 2.0
"""Agents keep to the time limit themselves; one that does not is ended this much later."""
_PATCHES_KEPT_S: Final = 30 * 24 * 3600
_OF_SCRIPTS: Final = {
    "overrides",
    "profile",
    "allow_unenforced",
    "deny",
    "allow_domain",
}
"""The options that also hold for the sandbox of the scripts of `--score` and `--junit`."""
_OF_JUDGE: Final = {
    *_OF_SCRIPTS,
    "model",
    "oss",
    "local_provider",
    "ignore_user_config",
}
"""The options that also hold for the model that judges."""
_NOT_OF_ATTEMPTS: Final = {
    "words",
    "literal_words",
    "cd",
    "trust",
    "json",
    "experimental_json",
    "color",
    "output_last_message",
}
_OF_ATTEMPTS: Final = {each.name for each in fields(Arguments)} - _NOT_OF_ATTEMPTS
"""The options that every attempt gets."""


class BestOfOptions(AttemptOptions):
    def run(self, arguments: Arguments, environment: Mapping[str, str]) -> int:
        """Make the attempts, and apply the best. Returns the exit code."""
        target = exec_target(arguments)
        require_images(arguments, target)
        cwd = working_folder(arguments.cd)
        if project_root(cwd, (".git",)) is None:
            raise UsageError(f"--best-of needs a git repository, and {cwd} is in none")
        combinations = variations(self.vary)
        varied = combinations[0].get("prompt")
        if varied is not None and target.prompt is not None:
            raise UsageError("--vary prompt=… takes the place of PROMPT")
        stderr = exec_stderr()
        prompt = start_reading(
            varied or target.prompt,
            notice=lambda text: stderr.write_text(f"{text}\n"),
            piped=varied is None,
        )
        # An attempt is not a step of a workflow, nor in the tree of a git hook that started us.
        own = for_another_tree(environment)
        own.pop("GITHUB_STEP_SUMMARY", None)
        program = ExecProgram(arguments, target, own, stderr)
        best_of = _BestOf(self, program, prompt, combinations)
        return program.run(best_of.choose)


class _BestOf:
    """Makes the attempts at one prompt, and chooses the best."""

    # `choose` sets these, in this order.
    _attempts: Sequence[Attempt]
    _runner: AttemptRunner
    _ends_at: float | None
    """The time limit of all attempts, on the clock of the loop; None if there is none."""

    def __init__(
        self,
        options: AttemptOptions,
        program: ExecProgram,
        prompt: "Future[str]",
        variations: Sequence[Mapping[str, str]],
    ) -> None:
        self._options = options
        self._program = program
        self._arguments = program.arguments
        self._config = program.config
        self._environment = program.environment
        self._prompt = prompt
        self._variations = variations

    async def choose(self) -> int:
        """Make the attempts, and apply the best. Returns the exit code."""
        prompt = await asyncio.wrap_future(self._prompt)
        config = self._config
        for warning in config.warnings:
            self._program.warn(warning)
        count = self._options.best_of or 1
        root = project_root(config.cwd, (".git",)) or config.cwd
        if len(self._variations) > count:
            self._program.warn(
                f"--vary: only {count} of {len(self._variations)} combinations are tried."
            )
        taken = snapshot_of(
            root,
            config,
            self._environment,
            purpose="best",
            message="codex-py exec --best-of",
        )
        with taken as snapshot:
            attempts: list[Attempt] = []
            spread = islice(cycle(self._variations), count)
            for number, varied in enumerate(spread, 1):
                attempts.append(self._attempt(number, varied, prompt, root))
            self._attempts = attempts
            self._runner = self._make_runner(snapshot)
            with closing(self._runner):
                await self._make_all()
                return await self._conclude(snapshot)

    def _make_runner(self, snapshot: BaseSnapshot) -> AttemptRunner:
        options = self._options
        mode = self._config.sandbox_policy().mode
        worktrees = None
        if options.worktrees:
            worktrees = working_folder(options.worktrees)
        engine = Attempts(self._config.home, self._environment, self._program.warn)
        return AttemptRunner(
            engine,
            snapshot,
            self._config,
            self._environment,
            sandbox=[mode, *option_words(self._arguments, _OF_SCRIPTS)],
            score=options.score,
            junit=options.junit,
            worktrees=worktrees,
            patches=self._patches(snapshot.id),
            watch=self._watch,
        )

    def _attempt(
        self,
        number: int,
        varied: Mapping[str, str],
        prompt: str,
        root: Path,
    ) -> Attempt:
        """Prepare an attempt. Raises a `CodexError` if it could not begin with its variation."""
        own = self._varied_arguments(varied)
        config = load_exec_config(own, self._environment)
        price = price_of(config, config.model, config.model_provider)
        if price is None and config.budget.max_cost is not None:
            why = unknown_price(config.model, config.model_provider)
            raise ConfigError(f"the cost cannot be limited because {why}")
        text = prompt
        if "prompt" in varied:
            text = varied_prompt(varied["prompt"])
        own = replace(
            own,
            add_dir=self._add_dirs(root),
            image=[str(path) for path in own.images],
            output_schema=_absolute(own.output_schema),
            answers=_absolute(own.answers),
        )
        # Nobody can undo a turn in a worktree that has been removed.
        words = [*option_words(own, _OF_ATTEMPTS), "--config=features.undo=false"]
        for options in own.of_extensions:
            if options.is_repeated:
                words += option_words(options)
        return Attempt(number, varied, words, text, price)

    def _varied_arguments(self, varied: Mapping[str, str]) -> Arguments:
        """The command line with one variation, except for its prompt."""
        given = self._arguments
        settings: list[str] = []
        for key, value in varied.items():
            if key == "effort":
                settings.append(f"model_reasoning_effort={value}")
            elif key not in {"model", "prompt"}:
                settings.append(f"{key}={value}")
        return replace(
            given,
            model=varied.get("model", given.model),
            overrides=[*given.overrides, *given.limits, *settings],
            limits=(),
            usage_events=True,
        )

    def _add_dirs(self, root: Path) -> list[str]:
        """The folders of `--add-dir`. An attempt finds those of `root` in its own worktree."""
        folders: list[str] = []
        for given in self._program.add_dirs:
            folder = os.path.normpath(given)
            if Path(folder).is_relative_to(root):
                folder = os.path.relpath(folder, self._config.cwd)
            folders.append(folder)
        return folders

    def _patches(self, name: str) -> Path:
        """The folder for the patches of this run. Removes old ones."""
        folder = self._config.home / "codex-py" / "best-of" / name
        try:
            parent = make_record_folder(self._config.home, "best-of")
            folder.mkdir(mode=0o700, exist_ok=True)
            for path in parent.iterdir():
                if path.stat().st_mtime < time.time() - _PATCHES_KEPT_S:
                    shutil.rmtree(path, ignore_errors=True)
        except OSError as error:
            raise CodexError(f"{folder} cannot be made: {error.strerror}") from error
        return folder

    async def _make_all(self) -> None:
        """Make all attempts, some of them side by side."""
        max_time = self._config.budget.max_time
        began = asyncio.get_running_loop().time()
        self._ends_at = None
        if max_time is not None:
            self._ends_at = began + max_time
        slots = asyncio.Semaphore(self._options.jobs or _AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for attempt in self._attempts:
                group.create_task(self._make(attempt, slots, began))

    async def _make(
        self,
        attempt: Attempt,
        slots: asyncio.Semaphore,
        began: float,
    ) -> None:
        """Make an attempt when a slot is free, within the rest of the budget."""
        async with slots:
            limits = self._limits()
            if limits is None:
                attempt.why = "the budget of all attempts is used up"
                return
            attempt.options = [*attempt.options, *limits]
            self._tell(began, f"attempt {attempt.attempt} begins")
            await self._runner.make(attempt, self._ends_at and self._ends_at + _SLACK_S)
            verdict = "passed"
            if not attempt.passed:
                verdict = attempt.why or "did not pass"
            self._tell(began, f"attempt {attempt.attempt}: {attempt.state}, {verdict}")

    def _limits(self) -> list[str] | None:
        """Options of `exec` with the rest of each limit; None if a limit is used up."""
        budget = self._config.budget
        attempts = self._attempts
        left = dict[str, float]()
        if budget.max_tokens is not None:
            used = sum(each.usage.total_tokens for each in attempts)
            left["max_tokens"] = budget.max_tokens - used
        if budget.max_cost is not None:
            cost = 0.0
            for each in attempts:
                if each.price is not None:
                    cost += each.price.of(each.usage)
            left["max_cost"] = budget.max_cost - cost
        if self._ends_at is not None:
            left["max_time"] = self._ends_at - asyncio.get_running_loop().time()
        if min(left.values(), default=1) <= 0:
            return None
        return [f"--config=budget.{name}={value}" for name, value in left.items()]

    def _watch(self, attempt: Attempt, line: bytes) -> None:
        """Pass an event on, unless only this command, not the user, asked for it."""
        if line.startswith(b'{"type":"usage"'):
            if self._limits() is None:
                self._runner.engine.end_all()
            if not self._arguments.usage_events:
                return
        if self._arguments.json:
            # The event ends with a brace and a newline.
            fields_of_event = line[:-2]
            told = b'%b,"attempt":%d}\n' % (fields_of_event, attempt.attempt)
            self._program.stdout.write(told)

    def _tell(self, began: float, text: str) -> None:
        """Print a line about the progress of all attempts. `began`: on the clock of the loop."""
        seconds = asyncio.get_running_loop().time() - began
        states = [each.state for each in self._attempts]
        running = states.count("running")
        waiting = states.count("not begun")
        tokens = sum(each.usage.total_tokens for each in self._attempts)
        counts = f"{running} running, {waiting} to begin"
        line = f"[{seconds:.0f} s, {tokens:,} tokens; {counts}] {text}"
        self._program.stderr.write_text(f"{on_one_line(line)}\n")

    async def _conclude(self, snapshot: BaseSnapshot) -> int:
        """Apply the best attempt, and report on all of them. Returns the exit code.

        Raises:
            CodexError: the attempts have no score, or the patch does not apply. The report is
                printed all the same.
        """
        passed = [each for each in self._attempts if each.passed]
        winner = None
        why = "no attempt passed"
        error = None
        if self._lack_score(passed):
            why = f"no attempt has a score: {passed[0].why}"
            error = UsageError(why)
        elif passed:
            winner, why = await self._best(passed)
        is_applied = False
        if winner is not None and winner.diff and not self._options.no_apply:
            try:
                committed = snapshot.apply(winner.diff, self._config, self._environment)
                is_applied = True
                for note in committed.notes:
                    self._program.warn(note)
            except PatchError as cause:
                why = f"attempt {winner.attempt} was not applied: {cause}; its patch is {winner.patch}"
                error = CodexError(why, code="patch", exit_code=ExitCode.PATCH)
        self._report(winner, why, is_applied=is_applied)
        if error is not None:
            raise error
        if winner is not None:
            self._program.deliver(winner.last_message)
            return ExitCode.DONE
        codes = {each.exit_code for each in self._attempts if each.exit_code}
        # An exit code that all attempts share, such as that of a missing key, says more.
        if len(codes) == 1:
            return codes.pop()
        return ExitCode.GATE

    def _lack_score(self, passed: Sequence[Attempt]) -> bool:
        """True if attempts passed, but the script of `--score` gave none of them a score."""
        if not passed or not self._options.score:
            return False
        return all(each.score is None for each in passed)

    async def _best(self, passed: Sequence[Attempt]) -> tuple[Attempt, str]:
        """The best attempt, and the reason. The model judges equal ones if the user wants that."""
        order, ties, why = best_first(passed)
        if not self._options.judge or ties < 2:
            return order[0], why
        limits = self._limits()
        if limits is None:
            return order[0], why
        options = [*option_words(self._arguments, _OF_JUDGE), *limits]
        equals = order[:ties]
        try:
            engine = self._runner.engine
            cwd = self._config.cwd
            return await judged(engine, equals, options, cwd, self._environment)
        except CodexError as error:
            self._program.warn(str(error))
            return order[0], why

    def _report(
        self,
        winner: Attempt | None,
        why: str,
        *,
        is_applied: bool,
    ) -> None:
        """Print the table of all attempts, and with `--json` the last event."""
        number = winner and winner.attempt
        if self._arguments.json:
            told = {
                "type": "best.completed",
                "attempts": plain_data(self._attempts),
                "winner": number,
                "applied": is_applied,
                "why": why,
            }
            self._program.stdout.write(encode_json(told) + b"\n")
        lines = attempt_lines(self._attempts)
        if any(each.patch for each in self._attempts):
            lines.append(f"The patches are in {self._runner.patches}.")
        if winner is not None:
            if not winner.diff:
                done = "changes nothing"
            elif is_applied:
                done = "is applied"
            else:
                done = "is the best, and is not applied"
            lines.append(f"Attempt {number} {done}: {why}.")
        report = printable("\n".join(lines))
        self._program.stderr.write_text(f"{report}\n")


def _absolute(path: str | None) -> str | None:
    """An attempt works in another folder, so it gets absolute paths."""
    return path and str(Path(path).absolute())
