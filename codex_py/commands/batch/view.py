"""Shows the progress of a batch, as lines of JSON or as a line on standard error."""

import json
import os
import time
from collections import Counter
from collections.abc import Mapping

from codex_py.errors import CodexError
from codex_py.streams.standard import READER_LEFT, OutputStream

_PAUSE_S = 1.0
_LOG_PAUSE_S = 30.0


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
        self._stream = OutputStream(2 if out is None else out)
        self._is_json = out is not None
        self._total = total
        self._statuses = statuses
        self._began = time.monotonic()
        self._before = statuses.total()
        self._is_log = out is None and not os.isatty(2)
        self._due = self._began
        self._usage = Counter[str]()

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
        left = self._total - ended
        rate = (ended - self._before) / max(now - self._began, 0.001)
        eta_s = round(left / rate) if rate else None
        if self._is_json:
            if exit_code is None:
                kind = "progress"
            else:
                kind = "completed"
            data = {"type": f"batch.{kind}", "total": self._total, "ended": ended}
            data |= {
                "running": running,
                "statuses": self._statuses,
                "usage": self._usage,
            }
            data |= {"tasks_per_minute": round(rate * 60, 1), "eta_s": eta_s}
            if exit_code is not None:
                data |= {"exit_code": exit_code}
            self._stream.write_text(json.dumps(data) + "\n")
            return
        counts = ", ".join(
            f"{count} {status}" for status, count in self._statuses.items()
        )
        text = f"{ended} of {self._total} tasks ended ({counts or 'none'}), {running} running"
        if running and eta_s is not None:
            text += f", about {eta_s // 60 + 1} min left"
        if self._is_log or exit_code is not None:
            end = "\n"
        else:
            end = "\r"
        if not self._is_log:
            text += "\x1b[K"
        self._stream.write_text(text + end)
