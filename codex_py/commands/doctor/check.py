"""Runs a check, and reports it in the format of `codex doctor` 0.171."""

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from codex_py.errors import CodexError
from codex_py.protocol.frozen import frozen

Status: TypeAlias = Literal["ok", "warning", "fail"]
Details: TypeAlias = Mapping[str, "str | list[str]"]


@frozen
class CheckResult:
    status: Status
    summary: str
    """One clause, without a full stop."""
    remediation: str | None = None
    """The advice, in whole sentences on lines of their own; None if nothing is wrong."""
    details: Details = field(default_factory=dict[str, "str | list[str]"])
    """Facts by name, which `--all` and `--json` show."""


@frozen
class Check:
    id: str
    """The id that Codex uses, if it has the same check."""
    category: str
    """The word before the summary in the report."""
    run: Callable[[], CheckResult]


def reported(check: Check) -> dict[str, Any]:
    """Run a check. Returns its report in the format of `codex doctor --json`.

    Never raises: a check that raises any error counts as failed.
    """
    began = time.monotonic()
    try:
        result = check.run()
    except (CodexError, OSError) as error:
        result = CheckResult("fail", str(error), "Correct what the message names.")
    except Exception as error:  # noqa: BLE001 -- one broken check must not hide the others
        summary = f"the check itself failed: {type(error).__name__}: {error}"
        result = CheckResult("fail", summary, "Report this as a bug, with this text.")
    return {
        "id": check.id,
        "category": check.category,
        "status": result.status,
        "summary": result.summary,
        "details": result.details,
        "remediation": result.remediation,
        "durationMs": round((time.monotonic() - began) * 1000),
    }
