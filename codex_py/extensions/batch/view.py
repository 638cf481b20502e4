"""Shows the progress of a batch, as lines of JSON or as a line on standard error."""

import json
import os
import time
from collections import Counter
from collections.abc import Mapping

from codex_py.api.streams import READER_LEFT, CodexError, OutputStream

_PAUSE_S = 1.0
"""The time between two lines of progress, on a terminal and as JSON."""
_LOG_PAUSE_S = 30.0
"""The same time, if standard error is no terminal."""


class View:
    """Prints the progress of a batch.

    Args:
        out: file descriptor for JSON; None: text on standard error.
        total: number of all tasks of the batch.
        statuses: number of tasks that have ended already, by status.
    """

    def __init__(
        self,
        out: int | None,
        total: int,
        statuses: Counter[str],
    ) -> None:
        self._is_json = out is not None
        self._is_log = out is None and not os.isatty(2)
        self._stream = OutputStream(2 if out is None else out)
        self._total = total
        self._statuses = statuses
        self._usage = Counter[str]()
        self._before = statuses.total()
        """The number of tasks that had ended when the batch began."""
        self._began = time.monotonic()
        self._due = self._began
        """The time from which progress is printed again."""

    def exit_code(self, code: int) -> int:
        """Return the exit code of the batch: `READER_LEFT` if the JSON's reader left, else `code`.

        Raises:
            CodexError: the JSON could not be written.
        """
        failure = self._stream.failure
        if not self._is_json or failure is None:
            return code
        if self._stream.reader_left:
            return READER_LEFT
        raise CodexError(
            f"Failed to write to standard output: {failure.strerror}", code="stdout"
        )

    def count(self, status: str, usage: Mapping[str, int] | None) -> None:
        """Count a task that has ended, and the tokens that it used."""
        self._statuses[status] += 1
        self._usage.update(usage or {})

    def show(self, running: int, exit_code: int | None = None) -> None:
        """Print the progress, unless it was printed just now.

        With an exit code, print it in any case: the batch has ended.
        """
        now = time.monotonic()
        if exit_code is None and now < self._due:
            return
        if self._is_log:
            self._due = now + _LOG_PAUSE_S
        else:
            self._due = now + _PAUSE_S
        ended = self._statuses.total()
        elapsed_s = max(now - self._began, 0.001)
        ended_per_s = (ended - self._before) / elapsed_s
        eta_s = None
        if ended_per_s:
            eta_s = round((self._total - ended) / ended_per_s)
        if self._is_json:
            self._print_json(running, ended_per_s, eta_s, exit_code)
        else:
            self._print_text(running, eta_s, is_last=exit_code is not None)

    def _print_json(
        self,
        running: int,
        ended_per_s: float,
        eta_s: int | None,
        exit_code: int | None,
    ) -> None:
        data = {
            "type": "batch.progress",
            "total": self._total,
            "ended": self._statuses.total(),
            "running": running,
            "statuses": self._statuses,
            "usage": self._usage,
            "tasks_per_minute": round(ended_per_s * 60, 1),
            "eta_s": eta_s,
        }
        if exit_code is not None:
            data["type"] = "batch.completed"
            data["exit_code"] = exit_code
        self._stream.write_text(json.dumps(data) + "\n")

    def _print_text(
        self,
        running: int,
        eta_s: int | None,
        *,
        is_last: bool,
    ) -> None:
        counts = [f"{count} {status}" for status, count in self._statuses.items()]
        named = ", ".join(counts) or "none"
        ended = self._statuses.total()
        text = f"{ended} of {self._total} tasks ended ({named}), {running} running"
        if running and eta_s is not None:
            text += f", about {eta_s // 60 + 1} min left"
        if not self._is_log:
            text += "\x1b[K"
        # On a terminal, the next line of progress replaces this one.
        if self._is_log or is_last:
            text += "\n"
        else:
            text += "\r"
        self._stream.write_text(text)
