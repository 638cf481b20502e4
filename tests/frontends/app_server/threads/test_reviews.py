"""Reviews for a client: items and their order are those of `codex app-server` 0.171.

Tests `frontends/app_server/threads/reviews.py`.
"""

import json
import subprocess
from typing import Any

import pytest

from codex_py.testing import Pause, ev_completed, ev_created, ev_failed, ev_message
from tests.support.app_server import AppServer, Message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

FINDINGS = json.dumps(
    {
        "findings": [
            {
                "title": "Bad",
                "body": "why",
                "confidence_score": 0.9,
                "priority": 1,
                "code_location": {
                    "absolute_file_path": "a.txt",
                    "line_range": {"start": 1, "end": 1},
                },
            }
        ],
        "overall_correctness": "patch is incorrect",
        "overall_explanation": "One problem.",
        "overall_confidence_score": 0.8,
    }
)


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def git(place: Workplace, *words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=place.cwd,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    return done.stdout.strip()


@pytest.fixture
def repository(place: Workplace) -> Workplace:
    """A repository with a commit on `main`, another one, and a change that is not committed."""
    git(place, "init", "-q", "-b", "main")
    file = place.cwd / "a.txt"
    for number, branch in ((1, "main"), (2, "topic")):
        file.write_text(f"{number}\n", encoding="utf-8")
        git(place, "add", ".")
        git(place, "commit", "-q", "-m", f"commit {number}")
        if branch == "main":
            git(place, "switch", "-q", "-c", "topic")
    file.write_text("3\n", encoding="utf-8")
    return place


def items_of(server: AppServer, turn: str) -> list[Message]:
    return [
        message["params"]["item"]
        for message in server.seen
        if message.get("method") == "item/completed"
        and message["params"]["turnId"] == turn
    ]


def test_a_review_is_a_turn_with_two_items_around_it(repository: Workplace) -> None:
    with ScriptedServer([says(FINDINGS), says("mended")], each_thread=True) as model:
        repository.configure(model)
        with AppServer(repository.home, repository.cwd) as server:
            thread = server.thread()
            asked = {"threadId": thread, "target": {"type": "uncommittedChanges"}}
            answer = server.ask("review/start", asked)
            assert answer["reviewThreadId"] == thread
            (prompt,) = answer["turn"]["items"]
            assert prompt["content"][0]["text"] == "current changes"
            turn = server.ended(thread)
            assert turn["id"] == answer["turn"]["id"]
            assert turn["status"] == "completed"
            live = items_of(server, turn["id"])
            kinds = [item["type"] for item in live]
            assert kinds == ["enteredReviewMode", "exitedReviewMode", "agentMessage"]
            assert live[0]["review"] == "current changes"
            assert live[1]["review"] == live[2]["text"]
            assert "Review comment:\n\n- Bad" in live[1]["review"]
            server.turn(thread, "mend it")
            server.ended(thread)
        with AppServer(repository.home, repository.cwd) as server:
            turns = server.ask(
                "thread/turns/list", {"threadId": thread, "itemsView": "full"}
            )["data"]
            # A stored review is shown as it was live.
            assert turns[1]["items"] == live
    said = json.dumps(model.requests[1].fields["input"])
    assert "One problem." in said


def test_each_target_names_its_change(repository: Workplace) -> None:
    sha = git(repository, "rev-parse", "HEAD")
    targets: list[tuple[Message, str, str]] = [
        ({"type": "baseBranch", "branch": "main"}, "changes since main", "-1\n+3\n"),
        (
            {"type": "commit", "sha": sha, "title": "commit 2"},
            f"commit {sha}: commit 2",
            "-1\n+2\n",
        ),
        ({"type": "custom", "instructions": "see"}, "see", "see"),
    ]
    script = [says(FINDINGS)] * len(targets)
    with ScriptedServer(script, each_thread=True) as model:
        repository.configure(model)
        with AppServer(repository.home, repository.cwd) as server:
            thread = server.thread()
            for target, name, _ in targets:
                asked = {"threadId": thread, "target": target, "delivery": "inline"}
                turn = server.ask("review/start", asked)["turn"]["id"]
                server.ended(thread)
                assert items_of(server, turn)[0]["review"] == name
    for request, (_, _, change) in zip(model.requests, targets, strict=True):
        (text,) = [part["text"] for part in request.fields["input"][-1]["content"]]
        assert change in text


def test_what_cannot_be_reviewed_is_no_turn(repository: Workplace) -> None:
    with AppServer(repository.home, repository.cwd) as server:
        thread = {"threadId": server.thread()}
        targets: list[tuple[Message, str]] = [
            ({"type": "commit", "sha": " "}, "sha must not be empty"),
            ({"type": "baseBranch", "branch": ""}, "branch must not be empty"),
            ({"type": "custom", "instructions": "\n"}, "instructions must not"),
            ({"type": "baseBranch", "branch": "gone"}, "no commit or branch 'gone'"),
            ({"type": "commit", "sha": "a\0b"}, "embedded null byte"),
            ({"type": "nothing"}, "Invalid request: `target.type`"),
        ]
        for target, text in targets:
            error = server.refused("review/start", {**thread, "target": target})
            assert (error["code"], text in error["message"]) == (-32600, True)
        # As in Codex 0.171, a review runs in its thread alone.
        asked = {**thread, "target": {"type": "uncommittedChanges"}}
        error = server.refused("review/start", {**asked, "delivery": "detached"})
        assert "delivery" in error["message"]
        git(repository, "checkout", "-q", "--", "a.txt")
        error = server.refused("review/start", asked)
        assert "there is nothing to review" in error["message"]
        assert not any("turn/started" in str(each) for each in server.seen)


def test_a_review_that_fails_has_its_last_item_too(repository: Workplace) -> None:
    broken = [ev_failed("invalid_prompt", "no")]
    with ScriptedServer([broken], each_thread=True) as model:
        repository.configure(model)
        with AppServer(repository.home, repository.cwd) as server:
            thread = server.thread()
            asked = {"threadId": thread, "target": {"type": "uncommittedChanges"}}
            turn = server.ask("review/start", asked)["turn"]["id"]
            assert server.ended(thread)["status"] == "failed"
            live = items_of(server, turn)
            text = "Reviewer failed to output a response."
            assert [item["review"] for item in live] == ["current changes", text]
            (stored,) = server.ask(
                "thread/turns/list", {"threadId": thread, "itemsView": "full"}
            )["data"]
            assert stored["items"] == live


def test_a_review_interrupts_the_running_turn(repository: Workplace) -> None:
    pause = Pause()
    running = [ev_created(), *ev_message("I begin", pieces=2)[:3], pause]
    script = [running, says(FINDINGS)]
    with ScriptedServer(script, check_prefix=False) as model:
        repository.configure(model)
        with AppServer(repository.home, repository.cwd) as server:
            thread = server.thread()
            first = server.turn(thread)
            server.told("item/agentMessage/delta")
            asked = {"threadId": thread, "target": {"type": "uncommittedChanges"}}
            turn = server.ask("review/start", asked)["turn"]["id"]
            end = server.ended(thread)
            pause.until.set()
            done = [
                (each["params"]["turn"]["id"], each["params"]["turn"]["status"])
                for each in server.seen
                if each.get("method") == "turn/completed"
            ]
            assert done == [(first, "interrupted"), (turn, "completed")]
            assert end["id"] == turn
