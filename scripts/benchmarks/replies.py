"""What the model answers in each benchmark; every event in an HTTP chunk of its own, as live servers send them."""

import threading
import time
from typing import Any

from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from codex_py.testing.server import Script


def answers(count: int) -> list[Reply]:
    """The same short answer, `count` times."""
    return [_reply(ev_message("Done."))] * count


def answers_together(count: int, held_s: float) -> list[Script]:
    """The same answer, when so many requests wait for it and `held_s` seconds have passed."""
    all_here = threading.Barrier(count, timeout=60)

    def answer(_request: RecordedRequest) -> Reply:
        all_here.wait()
        time.sleep(held_s)
        return answers(1)[0]

    return [answer] * count


def calls_of_each(threads: int, count: int) -> list[Script]:
    """For each of so many threads: so many calls of `true`, one after another, then an answer."""

    def answer(request: RecordedRequest) -> Reply:
        done = sum(item.get("type") == "function_call_output" for item in request.input)
        if done >= count:
            return answers(1)[0]
        return _reply(
            ev_function_call(f"call_{done}", "exec_command", {"cmd": f"true {done}"})
        )

    return [answer] * (threads * (count + 1))


def call_after(held_s: float) -> list[Script]:
    """A call of `true`, of which not even the head comes before so many seconds; then an answer."""

    def call(_request: RecordedRequest) -> Reply:
        time.sleep(held_s)
        return calls_at_once(1, "true")[0]

    return [call, *answers(1)]


def agents_at_once(count: int, held_s: float) -> list[Script]:
    """A response that starts so many subagents, each of which takes `held_s` seconds; the answer, when all have
    ended."""
    spawns = [
        event
        for n in range(count)
        for event in ev_function_call(
            f"call_{n}", "spawn_agent", {"message": "work"}, index=n
        )
    ]
    ended = threading.Barrier(count + 1, timeout=60)

    def answer(request: RecordedRequest) -> Script:
        if "x-openai-subagent" in request.headers:
            time.sleep(held_s)
        elif request.input[-1].get("type") != "function_call_output":
            return _reply(spawns)
        ended.wait()
        return answers(1)[0]

    return [answer] * (count + 2)


def streamed_answer(deltas: int) -> list[Reply]:
    """One answer in so many deltas; each event has about 190 bytes."""
    return [_reply(ev_message("a word or two here, " * deltas, pieces=deltas))]


def streamed_call(size: int, deltas: int) -> list[Reply]:
    """A call with so many characters of arguments in so many deltas, then the answer."""
    arguments: dict[str, Any] = {"plan": [], "explanation": "x" * size}
    added, delta, *rest = ev_function_call("call_0", "update_plan", arguments)
    text = delta["delta"]
    width = -(-len(text) // deltas)
    pieces = [text[start : start + width] for start in range(0, len(text), width)]
    return [
        _reply([added, *({**delta, "delta": piece} for piece in pieces), *rest]),
        *answers(1),
    ]


def calls_in_a_row(count: int, command: str) -> list[Reply]:
    """So many responses with one call each, then the answer. Each has a word of its own: repetition is stopped."""
    return [*(_reply(_call(n, f"{command} {n}")) for n in range(count)), *answers(1)]


def one_call(command: str, thought_s: float) -> list[Script]:
    """A response with a call, then the answer, each of which takes so many seconds, as models do."""

    def after_thought(reply: Reply) -> Script:
        def answer(_request: RecordedRequest) -> Reply:
            time.sleep(thought_s)
            return reply

        return answer

    return [after_thought(reply) for reply in calls_in_a_row(1, command)]


def plans_in_a_row(count: int) -> list[Reply]:
    """So many responses with a text and a call that starts no process, then the answer."""
    steps = [{"step": f"Step {n} of the work", "status": "pending"} for n in range(8)]
    text = ev_message("This is what I will do now. " * 4)
    calls = [
        ev_function_call(
            f"call_{n}",
            "update_plan",
            {"plan": steps, "explanation": f"Turn {n}"},
            index=1,
        )
        for n in range(count)
    ]
    return [*(_reply([*text, *call]) for call in calls), *answers(1)]


def calls_at_once(count: int, command: str) -> list[Reply]:
    """One response with so many calls, then the answer."""
    calls = [event for n in range(count) for event in _call(n, command, index=n)]
    return [_reply(calls), *answers(1)]


def _call(number: int, command: str, *, index: int = 0) -> list[dict[str, Any]]:
    return ev_function_call(
        f"call_{number}", "exec_command", {"cmd": command}, index=index
    )


def _reply(items: list[dict[str, Any]]) -> Reply:
    return Reply(events=[ev_created(), *items, ev_completed()], chunk_each=True)
