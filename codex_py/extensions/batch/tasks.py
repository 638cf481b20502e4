"""Reads the task file of a batch, one JSON object per line. docs/batch.md describes it.

The whole file is checked before anything runs. Only a few fields of each task stay in memory; the
rest is read again.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self, TypeAlias, cast

from codex_py.api.commands import CodexError, UsageError, frozen, suggestion
from codex_py.api.configuration import (
    LIMITS,
    Budget,
    Config,
    ConfigError,
    amount,
    bad_setting,
)
from codex_py.api.data import Mistake, RepeatedKey, read, unique_fields
from codex_py.api.files import NotText, decode_text, denials_of
from codex_py.api.streams import shortened
from codex_py.api.worktrees import project_root
from codex_py.extensions.batch.untrusted import SWITCH, RefusedSettings, RowRules

_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_QUOTED_CHARACTERS = 80
_AMOUNTS = {
    "timeout": "max_time",
    "max_turns": "max_turns",
    "max_tokens": "max_tokens",
    "max_cost": "max_cost",
}
"""The columns with an amount, and the limits whose forms they have: `90`, `"2h"`."""
_Setting: TypeAlias = str | int | float | bool | list[Any]


@frozen(kw_only=True)
class Task:
    """A task. Its row has been checked."""

    id: str
    prompt: str = ""
    prompt_file: str | None = None
    cwd: str | None = None
    repo: str | None = None
    """The repository of which the task gets a work tree of its own. It excludes `cwd`."""
    base: str = "HEAD"
    verify: str | list[str] = ""
    timeout: float | None = None
    max_turns: float | None = None
    max_tokens: float | None = None
    max_cost: float | None = None
    model: str | None = None
    provider: str | None = None
    config: Mapping[str, _Setting] = field(default_factory=dict[str, _Setting])
    """Settings as `exec -c` takes them. The keys are dotted."""
    priority: int = 0
    env: list[str] = field(default_factory=list[str])
    """Variables that must be set."""
    meta: Any = None

    @classmethod
    def of(cls, row: Any, environment: Mapping[str, str]) -> Self:
        """Make a task of a decoded row of the file.

        Raises:
            ValueError: the first mistake, as a clause.
        """
        if not isinstance(row, dict):
            raise ValueError("a task is a JSON object")
        columns = _with_amounts(cast("dict[str, Any]", row))
        task, mistakes = read(cls, columns, exact=True)
        if mistakes:
            raise ValueError(_clause(mistakes[0]))
        assert isinstance(task, cls)
        task.check(environment)
        return task

    def check(self, environment: Mapping[str, str]) -> None:
        """Check that the columns fit together, and that the files and variables exist.

        Raises:
            ValueError: the first mistake, as a clause.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", self.id):
            quoted = shortened(self.id, _MAX_QUOTED_CHARACTERS)
            raise ValueError(
                f"id: {quoted!r} cannot be an id: use 1 to 128 letters from A to Z, digits,"
                " `.`, `_` and `-`, without `.` at the beginning"
            )
        has_prompt = bool(self.prompt.strip())
        has_file = self.prompt_file is not None
        if has_prompt == has_file:
            raise ValueError("write either `prompt` or `prompt_file`")
        if self.prompt_file is not None and not Path(self.prompt_file).is_file():
            raise ValueError(f"there is no file {self.prompt_file!r}")
        self._check_folder()
        missing = set(self.env).difference(environment)
        if missing:
            raise ValueError(f"a variable is not set: {', '.join(sorted(missing))}")
        words = [self.prompt, self.base, *self.exec_options()]
        if any("\0" in word for word in words):
            raise ValueError("it has a NUL character, which no program can be given")
        self._check_settings()

    def _check_settings(self) -> None:
        if self.model is not None and not _names_model(self.model):
            raise ValueError(f"model: {self.model!r} names no model")
        for key, value in self.config.items():
            try:
                problem = _setting_problem(key, value)
            except (ValueError, ConfigError) as error:
                problem = f"`{key}`: {error}"
            if problem is not None:
                raise ValueError(f"config: {problem}")

    def _check_folder(self) -> None:
        if self.repo is not None and self.cwd is not None:
            raise ValueError("write either `cwd` or `repo`")
        folder = self.repo or self.cwd or "."
        if not Path(folder).is_dir():
            raise ValueError(f"there is no folder {folder!r}")
        if self.repo is not None:
            root = project_root(Path(self.repo).resolve(), (".git",))
            if root is None:
                raise ValueError(f"{self.repo!r} is in no git repository")

    def row(self) -> dict[str, Any]:
        """The columns whose values are not the defaults: a row that makes an equal task."""
        default = Task(id="")
        row: dict[str, Any] = {}
        for column in fields(self):
            value = getattr(self, column.name)
            if value != getattr(default, column.name):
                row[column.name] = value
        return row

    def whole_prompt(self) -> str:
        """The prompt, or the text of the prompt file.

        Raises:
            OSError: the file cannot be read.
            CodexError: the file is not text.
        """
        if self.prompt_file is None:
            return self.prompt
        try:
            return decode_text(Path(self.prompt_file).read_bytes())
        except NotText as error:
            raise CodexError(f"{self.prompt_file} cannot be read: {error}") from error

    def exec_options(self) -> list[str]:
        """The options of `exec` that stand for the columns of the task."""
        settings: dict[str, _Setting] = {}
        if self.provider is not None:
            settings["model_provider"] = self.provider
        settings |= self.config
        options: list[str] = []
        for key, value in settings.items():
            if key not in _LIMIT_KEYS:
                options.append(f"--config={_assignment(key, value)}")
        single = {"model": self.model, **self._limits()}
        for name, value in single.items():
            if value is not None:
                options.append(f"--{name.replace('_', '-')}={value}")
        verify = self.verify
        if isinstance(verify, str):
            verify = [verify] if verify else []
        options += [f"--verify={script}" for script in verify]
        return options

    def tightened(self, budget: Budget, timeout_s: float | None) -> Self:
        """Copy the task, lowering its limits to these. None means no limit.

        Raises:
            ValueError: an amount in `config` cannot be read.
        """
        columns: dict[str, float | None] = {"timeout": _lower(self.timeout, timeout_s)}
        config = {
            key: value for key, value in self.config.items() if key not in _LIMIT_KEYS
        }
        for name, own in self._limits().items():
            if own is not None:
                own = _read_amount(name, own)
            limit = _lower(own, getattr(budget, name))
            if name in _COLUMNS:
                columns[name] = limit
            elif limit is not None:
                config[f"budget.{name}"] = limit
        return replace(self, **columns, config=config)

    def has_max_cost(self) -> bool:
        return self._limits()["max_cost"] is not None

    def _limits(self) -> dict[str, Any]:
        """The task's limits by their names in `LIMITS`. The value is None where it sets none.

        A column takes precedence over a setting in `config`.
        """
        found: dict[str, Any] = {}
        for name, key in zip(LIMITS, _LIMIT_KEYS, strict=True):
            value = getattr(self, name, None)
            if value is None:
                value = self.config.get(key)
            found[name] = value
        return found


def _assignment(key: str, value: _Setting) -> str:
    return f"{key}={json.dumps(value)}"


def _names_model(model: str) -> bool:
    _, _, name = model.rpartition("/")
    return bool(name.strip())


def _setting_problem(key: str, value: _Setting) -> str | None:
    """Say what is wrong with a setting of `config`; None if nothing is.

    Raises:
        ValueError: it is a limit, whose amount cannot be read.
        ConfigError: it is no key.
    """
    if key in _LIMIT_KEYS:
        limit = key.removeprefix("budget.")
        _read_amount(limit, value)
        return None
    problem = bad_setting(_assignment(key, value))
    if problem is None and key == "model" and not _names_model(str(value)):
        return f"`model` {value!r} names no model"
    return problem


def _lower(one: float | None, other: float | None) -> float | None:
    """The lower one of two limits. None means no limit."""
    if one is None:
        return other
    if other is None:
        return one
    return min(one, other)


def _with_amounts(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a row with its amounts as numbers. Raises a `ValueError` if one cannot be read."""
    found = dict(columns)
    for name, limit in _AMOUNTS.items():
        value = found.get(name)
        if value is None:
            continue
        try:
            found[name] = _read_amount(limit, value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


def _clause(mistake: Mistake) -> str:
    """Say in a clause what is wrong with a row, in the terms of JSON."""
    key = ".".join(mistake.path)
    if mistake.reason == "unknown":
        return f"unknown key {key!r}.{suggestion(key, _COLUMNS)}"
    return f"{key}: {mistake.error().reason}"


def _read_amount(limit: str, value: object) -> float:
    """Read a value of a limit of this name. Raises a `ValueError` if it cannot be read."""
    try:
        return amount(limit, str(value))
    except ConfigError as error:
        raise ValueError(str(error)) from None


_LIMIT_KEYS = tuple(f"budget.{name}" for name in LIMITS)
"""The settings that limit a run, in the order of `LIMITS`."""
_OF_SWE_BENCH = {
    "instance_id": "id",
    "problem_statement": "prompt",
    "base_commit": "base",
}
"""Maps columns of SWE-bench to their names here."""
_COLUMNS = {*(each.name for each in fields(Task)), *_OF_SWE_BENCH}
"""The names that a row may use."""


@dataclass(slots=True)
class Row:
    """The part of a task that stays in memory."""

    id: str
    offset: int
    """The place of the task's line in the file, in bytes."""
    digest: str
    """The digest of the task's line."""
    provider: str
    priority: int
    has_settings: bool = False
    """True if a configuration that does not work may be due to the task, and not to its provider."""
    attempts: Sequence[Mapping[str, Any]] = ()
    """Short records of the attempts that have ended."""
    failures: int = 0
    """The number of attempts that were lost, or refused although no other task of the provider
    ran."""


class TaskFile:
    """Checks the lines of a task file, and reads single tasks again.

    Args:
        config: configuration of the batch. Tasks that name no provider use its provider, and files
            that it denies are not read.
        rules: rules for rows that the person has not read; None if the person trusts them.
        timeout_s: time limit that the person gave; it binds only rows that are not trusted.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        environment: Mapping[str, str],
        config: Config,
        rules: RowRules | None,
        timeout_s: float | None,
    ) -> None:
        self._file = file
        self._name = name
        self._environment = environment
        self._config = config
        self._rules = rules
        self._timeout_s = timeout_s
        self._denials = denials_of(config.files)

    def rows(self) -> Iterator[Row]:
        """Check all lines, and yield the tasks.

        Raises:
            UsageError: a line is bad, or some have settings that need `--trust-tasks`.
        """
        seen: set[str] = set()
        refused = RefusedSettings()
        for number, offset, line in self._lines():
            try:
                columns = _columns(line)
                offences = self._offences(columns)
                if offences:
                    refused.add(number, offences)
                    continue
                task = self._task(columns)
                if task.id in seen:
                    raise ValueError(f"the id {task.id!r} was there before")
            except ValueError as error:
                raise UsageError(f"line {number} of {self._name}: {error}") from None
            seen.add(task.id)
            yield self._row(task, offset, line)
        if refused.rows:
            raise UsageError(f"{self._name}: {refused.sentence()}")

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """The lines that are not blank: the number of each from 1, its offset, and its bytes.

        A line that is too long is cut off.
        """
        number = 0
        offset = 0
        line = self._file.readline(_MAX_LINE_BYTES)
        while line:
            number += 1
            if line.strip():
                yield number, offset, line
            offset += len(line)
            line = self._file.readline(_MAX_LINE_BYTES)

    def task(self, row: Row) -> Task:
        """Read and check a task again. Raises a `UsageError` if it has changed or is invalid."""
        self._file.seek(row.offset)
        line = self._file.readline()
        try:
            if _digest(line) != row.digest:
                raise ValueError("its line has changed since the batch began")
            columns = _columns(line)
            # A link may lead elsewhere by now.
            offences = self._offences(columns)
            if offences:
                raise ValueError(f"{offences[0]} needs {SWITCH}")
            return self._task(columns)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def _offences(self, row: Any) -> list[str]:
        """The columns and settings of a row that need `--trust-tasks`."""
        if self._rules is None or not isinstance(row, dict):
            return []
        return list(self._rules.offences(cast("dict[str, Any]", row), _COLUMNS))

    def _task(self, row: Any) -> Task:
        """Make the task of a row. Raises a `ValueError` with the first mistake."""
        task = Task.of(row, self._environment)
        path = task.prompt_file
        if path is not None and self._denials.refuses(Path(path).absolute()):
            raise ValueError(f"{path!r} is denied")
        if self._rules is None:
            return task
        return task.tightened(self._config.budget, self._timeout_s)

    def _row(
        self,
        task: Task,
        offset: int,
        line: bytes,
    ) -> Row:
        named = task.provider or task.config.get("model_provider")
        provider = str(named or self._config.model_provider)
        return Row(
            task.id,
            offset,
            _digest(line),
            provider,
            task.priority,
            has_settings=self._has_settings(task),
        )

    def _has_settings(self, task: Task) -> bool:
        own = set(task.config).difference(_LIMIT_KEYS, ["model_provider"])
        # A limit in dollars needs a price. The person may have set the same limit for all tasks.
        has_cost = task.has_max_cost() and self._config.budget.max_cost is None
        return bool(own) or task.model is not None or has_cost


def _columns(line: bytes) -> Any:
    """Decode a line. Returns the columns that this program reads.

    Raises:
        ValueError: the line is not JSON, is too long, or repeats a key of an object.
    """
    if len(line) == _MAX_LINE_BYTES:
        raise ValueError("it is longer than 16 MB")
    try:
        row: Any = json.loads(
            line.removeprefix(BOM_UTF8),
            object_pairs_hook=unique_fields,
            parse_constant=_refused,
        )
        # JSON can spell half a character.
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeError:
        raise ValueError("it is not JSON: a character of it is broken") from None
    except RecursionError:
        raise ValueError("it is not JSON: it is nested too deeply") from None
    except RepeatedKey:
        raise
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(row, dict):
        return row
    row = cast("dict[str, Any]", row)
    if "instance_id" in row:
        # Other columns of SWE-bench may have a name of ours, but another meaning.
        read_columns = (*_OF_SWE_BENCH, "repo")
        row = {name: row[name] for name in read_columns if name in row}
    for theirs, ours in _OF_SWE_BENCH.items():
        if theirs in row and ours not in row:
            row[ours] = row.pop(theirs)
    return row


def _digest(line: bytes) -> str:
    return sha256(line.strip()).hexdigest()[:16]


def _refused(name: str) -> NoReturn:
    raise ValueError(f"it has {name}")
