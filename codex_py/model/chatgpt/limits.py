"""Reads what the answers for a ChatGPT plan say about its limits, in the headers of Codex 0.150."""

from collections.abc import Mapping
from math import isfinite

from codex_py.protocol.stream import PlanLimit, PlanUse


def plan_use(plan: str | None, headers: Mapping[str, str]) -> PlanUse:
    """Return the use of a plan. What the headers do not tell, or tell in another form, is None.

    Args:
        plan: the name of the plan.
        headers: those of an answer, with names in any case or in lower case.
    """
    return PlanUse(plan, _limit("primary", headers), _limit("secondary", headers))


def _limit(name: str, headers: Mapping[str, str]) -> PlanLimit | None:
    prefix = f"x-codex-{name}"
    used = _number(headers.get(f"{prefix}-used-percent"))
    if used is None:
        return None
    return PlanLimit(
        used,
        _whole(headers.get(f"{prefix}-window-minutes")),
        _whole(headers.get(f"{prefix}-reset-at")),
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    if not isfinite(number) or number < 0:
        return None
    return number


def _whole(text: str | None) -> int | None:
    """A number of minutes or seconds; None for nothing, which a server may write as 0."""
    number = _number(text)
    if not number or number > 1e12:
        return None
    return int(number)
