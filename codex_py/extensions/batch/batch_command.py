"""`codex-py batch`: many tasks, an agent for each. docs/batch.md describes it."""

import asyncio
import os
import shutil
import tempfile
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, BinaryIO

from codex_py.api.attempts import Interruption
from codex_py.api.commands import (
    Command,
    ExitCode,
    OneOf,
    UsageError,
    flag,
    frozen,
    option,
    tell,
)
from codex_py.api.configuration import (
    Config,
    ConfigError,
    amount,
    read_config,
    warn_of_config,
)
from codex_py.api.options import Arguments, parse_arguments, unshared_options
from codex_py.api.streams import some_of
from codex_py.extensions.batch.attempt import LocalEngine, failed
from codex_py.extensions.batch.ray_engine import RayEngine
from codex_py.extensions.batch.results import ResultsFile
from codex_py.extensions.batch.schedule import Record, Schedule
from codex_py.extensions.batch.tasks import Row, TaskFile
from codex_py.extensions.batch.untrusted import SWITCH, RowRules
from codex_py.extensions.batch.view import View

_MOST_NAMED = 5
"""Number of tasks that a message names at most."""
_USAGE = "codex-py batch TASKS.jsonl -o RESULTS.jsonl"
_FIRST_FIELDS = ("status", "exit_code", "diff", "usage")
"""The fields of a result that come first, after the id and the digest of the task."""
_TIMEOUT_S = 3600.0
"""Time limit of an attempt, if neither the person nor the task sets one."""


def _count(text: str, least: int = 1) -> int:
    is_count = text.isdecimal() and least <= int(text) <= 100_000
    if not is_count:
        raise ArgumentTypeError(f"{text!r} is no number from {least} to 100000")
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    """Parse `INDEX/COUNT`; the index begins with 0."""
    index, _, count = text.partition("/")
    if not index.isdecimal() or int(index) >= _count(count):
        raise ArgumentTypeError(
            f"{text!r} is no shard: write 0/4 for the first of four"
        )
    return int(index), int(count)


def _limit(text: str) -> tuple[str, int]:
    """Parse `PROVIDER=COUNT`."""
    provider, _, limit = text.partition("=")
    return provider, _count(limit)


def _seconds(text: str) -> float:
    try:
        return amount("max_time", text)
    except ConfigError as error:
        raise ArgumentTypeError(str(error)) from None


@frozen
class BatchOptions:
    literal_words: tuple[str, ...] = ()
    """Options of `exec`, behind `--`."""
    overrides: Annotated[Sequence[str], option("-c", "--config", action="append")] = ()
    tasks: Annotated[str | None, option()] = None
    output: Annotated[str | None, option("-o", "--output")] = None
    jobs: Annotated[int, option("--jobs", type=_count)] = 4
    ray: Annotated[str | None, option("--ray")] = None
    cpus: Annotated[float, option("--cpus", type=float)] = 0.25
    shard: Annotated[tuple[int, int], option("--shard", type=_shard)] = (0, 1)
    limit: Annotated[
        Sequence[tuple[str, int]], option("--limit", action="append", type=_limit)
    ] = ()
    timeout: Annotated[float | None, option("--timeout", type=_seconds)] = None
    trust_tasks: Annotated[bool, flag(SWITCH)] = False
    retries: Annotated[int, option("--retries", type=partial(_count, least=0))] = 2
    fail_fast: Annotated[bool, flag("--fail-fast")] = False
    only: Annotated[str | None, option("--only")] = None
    redo: Annotated[
        Sequence[str],
        option("--redo", action="append", type=OneOf("changed", "failed")),
    ] = ()
    predictions: Annotated[str | None, option("--predictions")] = None
    json: Annotated[bool, flag("--json")] = False


def run_batch(options: BatchOptions, environment: Mapping[str, str]) -> int:
    """Run a batch. Returns the exit code."""
    if options.tasks is None:
        raise UsageError(f"say which tasks: {_USAGE}")
    if options.output is None:
        raise UsageError(f"say where the results go: {_USAGE}")
    overrides = [f"--config={setting}" for setting in options.overrides]
    of_exec = [*overrides, *options.literal_words]
    arguments = _shared_arguments(of_exec)
    config = read_config(arguments, environment)
    warn_of_config(config)
    with _opened(options.tasks) as file:
        if options.trust_tasks:
            rules = None
        else:
            rules = _rules(arguments, config, environment)
        tasks = TaskFile(
            file, options.tasks, environment, config, rules, options.timeout
        )
        rows = _selected(list(tasks.rows()), options)
        results = ResultsFile(Path(options.output))
        results.forget(_ended_to_redo(rows, results, options.redo))
        json_fd = _json_fd(options)
        engine = _engine(options, of_exec, config, environment)
        view = View(json_fd, len(rows), _statuses(rows, results))
        try:
            work = _work(options, tasks, rows, results, engine, view, config.model)
            code = asyncio.run(Interruption().run(work))
        finally:
            engine.close()
    if options.predictions is not None:
        results.write_predictions(Path(options.predictions))
    view.show(0, code)
    if not options.json:
        _tell_not_done(rows, results, options.output)
    return view.exit_code(code)


def _shared_arguments(of_exec: Sequence[str]) -> Arguments:
    """Parse the options of `exec` for all tasks.

    Raises:
        UsageError: there is a prompt, or an option that two tasks cannot share.
    """
    arguments = parse_arguments(["exec", *of_exec])
    if unshared_options(arguments) or arguments.words != ("exec",):
        raise UsageError(
            "behind `--` are options of exec that all tasks can share, and no prompt"
        )
    return arguments


def _json_fd(options: BatchOptions) -> int | None:
    """The file descriptor for the JSON of `--json`; None without this option.

    With Ray, descriptor 1 becomes standard error, because Ray prints to it whatever its settings
    say.
    """
    stdout = 1
    if options.ray is not None:
        stdout = os.dup(1)
        os.dup2(2, 1)
    if options.json:
        return stdout
    return None


def _engine(
    options: BatchOptions,
    of_exec: Sequence[str],
    config: Config,
    environment: Mapping[str, str],
) -> LocalEngine | RayEngine:
    timeout_s = options.timeout or _TIMEOUT_S
    if options.ray is None:
        return LocalEngine(of_exec, timeout_s, config, environment)
    return RayEngine(
        options.ray,
        options.cpus,
        of_exec,
        timeout_s,
        config,
        environment,
        trusts_tasks=options.trust_tasks,
    )


def _statuses(rows: Sequence[Row], results: ResultsFile) -> Counter[str]:
    """Count the tasks that have ended, by status."""
    statuses = Counter[str]()
    for row in rows:
        if row.id in results.ended:
            _, status = results.ended[row.id]
            statuses[status] += 1
    return statuses


def _tell_not_done(
    rows: Sequence[Row],
    results: ResultsFile,
    output: str,
) -> None:
    """Tell which tasks ended without being done, and where their errors are."""
    names: list[str] = []
    for row in rows:
        if row.id not in results.ended:
            continue
        _, status = results.ended[row.id]
        if status != "done":
            names.append(f"{row.id} ({status})")
    if not names:
        return
    text = f"Not done: {some_of(names, _MOST_NAMED)}. {output} has the error of each"
    tell(f"{text}; `--redo failed` runs them again.")


def _rules(
    arguments: Arguments,
    config: Config,
    environment: Mapping[str, str],
) -> RowRules:
    """The rules for rows that the person has not read."""

    @cache
    def provider_of(model: str) -> str:
        with_model = replace(arguments, model=model)
        return read_config(with_model, environment).model_provider

    return RowRules(config.model_provider, provider_of)


async def _work(
    options: BatchOptions,
    tasks: TaskFile,
    rows: Sequence[Row],
    results: ResultsFile,
    engine: LocalEngine | RayEngine,
    view: View,
    model: str,
) -> int:
    """Run the tasks that have not ended. Returns the exit code."""

    async def attempt(row: Row) -> Record:
        view.show(schedule.running)
        try:
            task = tasks.task(row)
        except UsageError as error:
            return failed("failed", str(error))
        folder = results.new_folder(row.id, len(row.attempts) + 1)
        record = await engine.run(task, folder)
        is_stopped = record["status"] == "stopped"
        is_configuration = record["exit_code"] == ExitCode.CONFIGURATION
        if is_stopped and is_configuration and row.has_settings:
            # Tasks without these settings may work.
            record = {**record, "status": "failed"}
        artefacts = str(folder.relative_to(results.folder.parent))
        return {
            **record,
            "artefacts": artefacts,
            "model": task.model or model,
            "meta": task.meta,
        }

    def ended(row: Row, record: Record) -> None:
        results.append(_result(row, record))
        view.count(record["status"], record["usage"])
        view.show(schedule.running)

    left = [row for row in rows if row.id not in results.ended]
    schedule = Schedule(
        left,
        attempt,
        ended,
        jobs=options.jobs,
        limits=dict(options.limit),
        retries=options.retries,
        fail_fast=options.fail_fast,
    )
    await schedule.work()
    for provider, record in schedule.stopped.items():
        message = record["error"]["message"]
        tell(f"Error: no further task ran with {provider}: {message}")
    if schedule.stopped:
        first = next(iter(schedule.stopped.values()))
        return first["exit_code"]
    if _statuses(rows, results)["done"] < len(rows):
        return ExitCode.TURN_FAILED
    return ExitCode.DONE


def _result(row: Row, record: Record) -> Record:
    """The fields of a line of the results file, in their order there."""
    first = {name: record[name] for name in _FIRST_FIELDS}
    result = {"id": row.id, "task": row.digest, **first, **record}
    # The record of a Ray node is a result too, of a batch of its own.
    result["task"] = row.digest
    result["attempts"] = row.attempts
    return result


def _opened(name: str) -> BinaryIO:
    """Open the task file. Standard input is copied to the disk, because tasks are read twice."""
    try:
        if name != "-":
            return Path(name).open("rb")
        with open(0, "rb", closefd=False) as stdin:
            copy = tempfile.TemporaryFile()  # noqa: SIM115 - returned
            shutil.copyfileobj(stdin, copy)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from error
    copy.seek(0)
    return copy


def _selected(rows: Sequence[Row], options: BatchOptions) -> list[Row]:
    """The tasks of the shard that `--only` names, in the order of the file."""
    index, count = options.shard
    known = {row.id for row in rows}
    if options.only is None:
        wanted = known
    else:
        wanted = set(options.only.split(","))
    unknown = wanted - known
    if unknown:
        raise UsageError(f"--only: there is no task {', '.join(sorted(unknown))}")
    if not wanted:
        raise UsageError("there is no task to run")
    return [row for row in rows[index::count] if row.id in wanted]


def _ended_to_redo(
    rows: Sequence[Row],
    results: ResultsFile,
    redo: Sequence[str],
) -> Collection[str]:
    """Find the ended tasks that `--redo` runs again, by id.

    Raises:
        UsageError: a task has changed since it ended, and `changed` is not in `redo`.
    """
    changed: set[str] = set()
    not_done: set[str] = set()
    for row in rows:
        if row.id not in results.ended:
            continue
        digest, status = results.ended[row.id]
        if digest != row.digest:
            changed.add(row.id)
        if status != "done":
            not_done.add(row.id)
    if changed and "changed" not in redo:
        text = f"{len(changed)} tasks have changed since they ended, such as {min(changed)!r}"
        raise UsageError(f"{text}; --redo changed runs them again")
    if "failed" in redo:
        return changed | not_done
    return changed


command = Command(run_batch, Path(__file__).with_name("batch.txt"), BatchOptions)
