"""The limits of a run, through sessions. Shapes of `rollout_budget`: Codex 0.169, measured.

Tests `app/features/budget.py` and `app/features/budget_meters.py`.
"""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from codex_py import (
    Event,
    Session,
    SessionOptions,
    TurnResult,
    load_config,
    open_session,
)
from codex_py.app.features.budget import BudgetFeature
from codex_py.app.options import SessionSetup
from codex_py.errors import CodexError, ConfigError
from codex_py.protocol.event_data import event_data
from codex_py.protocol.mcp import DecliningElicitor
from codex_py.protocol.messages import (
    EncodedItem,
    encode_json,
    input_image,
    message,
    text_tokens,
)
from codex_py.protocol.stream import Usage
from codex_py.testing import (
    Pause,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_incomplete,
    ev_message,
)
from tests.support.agents import AgentServer, calls, waits
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer
from tests.support.wires import AnyWire

Work = Callable[[Session], Awaitable[Any]]


@dataclass
class Talk:
    result: TurnResult | None = None
    thread_id: str = ""
    events: list[Event] = field(default_factory=list[Event])
    budget: BudgetFeature | None = None

    @property
    def error(self) -> tuple[str, int]:
        assert self.result is not None
        assert self.result.error is not None
        return self.result.error.code, self.result.error.exit_code

    @property
    def last(self) -> dict[str, Any]:
        return event_data(self.events[-1]) or {}


def talk(
    place: Workplace,
    server: ScriptedServer,
    budget: str,
    *more: str,
    work: Work | None = None,
    resume: str | None = None,
) -> Talk:
    """Run a turn, or other work, with this `[budget]`."""
    told = Talk()

    async def main() -> None:
        env = environment(place.home)
        config = load_config(
            cwd=place.cwd,
            environment=env,
            overrides=[f"budget={{{budget}}}", *more],
            flags={"sandbox_mode": "danger-full-access"},
        )
        options = SessionOptions(resume=resume)
        opening = open_session(config, options, told.events.append, environment=env)
        async with asyncio.timeout(120), opening as session:
            told.thread_id, told.budget = (
                session.thread_id,
                session.feature(BudgetFeature),
            )
            result = await (session.run_turn("go") if work is None else work(session))
            told.result = result

    with server:
        place.configure(server)
        asyncio.run(main())
    return told


def runs(number: int, tokens: int = 100, command: str = "true") -> list[Any]:
    arguments = {"cmd": f"{command} {number}"}
    call = ev_function_call(f"c{number}", "exec_command", arguments)
    return [ev_created(), *call, ev_completed(input_tokens=tokens, output_tokens=10)]


def done(tokens: int = 100) -> list[Any]:
    usage = ev_completed(input_tokens=tokens, output_tokens=10)
    return [ev_created(), *ev_message("done"), usage]


def notes(server: ScriptedServer, tag: str) -> list[str]:
    """The notes of this tag in the last request."""
    texts = [
        part["text"]
        for item in server.requests[-1].input
        if item.get("role") == "developer"
        for part in item["content"]
    ]
    return [text for text in texts if text.startswith(f"<{tag}>")]


# What fits, in numbers.


def feature(place: Workplace, *overrides: str) -> BudgetFeature:
    env = environment(place.home)
    config = load_config(
        cwd=place.cwd, environment=env, overrides=["model=m", *overrides]
    )
    options = SessionOptions()
    return BudgetFeature(
        SessionSetup(config, options, env, None, DecliningElicitor(), lambda _: None)
    )


PRICES = "model_prices.m={input=10, cached_input=1, output=100}"


@pytest.mark.parametrize(
    ("settings", "fits", "code"),
    [
        (["budget.max_tokens=1016"], 1000, "token_budget"),
        # 1,000 tokens in, and 16 out.
        ([PRICES, "budget.max_cost=0.0116"], 1000, "cost_budget"),
        (
            [
                "features.rollout_budget={enabled=true, limit_tokens=532, prefill_token_weight=0.5,"
                " sampling_token_weight=2}"
            ],
            1000,
            "token_budget",
        ),
    ],
)
def test_the_first_request_that_might_not_fit_is_refused(
    place: Workplace, settings: list[str], fits: int, code: str
) -> None:
    async def check() -> None:
        budget = feature(place, *settings)
        reservation = await budget.reserve(Usage(fits), "openai", "m", None)
        assert reservation.expected.output_tokens == 16
        budget.release(reservation)
        with pytest.raises(CodexError, match="budget reached") as caught:
            await budget.reserve(Usage(fits + 1), "openai", "m", None)
        assert (caught.value.code, caught.value.exit_code) == (code, 54)

    asyncio.run(check())


def test_an_answer_is_cut_to_what_is_left_and_no_shorter(place: Workplace) -> None:
    async def check() -> None:
        budget = feature(place, "budget.max_tokens=10_000")
        uncut = await budget.reserve(Usage(1000), "openai", "m", 500)
        assert (uncut.cut_by, uncut.expected) == (None, Usage(1000, output_tokens=500))
        uncut.used = Usage(1000, output_tokens=200)
        budget.release(uncut)
        cut = await budget.reserve(Usage(1300), "openai", "m", None)
        assert cut.cut_by is not None
        assert cut.expected == Usage(1300, output_tokens=7500)

    asyncio.run(check())


def test_a_request_waits_for_others_that_may_take_what_it_needs(
    place: Workplace,
) -> None:
    async def check() -> None:
        budget = feature(place, "budget.max_tokens=3200")
        first = await budget.reserve(Usage(1000), "openai", "m", 900)
        beside = await budget.reserve(Usage(100), "openai", "m", 900)
        third = asyncio.create_task(budget.reserve(Usage(100), "openai", "m", 900))
        await asyncio.sleep(0)
        assert not third.done()
        first.used = Usage(1000, output_tokens=100)
        budget.release(first)
        async with asyncio.timeout(5):
            assert (await third).expected == Usage(100, output_tokens=900)
        budget.release(beside)

    asyncio.run(check())


def test_cached_tokens_weigh_nothing_in_the_budget_of_codex_alone(
    place: Workplace,
) -> None:
    async def check() -> None:
        rollout = "features.rollout_budget={enabled=true, limit_tokens=200}"
        usage = Usage(1000, 900)
        budget = feature(place, rollout)
        assert (await budget.reserve(usage, "openai", "m", 100)).cut_by is None
        with pytest.raises(CodexError, match="budget reached"):
            await feature(place, "budget.max_tokens=200").reserve(
                usage, "openai", "m", 100
            )
        # A cache may forget: what may be spent in dollars must not rest on it.
        with pytest.raises(CodexError, match="budget reached"):
            await feature(place, PRICES, "budget.max_cost=0.011").reserve(
                usage, "openai", "m", 100
            )

    asyncio.run(check())


@pytest.mark.parametrize(
    "settings",
    [
        ["model=m"],
        ["model=gpt-5.5", 'model_fallbacks=["chat/m"]', "model_providers.chat.name=x"],
    ],
)
def test_the_cost_cannot_be_limited_without_a_price(
    place: Workplace, settings: list[str]
) -> None:
    url = 'model_providers.chat.base_url="http://127.0.0.1:1"'
    with pytest.raises(ConfigError, match="price of 'm'") as caught:
        feature(place, "budget.max_cost=1", url, *settings)
    assert caught.value.exit_code == 78
    assert "[model_prices.m] with `input = 2.0`" in str(caught.value)


def test_the_lines_that_price_a_known_model_behind_a_gateway_are_named(
    place: Workplace,
) -> None:
    gateway = [
        "model_provider=gateway",
        'model_providers.gateway={base_url="http://h/", name="g"}',
    ]
    with pytest.raises(ConfigError, match="at 'gateway' is not known") as caught:
        feature(place, "budget.max_cost=1", "model=gpt-5.5", *gateway)
    line = 'model_prices."gateway/gpt-5.5"'
    assert str(caught.value).endswith(f':\n[{line}]\nsame_as = "openai/gpt-5.5"')
    feature(
        place,
        "budget.max_cost=1",
        "model=gpt-5.5",
        *gateway,
        f'{line}.same_as="openai/gpt-5.5"',
    )


# Whole turns.


def test_a_turn_stops_before_the_response_that_is_one_too_many(
    place: Workplace,
) -> None:
    server = ScriptedServer([runs(1), runs(2), runs(3)])
    told = talk(place, server, "max_turns=2")
    assert len(server.requests) == 2
    assert told.error == ("turn_limit", 53)
    assert told.last["type"] == "turn.failed"
    assert told.last["usage"]["input_tokens"] == 200


def test_a_turn_that_needs_all_that_is_allowed_completes(place: Workplace) -> None:
    told = talk(place, ScriptedServer([runs(1), done()]), "max_turns=2")
    assert told.last["type"] == "turn.completed"


@pytest.mark.parametrize(
    ("small", "code"),
    [("max_turns=1", "turn_limit"), ("max_tokens=60_000", "token_budget")],
)
def test_a_session_goes_on_with_a_larger_limit(
    place: Workplace, small: str, code: str
) -> None:
    server = ScriptedServer([runs(1, 59_000), runs(2)])
    told = talk(place, server, small)
    assert (told.error[0], len(server.requests)) == (code, 1)
    server = ScriptedServer([runs(2), done()], check_prefix=False)
    again = talk(place, server, "max_turns=2", resume=told.thread_id)
    assert again.last["type"] == "turn.completed"
    # The call was answered before the stop, and is no second time.
    outputs = [item for item in server.requests[0].input if item.get("call_id") == "c1"]
    assert [item["type"] for item in outputs] == [
        "function_call",
        "function_call_output",
    ]


@pytest.mark.parametrize("wire", ["responses", "chat", "anthropic", "text"])
def test_the_usage_that_each_wire_reports_counts(place: Workplace, wire: str) -> None:
    with AnyWire(place) as wires:
        flags = {"budget": {"max_tokens": 100_000}}
        wires.prompt(wire, "go", runs(1, 99_950), runs(2), flags=flags)
        assert len(wires.servers[wire].requests) == 1
    assert wires.last["type"] == "turn.failed"
    assert wires.last["error"]["code"] == "token_budget"


def test_a_cache_larger_than_the_input_gives_nothing_back(place: Workplace) -> None:
    replies = [
        [
            *ev_function_call(f"c{number}", "exec_command", {"cmd": f"echo {number}"}),
            ev_completed(input_tokens=1000, cached=10**12, output_tokens=10),
        ]
        for number in range(12)
    ]
    prices = 'model_prices."gpt-5.5"={input=10.0,cached_input=9.0,output=100.0}'
    told = talk(place, ScriptedServer(replies), "max_cost=0.1", prices)
    assert told.error == ("cost_budget", 54)
    assert (
        told.last["usage"]["cached_input_tokens"] == told.last["usage"]["input_tokens"]
    )


def test_the_cache_of_a_request_has_no_more_than_the_response_before_left_there(
    place: Workplace,
) -> None:
    replies = [
        [
            *ev_function_call(f"c{number}", "exec_command", {"cmd": f"echo {number}"}),
            ev_completed(input_tokens=tokens, cached=tokens, output_tokens=10),
        ]
        for number, tokens in enumerate([10_000, 100_000, 100_000])
    ]
    prices = 'model_prices."gpt-5.5"={input=10.0,cached_input=0.0,output=0.0}'
    end = [*ev_message("done"), ev_completed(input_tokens=100_000, cached=100_000)]
    told = talk(place, ScriptedServer([*replies, end]), "max_cost=1000", prices)
    assert told.budget is not None
    # Of the second request 10,010 tokens were in a cache at most; all of the later ones.
    (meter,) = told.budget.meters
    assert round(meter.used * 1e6) == 10 * (100_000 - 10_010)
    assert told.last["usage"]["cached_input_tokens"] == 310_000


@pytest.mark.parametrize(
    "usage",
    [
        {"output_tokens": 20},
        {"input_tokens": 1, "output_tokens": 1},
        {"input_tokens": 10**400},
    ],
)
@pytest.mark.parametrize("limit", ["max_tokens=30_000", "max_cost=0.3"])
def test_a_server_that_leaves_tokens_out_does_not_lift_the_limits(
    place: Workplace, usage: Any, limit: str
) -> None:
    replies = [
        [
            *ev_function_call(f"c{number}", "exec_command", {"cmd": f"echo {number}"}),
            ev_completed(**{"input_tokens": 0, "output_tokens": 1, **usage}),
        ]
        for number in range(20)
    ]
    prices = 'model_prices."gpt-5.5"={input=10.0,cached_input=10.0,output=100.0}'
    told = talk(place, ScriptedServer(replies), limit, prices)
    assert told.last["type"] == "turn.failed"
    assert told.error[1] == 54


def test_a_long_answer_counts_also_if_the_server_counts_it_as_a_word(
    place: Workplace,
) -> None:
    said = [
        *ev_message("word " * 8000),
        ev_completed(input_tokens=10_000, output_tokens=1),
    ]
    told = talk(place, ScriptedServer([said]), "max_tokens=900_000")
    assert told.budget is not None
    assert [meter.used for meter in told.budget.meters] == [10_000 + 5_000]
    assert told.last["usage"]["output_tokens"] == 1


def test_images_and_reasoning_are_not_estimated() -> None:
    image = message(
        "user", [input_image(f"data:image/png;base64,{'A' * 40_000}", "auto")]
    )
    reasoning: dict[str, Any] = {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "A" * 40_000,
    }
    assert text_tokens([image, EncodedItem(encode_json(reasoning))]) < 100


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("responses", "max_output_tokens"),
        ("chat", "max_completion_tokens"),
        ("anthropic", "max_tokens"),
    ],
)
def test_the_last_answer_may_be_no_longer_than_what_is_left(
    place: Workplace, wire: str, name: str
) -> None:
    cut = [ev_created(), *ev_message("half a sen"), ev_incomplete()]
    with AnyWire(place) as wires:
        flags = {"budget": {"max_tokens": 25_000}}
        wires.prompt(wire, "go", runs(1, 10_000), cut, flags=flags)
        first, second = wires.servers[wire].requests
    assert second.fields[name] < 5_000
    assert first.fields[name] < 25_000
    assert wires.last["error"]["code"] == "token_budget"
    assert wires.last["error"]["message"].startswith("budget reached: 25,")


def test_the_model_is_told_once_to_come_to_an_end(place: Workplace) -> None:
    server = ScriptedServer([*(runs(n) for n in range(9)), done()])
    told = talk(place, server, "max_turns=10")
    assert told.last["type"] == "turn.completed"
    (note,) = notes(server, "budget")
    assert "8 of 10 responses" in note
    # It came with the ninth request: a call, its output, and the note.
    lengths = [len(request.input) for request in server.requests]
    assert [b - a for a, b in pairwise(lengths)] == [2] * 7 + [3, 2]


def grown(number: int, *, cached: bool = False) -> list[Any]:
    """A call whose request had `number` thousand tokens, all but the newest from the cache."""
    call = ev_function_call(f"c{number}", "exec_command", {"cmd": f"true {number}"})
    known = (number - 1) * 1000 if cached else 0
    return [
        ev_created(),
        *call,
        ev_completed(input_tokens=number * 1000, cached=known, output_tokens=10),
    ]


PRICED = 'model_prices."gpt-5.5"={input=10.0, cached_input=1.0, output=100.0}'


@pytest.mark.parametrize(
    ("limit", "cached", "told_at", "last"),
    [
        # 78 % before the thirteenth request, and 91 % after it: there is no fourteenth.
        ("max_tokens=100_000", False, 12, 13),
        ("max_cost=1.0", False, 12, 13),
        # From the cache, each costs less than is set aside for it.
        ("max_cost=0.5", True, 15, 17),
        ("max_tokens=20_000", False, 4, 5),
        # A second request as long as the first is estimated would not fit.
        ("max_tokens=6_000", False, 1, 2),
    ],
)
def test_the_model_is_told_while_another_request_still_fits(
    place: Workplace, limit: str, cached: bool, told_at: int, last: int
) -> None:
    server = ScriptedServer([grown(number, cached=cached) for number in range(1, 30)])
    told = talk(place, server, limit, PRICED)
    assert told.error[1] == 54
    is_told = ["<budget>" in str(request.input) for request in server.requests]
    assert is_told == [number >= told_at for number in range(1, last + 1)]
    assert len(notes(server, "budget")) == 1


def test_a_compaction_is_not_taken_for_a_longer_history(place: Workplace) -> None:
    async def work(session: Session) -> TurnResult:
        await session.run_turn("go")
        await session.compact()
        return await session.run_turn("on")

    server = ScriptedServer(
        [runs(1, 30_000), done(30_100), done(30_200), done(9_000)], check_prefix=False
    )
    told = talk(place, server, "max_tokens=150_000", work=work)
    assert told.last["type"] == "turn.completed"
    assert notes(server, "budget") == []


def test_the_budget_of_codex_tells_what_is_left(place: Workplace) -> None:
    # As the tokens in Codex's own test by hand: 7,000, 13,000 and 19,000 of them weighted.
    def step(number: int) -> list[Any]:
        call = ev_function_call(f"c{number}", "exec_command", {"cmd": f"true {number}"})
        tokens = 10_000 * number
        usage = ev_completed(
            input_tokens=tokens, cached=tokens * 2 // 5, output_tokens=1000
        )
        return [ev_created(), *call, usage]

    rollout = (
        "features.rollout_budget={enabled=true, limit_tokens=500_000,"
        " reminder_at_remaining_tokens=[485_000, 2]}"
    )
    server = ScriptedServer([step(1), step(2), step(3), done()])
    told = talk(place, server, "loop_guard=true", rollout)
    assert told.last["type"] == "turn.completed"
    assert notes(server, "rollout_budget") == [
        f"<rollout_budget>\nYou have {left} weighted tokens left in the shared session token"
        " budget.\n</rollout_budget>"
        for left in (500_000, 480_000)
    ]


def test_a_refused_request_counts_nothing_and_a_broken_one_what_came(
    place: Workplace,
) -> None:
    refused = Reply(status=503, body=b'{"error": {"message": "busy"}}')
    retries = "model_providers.mock.request_max_retries=1"
    told = talk(
        place,
        ScriptedServer([refused, done(10_000)]),
        "max_tokens=900_000, max_turns=1",
        retries,
    )
    assert told.budget is not None
    assert [meter.used for meter in told.budget.meters] == [1, 10_010]
    broken = Reply(events=[ev_created(), *runs(1)[1:-1]], cut=True)
    told = talk(place, ScriptedServer([broken, done()]), "max_tokens=900_000")
    assert told.budget is not None
    (meter,) = told.budget.meters
    # The estimated input, with the call that arrived.
    assert 1_000 < meter.used < 50_000


def test_a_compaction_counts(place: Workplace) -> None:
    async def work(session: Session) -> TurnResult:
        await session.run_turn("go")
        return await session.compact()

    server = ScriptedServer([runs(1), done(), done()], check_prefix=False)
    told = talk(place, server, "max_turns=2", work=work)
    assert (told.error, len(server.requests)) == (("turn_limit", 53), 2)
    told = talk(
        place,
        ScriptedServer([runs(1), done(), done()], check_prefix=False),
        "max_turns=3",
        work=work,
    )
    assert told.last["type"] == "turn.completed"


def test_another_model_has_its_own_price(place: Workplace) -> None:
    down = Reply(status=503, body=b'{"error": {"message": "down"}}')
    with AnyWire(place) as wires:
        wires.servers["chat"].add(runs(2, 1000), done())
        prices = {
            "gpt-5.5": {"input": 0.001, "output": 0.001},
            "chat-b": {"input": 1, "output": 800},
        }
        flags = {
            "model_fallbacks": [{"provider": "chat", "model": "chat-b"}],
            "model_prices": prices,
            # 1,010 tokens of the second model cost 0.009.
            "budget": {"max_cost": 0.03},
        }
        wires.prompt("responses", "go", runs(1, 1000), down, flags=flags)
        requests = wires.servers["chat"].requests
    # 1,000 tokens in leave 36 of output, and what that answer cost leaves 25 for the next.
    limits = [request.fields["max_completion_tokens"] for request in requests]
    assert wires.last["type"] == "turn.completed"
    assert 30 < limits[0] <= 36
    assert 20 < limits[1] <= 25


# Subagents.


def test_a_session_and_its_subagents_have_one_budget(place: Workplace) -> None:
    server = AgentServer(
        [calls("spawn_agent", message="look"), waits(), done()],
        [runs(1), runs(2), runs(3), runs(4)],
    )
    told = talk(place, server, "max_turns=4")
    assert len(server.requests) == 4
    assert told.error == ("turn_limit", 53)
    data = [event_data(each) or {} for each in told.events]
    states = json.dumps([each["item"] for each in data if "item" in each])
    assert "budget reached" in states


def test_subagents_whose_answers_might_not_fit_side_by_side_take_turns(
    place: Workplace,
) -> None:
    spawns = [
        event
        for index in range(3)
        for event in calls("spawn_agent", f"s{index}", index=index, message="look")[:-1]
    ]
    server = AgentServer(
        [[*spawns, ev_completed()], waits(), waits("w2"), done()], [runs(1), done()]
    )
    # The longest answer of the model takes 128,000.
    told = talk(place, server, "max_tokens=150_000")
    assert told.last["type"] == "turn.completed"


def test_a_turn_fails_that_did_not_wait_for_a_subagent_that_was_stopped(
    place: Workplace,
) -> None:
    stopped = Pause()

    def last(*_: Any) -> Reply:
        return Reply(
            events=[ev_created(), *ev_message("done"), stopped, ev_completed()]
        )

    server = AgentServer(
        [calls("spawn_agent", message="look"), last], [runs(1, 900_000), runs(2, 10)]
    )

    def watch(events: Sequence[Event]) -> None:
        if any("budget reached" in str(event) for event in events):
            stopped.until.set()

    told = Talk()

    async def main() -> None:
        env = environment(place.home)
        config = load_config(
            cwd=place.cwd,
            environment=env,
            overrides=["budget.max_tokens=1_000_000"],
            flags={"sandbox_mode": "danger-full-access"},
        )

        def sink(event: Event) -> None:
            told.events.append(event)
            watch([event])

        opening = open_session(config, SessionOptions(), sink, environment=env)
        async with asyncio.timeout(120), opening as session:
            told.result = await session.run_turn("go")

    with server:
        place.configure(server)
        asyncio.run(main())
    assert told.error == ("token_budget", 54)


# The clock.


def test_the_time_ends_a_running_command(place: Workplace) -> None:
    told = talk(
        place, ScriptedServer([runs(1, command="sleep 600; true")]), "max_time=3"
    )
    assert told.error == ("wall_clock", 55)
    server = ScriptedServer([done()], check_prefix=False)
    again = talk(place, server, "max_time=60", resume=told.thread_id)
    assert again.last["type"] == "turn.completed"
    (output,) = (
        i for i in server.requests[0].input if i["type"] == "function_call_output"
    )
    assert "aborted: budget reached: `max_time` (3 s)" in output["output"]


def test_the_time_ends_the_start_of_a_server(place: Workplace) -> None:
    server = ScriptedServer([])
    slow = 'mcp_servers.slow={command="sleep", args=["60"]}'
    told = talk(place, server, "max_time=0.7", slow)
    assert (told.error, server.requests) == (("wall_clock", 55), [])


def test_no_further_turn_runs_once_a_limit_is_reached(place: Workplace) -> None:
    async def work(session: Session) -> TurnResult:
        await session.run_turn("go")
        return await session.run_turn("again")

    for budget, code in (("max_time=3", "wall_clock"), ("max_turns=1", "turn_limit")):
        long = "sleep 600; true" if code == "wall_clock" else "true"
        server = ScriptedServer([runs(1, command=long)])
        told = talk(place, server, budget, work=work)
        assert (told.error[0], len(server.requests)) == (code, 1)


def test_the_time_ends_a_stream_that_says_nothing(place: Workplace) -> None:
    pause = Pause()
    with_pause = Reply(events=[ev_created(), pause, *done()[1:]])
    try:
        told = talk(
            place, ScriptedServer([with_pause]), "max_time=0.5", work=_released(pause)
        )
    finally:
        pause.until.set()
    assert told.error == ("wall_clock", 55)


def _released(pause: Pause) -> Work:
    async def work(session: Session) -> TurnResult:
        try:
            return await session.run_turn("go")
        finally:
            pause.until.set()

    return work


def test_the_time_ends_the_wait_before_another_attempt(place: Workplace) -> None:
    busy = Reply(
        status=503,
        headers={"retry-after": "60"},
        body=b'{"error": {"message": "busy"}}',
    )
    retries = "model_providers.mock.request_max_retries=1"
    told = talk(place, ScriptedServer([busy]), "max_time=0.5", retries)
    assert told.error == ("wall_clock", 55)


def test_the_time_of_subagents_ends_with_that_of_the_session(place: Workplace) -> None:
    server = AgentServer(
        [calls("spawn_agent", message="look"), waits()],
        [runs(1, command="sleep 600; true")],
    )
    told = talk(place, server, "max_time=1.5")
    assert told.error == ("wall_clock", 55)


# The command line.


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            ("--max-turns", "0"),
            "--max-turns: '0' is no amount of responses: write a whole number from 1",
        ),
        (
            ("--max-tokens", "1x"),
            "--max-tokens: '1x' is no amount of tokens: write 200000, 200k or 1.5m",
        ),
        (
            ("--max-cost", "abc"),
            "--max-cost: 'abc' is no amount of dollars: write 2 or 0.50",
        ),
        (
            ("--max-time", "5d"),
            "--max-time: '5d' is no amount of time: write 90s, 30m or 2h",
        ),
    ],
)
def test_an_option_that_cannot_be_read_is_a_usage_error(
    place: Workplace, option: Sequence[str], words: str
) -> None:
    done = run_codex_py(["exec", *option, "go"], place.home, place.cwd)
    assert (done.returncode, done.stderr.decode()) == (2, f"Error: {words}\n")


def test_exec_stops_at_each_limit_with_its_exit_code(place: Workplace) -> None:
    for option, code in (
        ("--max-turns=1", 53),
        ("--max-tokens=30k", 54),
        ("--max-cost=0.5", 54),
        ("--max-time=4s", 55),
    ):
        replies = [
            runs(1, 29_000, "sleep 600; true" if code == 55 else "true"),
            runs(2, 10),
        ]
        prices = ["-c", 'model_prices."gpt-5.5"={input=10, output=20}']
        with ScriptedServer(replies) as server:
            outcome = place.run(server, option, *prices, "go")
            assert len(server.requests) == 1
        assert (outcome.code, outcome.types[-1]) == (code, "turn.failed")
        assert outcome.types.count("turn.failed") == 1


def test_a_signal_wins_over_a_limit(place: Workplace) -> None:
    with ScriptedServer([runs(1, command="sleep 600; true")]) as server:
        place.configure(server)
        program = place.start("--max-time=30", "go")
        assert program.stdout is not None
        while (line := program.stdout.readline()) and b"item.started" not in line:
            pass
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate(timeout=120)
    assert program.returncode == 130
    assert out.count(b'"turn.failed"') == 1
