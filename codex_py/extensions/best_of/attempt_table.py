"""The table of all attempts, which is printed at the end."""

from collections.abc import Sequence
from typing import Final

from codex_py.api.streams import aligned, on_one_line
from codex_py.extensions.best_of.attempt import Attempt

_COLUMNS: Final = (
    "ATTEMPT",
    "VARIED",
    "STATE",
    "PASSED",
    "SCORE",
    "DIFF",
    "TOKENS",
    "SECONDS",
)
_NUMBERS: Final = range(4, 8)
"""The columns that are aligned to the right."""


def attempt_lines(attempts: Sequence[Attempt]) -> list[str]:
    """Make the lines of the table: a heading, and a line for each attempt."""
    rows: list[Sequence[str]] = [_COLUMNS, *map(_cells, attempts)]
    return [line.rstrip() for line in aligned(rows, _NUMBERS)]


def _cells(attempt: Attempt) -> list[str]:
    """The row of an attempt."""
    settings = [f"{key}={value}" for key, value in attempt.varied.items()]
    varied = " ".join(settings)
    passed = "yes" if attempt.passed else "no"
    seconds = None
    if attempt.seconds is not None:
        seconds = round(attempt.seconds, 1)
    cells = [
        str(attempt.attempt),
        varied or "-",
        attempt.state,
        passed,
        _or_dash(attempt.score),
        _or_dash(attempt.diff_lines),
        str(attempt.usage.total_tokens),
        _or_dash(seconds),
    ]
    return list(map(on_one_line, cells))


def _or_dash(value: object) -> str:
    if value is None:
        return "-"
    return str(value)
