"""Converts what ChatGPT tells about a plan to the format of Codex 0.171."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.json_fields import (
    JsonObject,
    as_object,
    integer_field,
    object_field,
    objects,
    text_field,
)
from codex_py.protocol.stream import PlanLimit, PlanUse

_OWN_LIMIT: Final = "codex"
"""The id of the limits that hold for requests of a session."""
_PLANS: Final = frozenset(
    {
        "free",
        "go",
        "plus",
        "pro",
        "prolite",
        "promax",
        "team",
        "self_serve_business_prolite",
        "self_serve_business_usage_based",
        "business",
        "ent26",
        "enterprise",
        "enterprise_cbp_automation",
        "enterprise_cbp_usage_based",
        "edu",
        "edu_plus",
        "edu_pro",
        "sci",
        "sci_plus",
    }
)
_CREDIT_STATUSES: Final = frozenset({"available", "redeeming", "redeemed"})
_MAX_PERCENT: Final = 1_000_000
_REACHED: Final = frozenset(
    {
        "rate_limit_reached",
        "workspace_owner_credits_depleted",
        "workspace_member_credits_depleted",
        "workspace_owner_usage_limit_reached",
        "workspace_member_usage_limit_reached",
    }
)


def plan_type(plan: str | None) -> str:
    """Return a plan as the protocol names it; `unknown` for one that it does not name."""
    if plan in _PLANS:
        return plan
    return "unknown"


def rate_limits(usage: JsonObject, credits: JsonObject | None = None) -> Fields:
    """Return the answer to `account/rateLimits/read`.

    What is missing in the answers of ChatGPT, or has another type, is null here.

    Args:
        usage: its answer about the usage.
        credits: its answer about the credits that reset limits; None if there is none.
    """
    plan = plan_type(text_field(usage, "plan_type"))
    own = object_field(usage, "rate_limit")
    reached: str | None = text_field(
        object_field(usage, "rate_limit_reached_type"), "type"
    )
    if reached not in _REACHED:
        reached = None
    spending = object_field(usage, "spend_control")
    main = {
        **_limits(_OWN_LIMIT, None, own, plan),
        "credits": _credits(usage),
        "spendControlReached": _flag(spending, "reached"),
        "rateLimitReachedType": reached,
    }
    by_id = {_OWN_LIMIT: main}
    for other in _others(usage):
        limit_id = text_field(other, "metered_feature")
        name = text_field(other, "limit_name") or None
        if limit_id and limit_id not in by_id:
            limits = object_field(other, "rate_limit")
            by_id[limit_id] = _limits(limit_id, name, limits, plan)
    return {
        "rateLimits": main,
        "rateLimitsByLimitId": by_id,
        "ordinaryUsageAllowed": _flag(own, "allowed"),
        "rateLimitResetCredits": _reset_credits(usage, credits),
        "accountId": text_field(usage, "account_id") or None,
        "rateLimitUpsell": None,
    }


def limits_in_use(use: PlanUse) -> Fields | None:
    """The limits that the answers to a session tell; None if they tell none.

    Source: `account/rateLimits/updated` of Codex 0.171.
    """
    if use.primary is None and use.secondary is None:
        return None
    plan: str | None = None
    if use.plan is not None:
        plan = plan_type(use.plan)
    return {
        **_limits(_OWN_LIMIT, None, {}, plan),
        "primary": _limit_in_use(use.primary),
        "secondary": _limit_in_use(use.secondary),
    }


def _limit_in_use(limit: PlanLimit | None) -> Fields | None:
    if limit is None:
        return None
    return {
        # As in Codex, half a percent is rounded up.
        "usedPercent": int(min(limit.used_percent, _MAX_PERCENT) + 0.5),
        "windowDurationMins": limit.window_minutes,
        "resetsAt": limit.resets_at,
    }


def _reset_credits(usage: JsonObject, credits: JsonObject | None) -> Fields | None:
    """The credits that reset limits.

    Without their own answer, or if a credit in it is not understood, there is only their number.
    """
    given = object_field(usage, "rate_limit_reset_credits")
    count = integer_field(given, "available_count")
    details: list[Fields] | None = None
    if credits is not None and isinstance(credits.get("credits"), list):
        found = [_reset_credit(each) for each in objects(credits["credits"])]
        details = [each for each in found if each is not None]
        if len(details) == len(credits["credits"]):
            count = integer_field(credits, "available_count")
        else:
            details = None
    if count is None:
        return None
    return {"availableCount": count, "credits": details}


def _reset_credit(credit: JsonObject) -> Fields | None:
    """A credit; None without an id or a time."""
    credit_id = text_field(credit, "id")
    granted_at = _seconds(credit, "granted_at")
    if not credit_id or granted_at is None:
        return None
    kind = "unknown"
    if credit.get("reset_type") == "codex_rate_limits":
        kind = "codexRateLimits"
    status = text_field(credit, "status")
    if status not in _CREDIT_STATUSES:
        status = "unknown"
    return {
        "id": credit_id,
        "resetType": kind,
        "status": status,
        "grantedAt": granted_at,
        "expiresAt": _seconds(credit, "expires_at"),
        "title": text_field(credit, "title") or None,
        "description": text_field(credit, "description") or None,
    }


def _seconds(fields: JsonObject, name: str) -> int | None:
    """A time of ISO 8601, in seconds since 1970."""
    try:
        moment = datetime.fromisoformat(text_field(fields, name))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return int(moment.timestamp())


def _others(usage: JsonObject) -> list[JsonObject]:
    """The limits of other features."""
    found: Any = usage.get("additional_rate_limits")
    if not isinstance(found, list):
        return []
    return [as_object(other) for other in cast("list[Any]", found)]


def _limits(
    limit_id: str, name: str | None, limits: JsonObject, plan: str | None
) -> Fields:
    return {
        "limitId": limit_id,
        "limitName": name,
        "normalModelSlug": None,
        "primary": _window(limits, "primary_window"),
        "secondary": _window(limits, "secondary_window"),
        "credits": None,
        "individualLimit": None,
        "spendControlReached": None,
        "planType": plan,
        "rateLimitReachedType": None,
    }


def _window(limits: JsonObject, name: str) -> Fields | None:
    """A window of time, for which there is a limit; None without its usage."""
    window = object_field(limits, name)
    used = _whole(window, "used_percent")
    if used is None:
        return None
    minutes: int | None = None
    seconds = _whole(window, "limit_window_seconds")
    if seconds is not None:
        # As in Codex, a part of a minute counts as one.
        minutes = -(-seconds // 60)
    return {
        "usedPercent": used,
        "windowDurationMins": minutes,
        "resetsAt": _whole(window, "reset_at"),
    }


def _credits(usage: JsonObject) -> Fields | None:
    credits = object_field(usage, "credits")
    has_credits = _flag(credits, "has_credits")
    if has_credits is None:
        return None
    return {
        "hasCredits": has_credits,
        "unlimited": credits.get("unlimited") is True,
        "balance": text_field(credits, "balance") or None,
    }


def _whole(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)


def _flag(fields: Mapping[str, Any], name: str) -> bool | None:
    value = fields.get(name)
    if isinstance(value, bool):
        return value
    return None
