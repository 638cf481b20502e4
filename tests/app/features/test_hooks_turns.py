"""Hooks at the events of sessions and turns."""

import asyncio
import json
import os
from dataclasses import replace
from typing import Any

import pytest

from codex_py.app.options import SessionOptions
from codex_py.core.session import Session
from codex_py.protocol.events import TurnCompleted
from codex_py.protocol.extension import ParentThread
from codex_py.testing import ev_completed, ev_message
from tests.support.hooks import DONE, Hooked, command, group, note, run, says, specific
from tests.support.program import Workplace

BYPASS = SessionOptions(bypass_hook_trust=True)


def test_context_of_a_session_comes_before_the_prompt_and_that_of_a_prompt_after_it(
    place: Workplace,
) -> None:
    hooks = {
        "SessionStart": [
            "echo plain",
            specific("SessionStart", additionalContext="second"),
        ],
        "UserPromptSubmit": ["sleep 0.2; echo slow", "echo quick"],
    }
    hooked = run(place, hooks, [DONE])
    assert hooked.said() == [
        ("developer", "plain"),
        ("developer", "second"),
        ("user", "go"),
        ("developer", "slow"),
        ("developer", "quick"),
    ]


def test_a_session_starts_with_its_first_turn_and_ends_once(place: Workplace) -> None:
    hooks = {
        "SessionStart": [
            group(note("start"), "startup"),
            group(note("never"), "resume"),
        ],
        "SessionEnd": [note("end")],
    }

    async def work(session: Session, hooked: Hooked) -> None:
        assert hooked.given("start") == []
        await session.run_turn("one")
        await session.run_turn("two")

    hooked = run(place, hooks, [DONE, DONE], work=work)
    (start,), (end,) = hooked.given("start"), hooked.given("end")
    assert hooked.given("never") == []
    assert start == {
        **{name: start[name] for name in ("session_id", "transcript_path")},
        "cwd": str(place.cwd),
        "hook_event_name": "SessionStart",
        "model": "gpt-5.5",
        "permission_mode": "bypassPermissions",
        "source": "startup",
    }
    assert end == {
        **{name: start[name] for name in ("session_id", "transcript_path", "cwd")},
        "hook_event_name": "SessionEnd",
        "reason": "other",
    }


def test_hooks_know_a_resumed_and_a_cleared_conversation(place: Workplace) -> None:
    hooks = {"SessionStart": [note("start")]}
    run(place, hooks, [DONE])
    run(place, hooks, [DONE], options=replace(BYPASS, resume_last=True))
    hooked = run(place, hooks, [DONE], options=replace(BYPASS, cleared=True))
    sources = [given["source"] for given in hooked.given("start")]
    assert sources == ["startup", "resume", "clear"]


@pytest.mark.parametrize(
    ("event", "hook"),
    [
        ("UserPromptSubmit", "echo secret >&2; exit 2"),
        ("UserPromptSubmit", says({"decision": "block", "reason": "secret"})),
        ("UserPromptSubmit", says({"continue": False, "stopReason": "secret"})),
        ("SessionStart", says({"continue": False, "stopReason": "secret"})),
    ],
)
def test_a_refused_prompt_is_not_sent_and_not_kept(
    place: Workplace, event: str, hook: str
) -> None:
    async def work(session: Session, hooked: Hooked) -> None:
        hooked.results.append(await session.run_turn("the password is 1234"))

    hooked = run(place, {event: [hook]}, [], work=work)
    assert hooked.requests == []
    (result,) = hooked.results
    assert (result.error, result.last_message, result.usage.total_tokens) == (
        None,
        None,
        0,
    )
    assert [type(event) for event in hooked.events][-1] is TurnCompleted
    what = "the turn" if event == "SessionStart" else "the prompt"
    assert hooked.warnings == [f"A {event} hook stopped {what}: secret"]
    assert list(place.home.rglob("rollout-*")) == []


def test_the_prompt_after_a_refused_one_goes_out_alone(place: Workplace) -> None:
    hook = "grep -q password && { echo no >&2; exit 2; }; true"

    async def work(session: Session, hooked: Hooked) -> None:
        await session.run_turn("the password is 1234")
        await session.run_turn("hello")

    hooked = run(place, {"UserPromptSubmit": [hook]}, [DONE], work=work)
    assert hooked.said() == [("user", "hello")]


def test_a_refused_prompt_in_the_middle_of_a_turn_is_told_once(
    place: Workplace,
) -> None:
    async def work(session: Session, hooked: Hooked) -> None:
        turn = asyncio.create_task(session.run_turn("go"))
        async with asyncio.timeout(120):
            await asyncio.to_thread((place.cwd / "began").read_bytes)
        session.steer("the password is 1234")
        (place.cwd / "go").touch()
        hooked.results.append(await turn)

    os.mkfifo(place.cwd / "began")
    hook = "grep -q password && { echo no >&2; exit 2; }; true"
    call = command("echo x > began; until [ -e go ]; do sleep 0.05; done")
    hooked = run(place, {"UserPromptSubmit": [hook]}, [call, DONE], work=work)
    assert hooked.warnings == ["A UserPromptSubmit hook stopped the prompt: no"]
    assert "password" not in str(hooked.requests)
    assert hooked.results[0].last_message == "done"


def test_a_stop_hook_gives_the_agent_more_to_do(place: Workplace) -> None:
    hooks = {
        "PreToolUse": ["true", "true"],
        "Stop": [
            f"{note('stop')}; grep -q 'active\":true' $CODEX_HOME/stop.log || {{ echo 'a < b' >&2; exit 2; }}",
            "grep -q 'active\":true' || { echo second >&2; exit 2; }",
        ],
    }
    replies = [
        [*ev_message("one"), ev_completed()],
        [*ev_message("two"), ev_completed()],
    ]
    hooked = run(place, hooks, replies)
    source = place.home / "hooks.json"
    assert hooked.said()[-2:] == [
        ("user", f'<hook_prompt hook_run_id="stop:2:{source}">a &lt; b</hook_prompt>'),
        ("user", f'<hook_prompt hook_run_id="stop:3:{source}">second</hook_prompt>'),
    ]
    first, second = hooked.given("stop")
    assert first["turn_id"] == second["turn_id"]
    assert (first["stop_hook_active"], second["stop_hook_active"]) == (False, True)
    assert (first["last_assistant_message"], second["last_assistant_message"]) == (
        "one",
        "two",
    )
    (rollout,) = place.home.rglob("rollout-*")
    assert hooked.results[0].last_message == "two"
    assert "hook_prompt" in rollout.read_text(encoding="utf-8")


def test_a_hook_prompt_is_no_prompt_of_the_user(place: Workplace) -> None:
    async def work(session: Session, hooked: Hooked) -> None:
        await session.run_turn("go")
        assert [past.prompt.text for past in session.past_prompts()] == ["go"]

    hook = "grep -q 'active\":true' || { echo more >&2; exit 2; }"
    run(place, {"Stop": [hook]}, [DONE, DONE], work=work)


def test_a_stop_hook_that_always_refuses_is_bounded(place: Workplace) -> None:
    hooked = run(
        place, {"Stop": ["echo 'a < b' >&2; exit 2", "echo c >&2; exit 2"]}, [DONE] * 30
    )
    assert len(hooked.requests) == 21
    (result,) = hooked.results
    assert (result.error, result.exit_code) == (None, 3)
    assert hooked.warnings == [
        "The agent was kept going as often as allowed (20), and the turn ends: a < b\nc"
    ]


@pytest.mark.parametrize("rounds", [0, 2])
def test_the_configuration_bounds_the_rounds_of_stop_hooks(
    place: Workplace, rounds: int
) -> None:
    own = place.home / "codex-py"
    own.mkdir()
    (own / "config.toml").write_text(
        f"[hooks]\nstop_rounds = {rounds}\n", encoding="utf-8"
    )
    hooked = run(
        place, {"Stop": [f"{note('stop')}; echo again >&2; exit 2"]}, [DONE] * 9
    )
    assert len(hooked.requests) == rounds + 1
    active = [given["stop_hook_active"] for given in hooked.given("stop")]
    assert active == [False, *[True] * rounds]
    assert hooked.results[0].exit_code == 3


def test_a_hook_that_stops_wins_over_one_that_refuses(place: Workplace) -> None:
    hooks = {"Stop": ["echo again >&2; exit 2", says({"continue": False})]}
    assert len(run(place, hooks, [DONE]).requests) == 1


def _compacting(trigger: str) -> Any:
    async def work(session: Session, hooked: Hooked) -> None:
        hooked.results.append(await session.run_turn("go"))
        if trigger == "manual":
            hooked.results.append(await session.compact())
        hooked.results.append(await session.run_turn("again"))

    return work


SUMMARY = [*ev_message("the summary"), ev_completed()]


@pytest.mark.parametrize("trigger", ["auto", "manual"])
def test_compaction_is_told_before_and_after(place: Workplace, trigger: str) -> None:
    hooks = {
        "PreCompact": [group(note("pre"), trigger), group(note("never"), "other")],
        "PostCompact": [note("post")],
        "SessionStart": [group("echo compacted", "compact")],
    }
    used = 10_000 if trigger == "auto" else 10
    first = [*ev_message("one"), ev_completed(input_tokens=used)]
    flags = {"model_auto_compact_token_limit": 5_000}
    hooked = run(
        place,
        hooks,
        [first, SUMMARY, DONE],
        work=_compacting(trigger),
        flags=flags,
        check_prefix=False,
    )
    (pre,), (post,) = hooked.given("pre"), hooked.given("post")
    assert hooked.given("never") == []
    assert pre["trigger"] == trigger
    assert pre.keys() == {
        *(
            "session_id",
            "transcript_path",
            "cwd",
            "hook_event_name",
            "turn_id",
            "model",
        ),
        "trigger",
    }
    assert post == {**pre, "hook_event_name": "PostCompact"}
    texts = [text for _, text in hooked.said()]
    (summary,) = [n for n, text in enumerate(texts) if text.endswith("the summary")]
    assert texts.index("compacted") > summary


@pytest.mark.parametrize("trigger", ["auto", "manual"])
def test_a_hook_that_stops_a_compaction_stops_the_turn(
    place: Workplace, trigger: str
) -> None:
    stop = says({"continue": False, "stopReason": "keep it"})
    # Not the second time.
    hooks = {"PreCompact": [f"[ -e stopped ] || {stop}\ntouch stopped"]}
    used = 10_000 if trigger == "auto" else 10
    first = [*ev_message("one"), ev_completed(input_tokens=used)]
    flags = {"model_auto_compact_token_limit": 5_000}

    async def work(session: Session, hooked: Hooked) -> None:
        await session.run_turn("go")
        turn = session.run_turn("again") if trigger == "auto" else session.compact()
        hooked.results.append(await turn)
        hooked.results.append(await session.compact())

    hooked = run(
        place, hooks, [first, SUMMARY], work=work, flags=flags, check_prefix=False
    )
    stopped, compacted = hooked.results
    assert stopped.error is not None
    assert (stopped.error.code, stopped.error.exit_code) == ("compaction", 1)
    assert str(stopped.error) == "a PreCompact hook stopped the turn: keep it"
    assert hooked.warnings == []
    # Nothing was sent, and what was said is kept.
    assert compacted.error is None
    prompts = ["go", "again"] if trigger == "auto" else ["go"]
    assert [text for role, text in hooked.said() if role == "user"][
        : len(prompts)
    ] == prompts


def test_a_child_has_hooks_of_its_own(place: Workplace) -> None:
    events = (
        "SessionStart",
        "SubagentStart",
        "UserPromptSubmit",
        "PreToolUse",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    )
    hooks: dict[str, list[Any]] = {event: [note(event)] for event in events}
    hooks["SubagentStart"].append(group("echo for children", "scout"))
    hooks["SubagentStop"].append(
        "grep -q 'active\":true' || { echo more >&2; exit 2; }"
    )
    parent = ParentThread("p1", "r1", 1, "Ada", "scout", place.home / "parent.jsonl")
    hooked = run(
        place,
        hooks,
        [command("true"), DONE, DONE],
        options=replace(BYPASS, parent=parent),
    )
    fired = {event for event in events if hooked.given(event)}
    assert fired == {"SubagentStart", "UserPromptSubmit", "PreToolUse", "SubagentStop"}
    assert hooked.said(0) == [("developer", "for children"), ("user", "go")]
    (call,), (stop, _) = hooked.given("PreToolUse"), hooked.given("SubagentStop")
    (own,) = place.home.rglob("rollout-*")
    assert (call["session_id"], call["agent_type"], call["transcript_path"]) == (
        "r1",
        "scout",
        str(own),
    )
    assert (
        json.loads(own.read_text(encoding="utf-8").splitlines()[0])["payload"]["id"]
        == call["agent_id"]
    )
    assert stop["transcript_path"] == str(place.home / "parent.jsonl")
    assert stop["agent_transcript_path"] == str(own)
    text = hooked.said()[-1][1]
    assert (
        text
        == f'<hook_prompt hook_run_id="subagent-stop:7:{place.home}/hooks.json">more</hook_prompt>'
    )


def test_a_prompt_is_kept_if_the_start_is_interrupted(place: Workplace) -> None:
    os.mkfifo(place.cwd / "began")

    async def work(session: Session, _: Hooked) -> None:
        turn = asyncio.create_task(session.run_turn("go"))
        async with asyncio.timeout(120):
            await asyncio.to_thread((place.cwd / "began").read_bytes)
            turn.cancel()
            await asyncio.wait([turn])
        assert [past.prompt.text for past in session.past_prompts()] == ["go"]
        assert session.is_unfinished

    run(place, {"SessionStart": ["echo x > began; sleep 600"]}, [], work=work)


def test_an_interrupted_turn_is_told(place: Workplace) -> None:
    hooks = {
        "Interrupt": [note("interrupt")],
        "PreToolUse": ["echo x > began; sleep 600"],
    }
    os.mkfifo(place.cwd / "began")

    async def work(session: Session, _: Hooked) -> None:
        turn = asyncio.create_task(session.run_turn("go"))
        async with asyncio.timeout(120):
            await asyncio.to_thread((place.cwd / "began").read_bytes)
            turn.cancel()
            await asyncio.wait([turn])

    hooked = run(place, hooks, [command("true")], work=work)
    (given,) = hooked.given("interrupt")
    assert given.keys() == {
        *(
            "session_id",
            "transcript_path",
            "cwd",
            "hook_event_name",
            "turn_id",
            "model",
        ),
        "permission_mode",
    }
