"""Tests of the package, with a scripted model: they need no key and no network."""

import json
from pathlib import Path

from codex_py import Agent
from codex_py.api.wires import Completed, Message, Prompt, Usage
from codex_py.testing import FakeModel, call
from codex_py_ledger.entries import read
from codex_py_ledger.feature import Ledger
from codex_py_ledger.wire import PlainWire


def stock(part: str) -> int:
    """How many of a part there are."""
    return 7


def test_calls_are_counted_and_those_above_the_limit_refused(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    model = FakeModel(
        [call("stock", part="bolts"), call("stock", part="nuts")], "There are 7 bolts."
    )
    ledger = Ledger(file, max_calls=1, fails_if_idle=False)
    answer = Agent(model, tools=[stock], extensions=[ledger]).run_sync("How many?")
    assert answer.text == "There are 7 bolts."
    assert "the limit of 1 calls is used up" in model.requests[1].output("call_2")
    (entry,) = read(file)
    assert (entry.calls, entry.failed) == ({"stock": 1}, 0)


def test_the_wire_sends_messages_and_reads_the_end() -> None:
    wire = PlainWire()
    hello = Message(role="user", content="Hello").encoded()
    prompt = Prompt("m", [hello], cache_key="")
    system, said = json.loads(wire.body(prompt))["messages"]
    assert (system["role"], said) == ("system", {"role": "user", "text": "Hello"})
    events = wire.decoder(prompt).feed('{"tokens": [3, 4]}')
    assert events == [Completed(Usage(3, output_tokens=4))]
