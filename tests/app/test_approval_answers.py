"""The table of answers to a question about a call."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.approval_answers import (
    ANSWERS,
    FOR_SESSION,
    NO,
    ONCE,
    STOP,
    WITH_RULE,
    answer_by_id,
    offered_answers,
    rule_words,
)
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision

REQUEST = ApprovalRequest(
    kind="command", summary="git push", cwd=Path("/repo"), prefix=("git", "a b\x1b")
)


def test_each_decision_is_one_answer() -> None:
    assert [answer.decision for answer in ANSWERS] == list(ReviewDecision)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [ONCE, FOR_SESSION, WITH_RULE, NO, STOP]),
        ({"can_last": False}, [ONCE, WITH_RULE, NO, STOP]),
        ({"prefix": None}, [ONCE, FOR_SESSION, NO, STOP]),
        ({"prefix": (), "can_last": False}, [ONCE, NO, STOP]),
    ],
)
def test_an_answer_is_offered_if_it_makes_a_difference(
    changes: dict[str, Any], expected: list[Any]
) -> None:
    assert offered_answers(replace(REQUEST, **changes)) == expected


def test_the_labels_name_what_is_allowed() -> None:
    assert [answer.label(REQUEST) for answer in ANSWERS] == [
        "Yes, proceed",
        "Yes, and do not ask again for this command in this session",
        "Yes, and do not ask again for commands that start with `git 'a b␛'`, in any session",
        "No, and say what to do instead",
        "No, and stop here",
    ]
    host = replace(REQUEST, kind="network", prefix=("example.org",))
    assert FOR_SESSION.label(host).endswith("this host in this session")
    assert WITH_RULE.label(host) == "Yes, and allow `example.org` in any session"
    assert rule_words(replace(REQUEST, prefix=None)) == ""


def test_a_yes_allows_and_some_answers_last() -> None:
    assert [each for each in ANSWERS if each.allows] == [ONCE, FOR_SESSION, WITH_RULE]
    assert [each for each in ANSWERS if each.lasts] == [FOR_SESSION, WITH_RULE]
    assert [each for each in ANSWERS if each.takes_feedback] == [NO]


def test_an_answer_becomes_a_review() -> None:
    assert ONCE.review() == Review(ReviewDecision.APPROVED)
    assert NO.review("use git") == Review(ReviewDecision.DENIED, "use git")


@pytest.mark.parametrize("given", ["approved_with_rule", "yes", None, ["approved"], 1])
def test_an_answer_that_was_not_offered_means_no(given: object) -> None:
    assert answer_by_id("approved", [ONCE, NO]) is ONCE
    assert answer_by_id(given, [ONCE, STOP]) is NO
