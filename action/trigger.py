"""Decides whether whoever started a job of GitHub Actions may have it run an agent, from what the job itself is told.

https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

from collections.abc import Mapping
from typing import Any, Final

_NEED_WRITE_ACCESS: Final = {
    *("push", "workflow_dispatch", "repository_dispatch", "schedule", "release"),
    *("create", "delete", "merge_group", "deployment", "registry_package"),
}
"""Events that only somebody who may write to the repository causes."""
_WRITTEN_BY_SOMEBODY: Final = (
    "discussion",
    "issue",
    "pull_request",
    "comment",
    "review",
)
"""What an event may be about, the innermost last."""
_BELONG: Final = {"OWNER", "MEMBER", "COLLABORATOR"}
_BOTS_OF_GITHUB: Final = {"dependabot[bot]", "github-actions[bot]"}


def refusal(
    actor: str, event_name: str, event: Mapping[str, Any], inputs: Mapping[str, str]
) -> str | None:
    """The reason why this actor may not, for people; None if it may.

    Args:
        event: the payload of the webhook.
        inputs: those of the action; `allow-users`, `allow-bots` and `allow-bot-users` count.
    """
    name = actor.lower()
    if {"*", name} & _names(inputs["allow-users"]):
        return None
    if name.endswith("[bot]"):
        listed = {
            bot.removesuffix("[bot]") + "[bot]"
            for bot in _names(inputs["allow-bot-users"])
        }
        if name in listed or (
            inputs["allow-bots"] == "true" and name in _BOTS_OF_GITHUB
        ):
            return None
        return f"{actor} is a bot: name it in `allow-bot-users`"
    if event_name in _NEED_WRITE_ACCESS:
        return None
    about: dict[str, Any] = {}
    for kind in _WRITTEN_BY_SOMEBODY:
        about = event.get(kind) or about
    if event_name == "pull_request" and event.get("action") == "synchronize":
        head: dict[str, Any] = about["head"].get("repo") or {}
        if head.get("full_name") == event["repository"]["full_name"]:
            # Whoever pushed to a branch of this repository may write to it.
            return None
    author: dict[str, str] = about.get("user") or {}
    if (
        name == author.get("login", "").lower()
        and about.get("author_association") in _BELONG
    ):
        return None
    return f"{event_name} does not show that {actor} belongs to the repository: see `allow-users`"


def _names(text: str) -> set[str]:
    return {name.strip().lower() for name in text.split(",") if name.strip()}
