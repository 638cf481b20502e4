"""The methods about threads and their histories, asked of both programs: the answers are the same.

Compares `frontends/app_server` with the released Codex. Left out are ids and times, and the
notifications that only one of them has.
"""

import json
import subprocess
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from codex_py.testing import ev_completed, ev_created, ev_message
from tests.support.app_server import AppServer, CodexAppServer, Message
from tests.support.codex import needs_codex
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

UNKNOWN = str(UUID(int=7))
REVIEW = json.dumps(
    {
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation": "It is fine.",
        "overall_confidence_score": 0.9,
    }
)
LEFT_OUT = {
    "account/rateLimits/updated",
    "thread/readState/changed",
    "thread/tokenUsage/updated",
    "thread/status/changed",
    "item/agentMessage/delta",
    "warning",
}


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def said(text: str) -> Message:
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part]}


def methods_since(server: AppServer, start: int) -> list[str]:
    found = [each.get("method", "") for each in server.seen[start:]]
    return [method for method in found if method and method not in LEFT_OUT]


def looks(items: Sequence[Message]) -> list[tuple[Any, ...]]:
    """The kinds of items, with what matters of each."""
    found: list[tuple[Any, ...]] = []
    for item in items:
        kind = item["type"]
        if kind == "userMessage":
            found.append((kind, item["content"][0]["text"]))
        elif kind == "commandExecution":
            names = ("source", "status", "exitCode", "aggregatedOutput", "cwd")
            found.append((kind, *(item[name] for name in names)))
        else:
            found.append((kind, item.get("text"), item.get("review")))
    return found


def pages(server: AppServer, thread: Message) -> list[Any]:
    """The pages of a history, and what leads from one to the next."""
    found: list[Any] = []
    for view in ("full", "summary", "notLoaded"):
        for direction in ("asc", "desc"):
            asked = {**thread, "itemsView": view, "sortDirection": direction}
            page = server.ask("thread/turns/list", {**asked, "limit": 1})
            rest = server.ask(
                "thread/turns/list", {**asked, "cursor": page["nextCursor"]}
            )
            other = {"asc": "desc", "desc": "asc"}[direction]
            back = {
                **asked,
                "sortDirection": other,
                "cursor": rest["backwardsCursor"],
            }
            again = server.ask("thread/turns/list", back)
            for each in (page, rest, again):
                found += [
                    (turn["status"], turn["itemsView"], looks(turn["items"]))
                    for turn in each["data"]
                ]
                found.append(each["nextCursor"] is None)
    for direction in ("asc", "desc"):
        asked = {**thread, "sortDirection": direction}
        page = server.ask("thread/items/list", {**asked, "limit": 3})
        rest = server.ask("thread/items/list", {**asked, "cursor": page["nextCursor"]})
        for each in (page, rest):
            found.append(looks([entry["item"] for entry in each["data"]]))
    turn = page["data"][0]["turnId"]
    nothing = server.ask("thread/items/list", {**thread, "turnId": "nope"})
    found.append(nothing)
    of_turn = server.ask("thread/items/list", {**thread, "turnId": turn})
    return [*found, looks([entry["item"] for entry in of_turn["data"]])]


def mistakes(server: AppServer, thread: Message, others: Message) -> list[Any]:
    """The errors of wrong requests."""
    anchor = {"type": "item", "itemId": "x"}
    git = {"gitInfo": {"branch": "x"}}
    ephemeral = {"threadId": others["ephemeral"]}
    unknown = {"threadId": UNKNOWN}
    asked: list[tuple[str, Message]] = [
        ("thread/turns/list", {**thread, "cursor": "bad"}),
        ("thread/turns/list", {"threadId": others["new"]}),
        ("thread/turns/list", ephemeral),
        ("thread/turns/list", unknown),
        ("thread/items/list", {**thread, "cursor": "bad"}),
        ("thread/items/list", {**thread, "cursor": anchor}),
        ("thread/items/list", {**thread, "cursor": anchor, "turnId": "x"}),
        ("thread/loaded/list", {"cursor": "bad"}),
        ("thread/inject_items", {**thread, "items": []}),
        ("thread/inject_items", {**unknown, "items": [said("x")]}),
        ("thread/revert", {**thread, "beforeTurnId": "nope"}),
        ("thread/revert", {**ephemeral, "beforeTurnId": "nope"}),
        ("thread/revert", {**unknown, "beforeTurnId": "nope"}),
        ("thread/shellCommand", {**thread, "command": " "}),
        ("thread/shellCommand", {**thread, "command": "x", "timeoutMs": -1}),
        ("thread/shellCommand", {**unknown, "command": "true"}),
        ("thread/metadata/update", thread),
        ("thread/metadata/update", {**thread, "gitInfo": {}}),
        ("thread/metadata/update", {**thread, "gitInfo": {"sha": " "}}),
        ("thread/metadata/update", {**ephemeral, **git}),
        ("thread/metadata/update", {**unknown, **git}),
        ("thread/delete", ephemeral),
        ("thread/delete", unknown),
        ("review/start", {**thread, "target": {"type": "commit", "sha": " "}}),
        ("review/start", {**thread, "target": {"type": "baseBranch", "branch": ""}}),
        ("review/start", {**thread, "target": {"type": "custom", "instructions": ""}}),
        ("review/start", {**unknown, "target": {"type": "uncommittedChanges"}}),
    ]
    errors: list[Any] = []
    for method, params in asked:
        error = server.refused(method, params)
        text = error["message"]
        for thread_id in (*thread.values(), *others.values()):
            text = text.replace(thread_id, "THREAD")
        errors.append((method, error["code"], text))
    return errors


def facts(server: AppServer) -> dict[str, Any]:
    """Go through all methods. Returns what was seen."""
    thread = {"threadId": server.thread()}
    thread_id = thread["threadId"]
    found: dict[str, Any] = {}
    items = {**thread, "items": [said("injected")]}
    found["inject"] = server.ask("thread/inject_items", items)
    ids: list[str] = []
    for text in ("one", "two"):
        ids.append(server.turn(thread_id, text))
        server.ended(thread_id)
    start = len(server.seen)
    command = "echo out; echo err >&2; exit 3"
    asked = {**thread, "command": command}
    found["shell"] = server.ask("thread/shellCommand", asked)
    turn = server.ended(thread_id)
    found["shell turn"] = (turn["status"], turn["items"], turn["itemsView"])
    found["shell methods"] = list(dict.fromkeys(methods_since(server, start)))
    found["pages"] = pages(server, thread)
    others = {
        "new": server.thread(),
        "ephemeral": server.thread(ephemeral=True),
    }
    found["mistakes"] = mistakes(server, thread, others)
    git = {"branch": "b", "sha": "12", "originUrl": "https://example.org/x"}
    for change in (git, {"branch": None}, {"sha": "34"}):
        asked = {**thread, "gitInfo": change}
        answer = server.ask("thread/metadata/update", asked)["thread"]
        found[f"git {change}"] = answer["gitInfo"]
    start = len(server.seen)
    target = {"type": "custom", "instructions": "see"}
    answer = server.ask("review/start", {**thread, "target": target})
    found["review"] = (looks(answer["turn"]["items"]), answer["turn"]["status"])
    assert answer["reviewThreadId"] == thread_id
    turn = server.ended(thread_id)
    found["review turn"] = (turn["status"], looks(turn["items"]), turn["itemsView"])
    (reviewed,) = server.ask(
        "thread/turns/list", {**thread, "limit": 1, "itemsView": "full"}
    )["data"]
    found["stored review"] = looks(reviewed["items"])
    start = len(server.seen)
    answer = server.ask("thread/revert", {**thread, "beforeTurnId": ids[1]})
    server.told("thread/reverted", **thread)
    found["revert methods"] = methods_since(server, start)
    found["revert"] = (answer["thread"]["turns"], answer["thread"]["status"])
    for name in ("turns", "items"):
        cursor = answer[f"{name}BackwardsCursor"]
        asked = {**thread, "cursor": cursor, "sortDirection": "desc"}
        page = server.ask(f"thread/{name}/list", asked)
        found[f"{name} after revert"] = len(page["data"])
    server.turn(thread_id, "three")
    server.ended(thread_id)
    loaded = sorted([thread_id, *others.values()])
    page = server.ask("thread/loaded/list", {"limit": 2})
    assert page == {"data": loaded[:2], "nextCursor": loaded[1]}
    for name in ("first", "second"):
        found[f"unsubscribe {name}"] = server.ask("thread/unsubscribe", thread)
    start = len(server.seen)
    found["delete"] = server.ask("thread/delete", thread)
    server.told("thread/deleted", **thread)
    # The status of the last turn may come before these.
    last = server.seen[start:][-3:]
    found["delete methods"] = [each.get("method") for each in last]
    found["unsubscribe third"] = server.ask("thread/unsubscribe", thread)
    return found


@needs_codex
def test_both_programs_answer_the_same(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = Workplace.below(tmp_path_factory.mktemp("compared"))
    subprocess.run(["git", "init", "-q"], cwd=place.cwd, check=True)
    seen: list[dict[str, Any]] = []
    prompts: list[list[str]] = []
    for program in (AppServer, CodexAppServer):
        answers = [says(text) for text in ("a", "b", REVIEW, "c")]
        with ScriptedServer(answers, check_prefix=False) as model:
            place.configure(model)
            with program(place.home, place.cwd) as server:
                seen.append(facts(server))
        last = model.requests[-1].fields["input"]
        texts = [item["content"][0]["text"] for item in last if "content" in item]
        prompts.append([text for text in texts if not text.startswith(("<", "You"))])
    ours, theirs = seen
    for name, value in theirs.items():
        assert ours[name] == value, name
    assert prompts[0] == prompts[1]


def first_turns(server: AppServer, place: Workplace) -> list[Any]:
    """Give the first turn of each kind of thread all settings. Returns those that are told."""
    other = place.cwd / "other"
    other.mkdir(exist_ok=True)
    settings: Message = {
        "cwd": str(other),
        "model": "gpt-5.4",
        "approvalPolicy": "never",
        "approvalsReviewer": "auto_review",
        "serviceTier": "flex",
        "effort": "low",
        "summary": "none",
        "sandboxPolicy": {"type": "workspaceWrite"},
    }
    first = server.thread(sandbox="read-only")
    server.turn(first, "earlier")
    server.ended(first)
    threads = [
        server.thread(sandbox="read-only"),
        server.thread(sandbox="read-only", ephemeral=True),
    ]
    for ephemeral in (False, True):
        asked = {"threadId": first, "ephemeral": ephemeral, "excludeTurns": True}
        threads.append(server.ask("thread/fork", asked)["thread"]["id"])
    found: list[Any] = []
    for thread in threads:
        server.turn(thread, "go", **settings)
        turn = server.ended(thread)
        found.append(turn["status"])
        if server.ask("thread/read", {"threadId": thread})["thread"]["ephemeral"]:
            # Codex does not resume it, not even to tell its settings.
            continue
        resumed = server.ask("thread/resume", {"threadId": thread})
        names = ("cwd", "model", "approvalPolicy", "serviceTier", "reasoningEffort")
        sandbox = resumed["sandbox"]
        found.append(
            (
                resumed["thread"]["id"] == thread,
                *(resumed[name] for name in names),
                (sandbox["type"], sandbox["networkAccess"]),
            )
        )
    return found


def asked_for(fields: Message, place: Workplace) -> tuple[Any, ...]:
    """The parts of a request that the settings decide."""
    texts = [
        part["text"]
        for item in fields["input"]
        for part in item.get("content", ())
        if "text" in part
    ]
    folders = [text for text in texts if "<environment_context>" in text]
    permissions = [text for text in texts if "<permissions instructions>" in text]
    return (
        fields["model"],
        fields["service_tier"],
        fields["reasoning"]["effort"],
        f"<cwd>{place.cwd / 'other'}</cwd>" in folders[-1],
        "`workspace-write`" in permissions[-1],
        "earlier" in texts,
    )


@needs_codex
def test_the_first_turns_of_both_programs_take_the_same_settings(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = Workplace.below(tmp_path_factory.mktemp("compared"))
    seen: list[Any] = []
    for program in (AppServer, CodexAppServer):
        answers = [says(text) for text in ("a", "b", "c", "d", "e")]
        with ScriptedServer(answers, check_prefix=False) as model:
            place.configure(model)
            with program(place.home, place.cwd) as server:
                told = first_turns(server, place)
        requests = [asked_for(each.fields, place) for each in model.requests[1:]]
        seen.append((told, requests))
    assert seen[0] == seen[1]
