"""The result of a check, in the terms of `codex doctor` 0.169."""

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from codex_py.errors import CodexError
from codex_py.protocol.frozen import frozen

Status: TypeAlias = Literal["ok", "warning", "fail"]
Details: TypeAlias = Mapping[str, "str | list[str]"]


@frozen
class Result:
    status: Status
    summary: str
    """One clause, without a full stop."""
    remediation: str | None = None
    """What to do about it, in one sentence; None if nothing is wrong."""
    details: Details = field(default_factory=dict[str, "str | list[str]"])


@frozen
class Check:
    id: str
    """That of Codex, where it has the same check."""
    category: str
    run: Callable[[], Result]


@frozen
class CheckReport:
    check: Check
    result: Result
    duration_ms: int


def reported(check: Check) -> CheckReport:
    """Run a check. Never raises: a check that fails, for whatever reason, is a failed check."""
    began = time.monotonic()
    try:
        result = check.run()
    except (CodexError, OSError) as error:
        result = Result("fail", str(error), "Correct what the message names.")
    except Exception as error:  # noqa: BLE001 -- one broken check must not hide the others
        result = Result(
            "fail",
            f"the check itself failed: {type(error).__name__}: {error}",
            "Report this as a bug, with this text.",
        )
    return CheckReport(check, result, round((time.monotonic() - began) * 1000))


def worst(reports: "list[CheckReport]") -> Status:
    found = {report.result.status for report in reports}
    return "fail" if "fail" in found else "warning" if "warning" in found else "ok"
