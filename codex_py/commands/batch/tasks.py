"""The task file of a batch: a JSON object a line. docs/batch.md describes it.

All of it is checked before anything runs. Only a few words of each task stay in memory; the rest is read again.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Self

import pydantic
from pydantic import AliasChoices, Field

from codex_py.command_line.parser import suggestion
from codex_py.config.limits import amount
from codex_py.config.paths import project_root
from codex_py.errors import ConfigError, UsageError

_MAX_LINE_BYTES = 16 * 1024 * 1024


class Task(pydantic.BaseModel):
    """A task; the names of SWE-bench are read too. To be validated with the environment as its context."""

    model_config = pydantic.ConfigDict(strict=True, frozen=True, extra="forbid")

    id: str = Field(
        validation_alias=AliasChoices("id", "instance_id"),
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$",
    )
    prompt: str = Field("", validation_alias=AliasChoices("prompt", "problem_statement"))
    prompt_file: str | None = None
    cwd: str = "."
    repo: str | None = None
    """The repository of a work tree of its own."""
    base: str = Field("HEAD", validation_alias=AliasChoices("base", "base_commit"))
    verify: str | list[str] = []
    timeout: float | None = None
    max_turns: float | None = None
    max_tokens: float | None = None
    max_cost: float | None = None
    model: str | None = None
    provider: str | None = None
    config: dict[str, str | int | float | bool | list[Any]] = {}
    """As of `exec -c`; the keys are dotted."""
    priority: int = 0
    env: list[str] = []
    """Variables that must be set."""
    meta: Any = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_columns(cls, fields: Any) -> Any:
        """The rows of SWE-bench have many more."""
        match fields:
            case {"instance_id": _}:
                return {name: fields[name] for name in _KNOWN & fields.keys()}
            case _:
                return fields

    @pydantic.field_validator("timeout", "max_turns", "max_tokens", "max_cost", mode="before")
    @classmethod
    def _amount(cls, value: object, info: pydantic.ValidationInfo) -> float:
        try:
            return amount(
                "max_time" if info.field_name == "timeout" else str(info.field_name), str(value)
            )
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @pydantic.model_validator(mode="after")
    def _check(self, info: pydantic.ValidationInfo) -> Self:
        if bool(self.prompt.strip()) == (self.prompt_file is not None):
            raise ValueError("write either `prompt` or `prompt_file`")
        if self.prompt_file is not None and not Path(self.prompt_file).is_file():
            raise ValueError(f"there is no file {self.prompt_file!r}")
        if self.repo is not None and "cwd" in self.model_fields_set:
            raise ValueError("write either `cwd` or `repo`")
        if not Path(folder := self.repo or self.cwd).is_dir():
            raise ValueError(f"there is no folder {folder!r}")
        if self.repo is not None and project_root(Path(self.repo).resolve(), (".git",)) is None:
            raise ValueError(f"{self.repo!r} is in no git repository")
        if missing := set(self.env).difference(info.context or ()):
            raise ValueError(f"a variable is not set: {', '.join(sorted(missing))}")
        if "\0" in "".join((self.prompt, self.base, *self.exec_options())):
            raise ValueError("it has a NUL character, which no program can be given")
        return self

    def whole_prompt(self) -> str:
        """Raises an `OSError` if the file with it cannot be read."""
        if self.prompt_file is None:
            return self.prompt
        return Path(self.prompt_file).read_text(encoding="utf-8", errors="replace")

    def exec_options(self) -> list[str]:
        provider = {} if self.provider is None else {"model_provider": self.provider}
        verify = [self.verify] if isinstance(self.verify, str) else self.verify
        single = {"model": self.model, "max-turns": self.max_turns}
        single |= {"max-tokens": self.max_tokens, "max-cost": self.max_cost}
        return [
            *(f"--config={k}={json.dumps(v)}" for k, v in {**provider, **self.config}.items()),
            *(f"--{name}={value}" for name, value in single.items() if value is not None),
            *(f"--verify={script}" for script in verify),
        ]


_KNOWN = {*Task.model_fields, "instance_id", "problem_statement", "base_commit"}


@dataclass(slots=True)
class Row:
    """What stays of a task in memory."""

    id: str
    offset: int
    digest: str
    """Of its line."""
    provider: str
    priority: int
    attempts: Sequence[Mapping[str, Any]] = ()
    """Those that have ended, in short."""
    failures: int = 0
    """Attempts that failed through no fault of the provider's other tasks."""


class TaskFile:
    """`provider`: that of tasks which name none."""

    def __init__(
        self, file: BinaryIO, name: str, environment: Mapping[str, str], provider: str
    ) -> None:
        self._file, self._name = file, name
        self._environment, self._provider = environment, provider

    def rows(self) -> Iterator[Row]:
        """Check all lines. Raises a `UsageError` for the first bad one."""
        seen: set[str] = set()
        offset = number = 0
        while line := self._file.readline(_MAX_LINE_BYTES):
            number += 1
            if line.strip():
                try:
                    task = self._task(line)
                    if task.id in seen:
                        raise ValueError(f"the id {task.id!r} was there before")
                except ValueError as error:
                    raise UsageError(f"line {number} of {self._name}: {_reason(error)}") from None
                seen.add(task.id)
                provider = task.provider or str(task.config.get("model_provider", self._provider))
                yield Row(task.id, offset, _digest(line), provider, task.priority)
            offset += len(line)

    def task(self, row: Row) -> Task:
        """Read and check a task again. Raises a `UsageError` if it is no more what it was."""
        self._file.seek(row.offset)
        line = self._file.readline()
        try:
            if _digest(line) != row.digest:
                raise ValueError("its line has changed since the batch began")
            return self._task(line)
        except ValueError as error:
            raise UsageError(_reason(error)) from None

    def _task(self, line: bytes) -> Task:
        if len(line) == _MAX_LINE_BYTES:
            raise ValueError("it is longer than 16 MB")
        return Task.model_validate_json(line.removeprefix(BOM_UTF8), context=self._environment)


def _digest(line: bytes) -> str:
    return sha256(line.strip()).hexdigest()[:16]


def _reason(error: Exception) -> str:
    if not isinstance(error, pydantic.ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}.{suggestion(key, _KNOWN)}"
    if first["type"] == "json_invalid":
        return f"it is not JSON: {first['msg'].partition(': ')[2].replace(' at line 1 ', ' at ')}"
    return (f"{key}: " if key else "") + first["msg"].removeprefix("Value error, ")
