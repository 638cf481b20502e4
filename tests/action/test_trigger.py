"""Who may start the agent, by what a job is told of its event."""

from collections.abc import Mapping
from typing import Any

import pytest

from action.trigger import refusal


def refused(
    actor: str, event_name: str, event: Mapping[str, Any] | None = None, **inputs: str
) -> bool:
    given = {"allow-users": "", "allow-bots": "false", "allow-bot-users": ""}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    return refusal(actor, event_name, event or {}, given) is not None


def by(name: str, association: str) -> dict[str, Any]:
    return {"user": {"login": name}, "author_association": association}


@pytest.mark.parametrize(
    "event_name", ["push", "workflow_dispatch", "schedule", "release"]
)
def test_whoever_writes_to_the_repository_may(event_name: str) -> None:
    assert not refused("anna", event_name)


@pytest.mark.parametrize(
    "event_name", ["workflow_run", "watch", "fork", "gollum", "something"]
)
def test_an_event_that_anybody_may_cause_is_not_enough(event_name: str) -> None:
    assert refused("anna", event_name)
    assert not refused("Anna", event_name, allow_users="bob, anna")
    assert not refused("anna", event_name, allow_users="*")


@pytest.mark.parametrize(
    ("association", "is_refused"),
    [
        *(("OWNER", False), ("MEMBER", False), ("COLLABORATOR", False)),
        *(
            ("CONTRIBUTOR", True),
            ("FIRST_TIME_CONTRIBUTOR", True),
            ("NONE", True),
            ("", True),
        ),
    ],
)
def test_the_author_must_belong_to_the_repository(
    association: str, is_refused: bool
) -> None:
    for name, kind in (("issues", "issue"), ("pull_request_target", "pull_request")):
        assert refused("Anna", name, {kind: by("anna", association)}) is is_refused


def test_the_author_of_a_comment_counts_and_not_that_of_the_issue() -> None:
    event = {"issue": by("anna", "OWNER"), "comment": by("mallory", "NONE")}
    assert refused("mallory", "issue_comment", event)
    event = {"issue": by("mallory", "NONE"), "comment": by("anna", "OWNER")}
    assert not refused("anna", "issue_comment", event)


def test_whoever_touches_what_another_wrote_is_not_its_author() -> None:
    assert refused(
        "mallory", "issues", {"issue": by("anna", "OWNER"), "action": "labeled"}
    )
    assert refused(
        "mallory", "pull_request_target", {"pull_request": by("anna", "OWNER")}
    )


def test_a_push_to_a_branch_of_the_repository_needs_write_access() -> None:
    def event(head: str | None) -> dict[str, Any]:
        request = {**by("bob", "NONE"), "head": {"repo": head and {"full_name": head}}}
        return {
            "action": "synchronize",
            "repository": {"full_name": "o/r"},
            "pull_request": request,
        }

    assert not refused("anna", "pull_request", event("o/r"))
    assert refused("anna", "pull_request", event("mallory/r"))
    assert refused("anna", "pull_request", event(None))
    assert refused("anna", "pull_request", {**event("o/r"), "action": "opened"})


def test_a_bot_is_named_or_one_of_github() -> None:
    assert refused("dependabot[bot]", "push")
    assert not refused("dependabot[bot]", "push", allow_bots="true")
    assert refused("other[bot]", "push", allow_bots="true")
    for names in ("other", "a, Other[bot]"):
        assert not refused("other[bot]", "push", allow_bot_users=names)
    assert not refused("other[bot]", "push", allow_users="*")
    assert refused("other", "watch", allow_bot_users="other")
