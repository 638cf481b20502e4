"""Decides what a row of a task file may say if the person who runs it has not read it.

docs/batch.md describes the rules.

A task file is often a stranger's data set. Without `--trust-tasks`, its rows are data: they say
what to do, and can lower the limits of a run. They cannot choose a program, a place, a permission
or a provider.
"""

import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from codex_py.api.configuration import LIMITS

SWITCH: Final = "--trust-tasks"
_MAX_NAMED: Final = 4
_INSIDE: Final = ("repo", "prompt_file")
"""Columns that name a path, which must be below the working directory."""
_COLUMNS: Final[Mapping[str, str]] = {
    "id": "It names the result.",
    "prompt": "It is text for the model, as the files of the repository are.",
    "prompt_file": "The same text, from a file below the working directory.",
    "repo": "A repository below the working directory. The task works in a worktree of it.",
    "base": "A commit that this repository already has.",
    "timeout": "A limit, which can only be lowered.",
    "max_turns": "A limit, which can only be lowered.",
    "max_tokens": "A limit, which can only be lowered.",
    "max_cost": "A limit, which can only be lowered.",
    "model": "A model of the provider that the person has chosen.",
    "config": "Each of its keys is looked up in `_SETTINGS`.",
    "priority": "It is the order of the tasks.",
    "meta": "It is copied into the result.",
}
"""The columns that any row may have, and why."""
_SETTINGS: Final[Mapping[str, str]] = {
    "model": "A model of the provider that the person has chosen.",
    "model_reasoning_effort": "How much the model thinks.",
    "model_reasoning_summary": "How its thoughts are summed up.",
    "model_verbosity": "How much it says.",
    "model_context_window": "A size of the model.",
    "model_max_output_tokens": "The length of an answer.",
    "model_auto_compact_token_limit": "When the history is summed up.",
    "tool_output_token_limit": "How much of an output the model gets.",
    "parallel_tool_calls": "How many calls a response may have.",
    **{f"budget.{name}": "A limit, which can only be lowered." for name in LIMITS},
}
"""The keys that `config` of any row may have, and why. Keys are compared as they are written: a
key that is quoted, nested or spelled in another way is not in the table."""


class RowRules:
    """Rules for the rows that the person has not read.

    Args:
        provider: the provider that the person has chosen for the batch.
        provider_of: returns the provider that is used for a model name.
    """

    def __init__(self, provider: str, provider_of: Callable[[str], str]) -> None:
        self._provider = provider
        self._provider_of = provider_of
        self._cwd = os.path.realpath(Path.cwd())

    def offences(self, row: Mapping[str, Any], known: Container[str]) -> Iterator[str]:
        """Find the columns and settings that need `--trust-tasks`.

        An allowed key with a bad value comes with the reason.

        Args:
            known: the columns of a task. Other columns are refused anyway.
        """
        for column, value in row.items():
            if column not in _COLUMNS:
                if column in known:
                    yield _shown(column)
            elif column == "config":
                yield from self._offending_settings(value)
            elif column in _INSIDE and not self._is_inside(value):
                yield f"{_shown(column)} (it leads out of the working directory)"
            elif column == "model":
                yield from self._offending_model(column, value)

    def _offending_settings(self, config: Any) -> Iterator[str]:
        if not isinstance(config, dict):
            # Such a row is not a task, whoever wrote it.
            return
        for key, value in cast("dict[str, Any]", config).items():
            if key not in _SETTINGS:
                yield _shown(f"config.{key}")
            elif key == "model":
                yield from self._offending_model(f"config.{key}", value)

    def _offending_model(self, key: str, model: Any) -> Iterator[str]:
        if not isinstance(model, str):
            return
        provider = self._provider_of(model)
        if provider != self._provider:
            yield f"{_shown(key)} (it names the provider {provider!r})"

    def _is_inside(self, path: Any) -> bool:
        if not isinstance(path, str):
            return True
        return Path(os.path.realpath(path)).is_relative_to(self._cwd)


class RefusedSettings:
    """Counts a file's settings that need `--trust-tasks`, and their rows; keeps the first ones."""

    def __init__(self) -> None:
        self.rows = 0
        self._count = 0
        self._first: list[str] = []

    def add(self, line: int, offences: Sequence[str]) -> None:
        self.rows += 1
        self._count += len(offences)
        for offence in offences[: _MAX_NAMED - len(self._first)]:
            self._first.append(f"line {line} {offence}")

    def sentence(self) -> str:
        """Say how many settings are refused, which ones come first, and how to allow them."""
        settings = _counted(self._count, "setting")
        rows = _counted(self.rows, "row")
        named = ", ".join(self._first)
        left = self._count - len(self._first)
        if left:
            named += f" and {left:,} more"
        return (
            f"{settings} in {rows} could run a program, widen what it may do, or send it elsewhere:"
            f" {named}. If you have read them, add {SWITCH}"
        )


def _counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}s"


def _shown(key: str) -> str:
    """Quote a key, of which no more than 60 characters are shown."""
    if len(key) > 60:
        key = f"{key[:60]}…"
    return repr(key)
