"""`codex-py cost`: the rows add up to the tokens of the session, whatever they went to.

Tests `app/views/cost.py` and `rollout/details.py`.
"""

import json
from typing import Any

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.agents import AgentServer, calls, says, waits
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer


def cost(place: Workplace, *words: str) -> Any:
    done = run_codex_py(["cost", "--json", *words], place.home, place.cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tokens(bill: Any) -> list[tuple[int | None, int, int]]:
    rows = [(row["turn"], row["usage"]) for row in bill["rows"]]
    total = bill["total"]["usage"]
    assert sum(usage["input_tokens"] for _, usage in rows) == total["input_tokens"]
    assert sum(usage["output_tokens"] for _, usage in rows) == total["output_tokens"]
    return [
        (turn, usage["input_tokens"], usage["output_tokens"]) for turn, usage in rows
    ]


def test_turns_and_outputs_have_their_tokens_and_prices(place: Workplace) -> None:
    replies = [
        [*ev_function_call("c1", "exec_command", {"cmd": "seq 100"}), ev_completed()],
        [*ev_message("Counted."), ev_completed(input_tokens=1000, cached=800)],
        [*ev_message("Again."), ev_completed(input_tokens=2000, cached=1000)],
    ]
    prices = 'model_prices."gpt-5.5"={input=10.0,cached_input=1.0,output=100.0}'
    with ScriptedServer(replies) as server:
        done = place.run(server, "Count\nto 100")
        place.rerun("resume", "--last", "Once more")
    bill = cost(place, "-c", prices)
    assert bill["thread_id"] == done.events[0]["thread_id"]
    assert tokens(bill) == [(1, 1100, 40), (2, 2000, 20)]
    assert [row["prompt"] for row in bill["rows"]] == ["Count\nto 100", "Once more"]
    dollars = [round(row["cost"] * 1e6) for row in bill["rows"]]
    assert dollars == [250 * 10 + 850 + 4000, 1000 * 10 + 1000 + 2000]
    assert bill["cache_share"] == 1850 / 3100
    (output,) = bill["largest_outputs"]
    assert (output["tool"], output["what"]) == ("exec_command", "seq 100")
    assert output["size"] // 4 == output["tokens"] > 70

    shown = run_codex_py(["cost"], place.home, place.cwd).stdout.decode().splitlines()
    assert [line.split()[:5] for line in shown[1:4]] == [
        ["1", "1,100", "850", "77%", "40"],
        ["2", "2,000", "1,000", "50%", "20"],
        ["total", "3,100", "1,850", "60%", "60"],
    ]
    assert shown[1].split()[6:] == ["-", "Count", "to", "100"]
    assert shown[-3].startswith(
        "The price of 'gpt-5.5' at 'mock' is not known; if it is that of openai,"
    )
    with (place.home / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(shown[-2:]))
    assert cost(place)["total"]["cost"] == (1250 * 5 + 1850 * 0.5 + 60 * 30) / 1e6


def test_counts_that_cannot_be_cost_nothing(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("x"), ev_completed()]]) as server:
        done = place.run(server)
    (path,) = (place.home / "sessions").rglob("*.jsonl")
    lines = path.read_text(encoding="utf-8")
    path.write_text(
        lines.replace('"input_tokens":100', f'"input_tokens":1{"0" * 400}'), "utf-8"
    )
    bill = cost(place, "-c", 'model_prices."gpt-5.5"={input=1.0,output=1.0}')
    assert bill["thread_id"] == done.events[0]["thread_id"]
    assert bill["total"]["usage"]["input_tokens"] == 0


def test_subagents_count_to_their_turn_and_the_past_of_a_fork_to_none(
    place: Workplace,
) -> None:
    parent = [
        calls("spawn_agent", message="x"),
        waits(),
        says("done"),
        says("forked", tokens=500),
    ]
    with AgentServer(parent, [says("three", tokens=70)]) as server:
        thread_id = place.run(server).events[0]["thread_id"]
        place.rerun("fork", thread_id, "go on")
    bill = cost(place, thread_id)
    assert tokens(bill) == [(1, 100, 4)]
    assert tokens(cost(place, "--last")) == [(None, 100, 4), (2, 500, 1)]


def test_a_compaction_counts_to_the_prompt_before_it(place: Workplace) -> None:
    replies = [
        [*ev_message("One."), ev_completed(input_tokens=9000)],
        [*ev_message("A summary."), ev_completed(input_tokens=700)],
        [*ev_message("Two."), ev_completed(input_tokens=300)],
    ]
    limit = "model_auto_compact_token_limit=5000"
    with ScriptedServer(replies, check_prefix=False) as server:
        thread_id = place.run(server, "-c", limit, "one").events[0]["thread_id"]
        place.rerun("-c", limit, "resume", thread_id, "two")
    assert tokens(cost(place, thread_id)) == [(1, 9700, 40), (2, 300, 20)]


def test_a_mistake_is_one_sentence(place: Workplace) -> None:
    done = run_codex_py(["cost"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"Error: no session was held in this folder\n"
