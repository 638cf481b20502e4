"""The feature: counts the calls of each turn, refuses those above a limit, and writes the ledger."""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codex_py.api.calls import CallRefused, Dispatch, ToolOutput, ToolUse
from codex_py.api.events import CommandExecution, Event, ItemCompleted
from codex_py.api.extensions import ExitCode, Extension, Thread, TurnStart
from codex_py_ledger.entries import Entry, append


class Ledger:
    """Counts for one session. A subagent shares the object, so its calls count as well."""

    def __init__(
        self, file: Path, max_calls: int | None, *, fails_if_idle: bool
    ) -> None:
        self._file = file
        self._max_calls = max_calls
        self._fails_if_idle = fails_if_idle
        self._calls: Counter[str] = Counter()
        self._failed = 0

    def __call__(self, thread: Thread) -> Extension:
        """Return what the feature wraps and watches. It is called for the session and each subagent."""
        if thread.parent is not None:
            return Extension(wrap_dispatch=self._wrap_dispatch)

        @asynccontextmanager
        async def around_turn(turn: TurnStart) -> AsyncGenerator[None]:
            self._calls.clear()
            self._failed = 0
            try:
                yield
                if self._is_too_idle():
                    thread.warn("The turn called no tool, so the run fails.")
            finally:
                # Also after an error and after Ctrl-C.
                self._write(thread)

        return Extension(
            around_turn=around_turn,
            wrap_dispatch=self._wrap_dispatch,
            sink=self._watch,
            turn_facts=self._facts,
        )

    def _wrap_dispatch(self, dispatch: Dispatch) -> Dispatch:
        async def counted(use: ToolUse) -> ToolOutput:
            if self._calls.total() == self._max_calls:
                limit = f"the limit of {self._max_calls} calls"
                raise CallRefused(
                    f"{limit} is used up; answer with what you know",
                    code="CallLimit",
                    cause=f"{limit} in a turn",
                    allow="--max-calls",
                )
            self._calls[use.call.tool_name] += 1
            return await dispatch(use)

        return counted

    def _watch(self, event: Event) -> None:
        match event:
            case ItemCompleted(CommandExecution(status="failed")):
                self._failed += 1
            case _:
                pass

    def _facts(self) -> Mapping[str, Any]:
        """Return fields for the last event of the turn, which `exec --json` prints."""
        facts: dict[str, Any] = {"ledger": dict(self._calls)}
        if self._is_too_idle():
            facts["exit_code"] = ExitCode.GATE
        return facts

    def _is_too_idle(self) -> bool:
        return self._fails_if_idle and not self._calls

    def _write(self, thread: Thread) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(now, thread.thread_id, dict(self._calls), self._failed)
        try:
            append(self._file, entry)
        except OSError as error:
            thread.warn(f"The ledger cannot be written: {error}")
