"""A server that reports no usage."""

import pytest

from codex_py.core.session import Session
from codex_py.protocol.messages import EncodedItem, estimated_tokens
from codex_py.testing import ev_completed, ev_message
from codex_py.testing.events import ev_created
from tests.support.program import Workplace
from tests.support.wires import AnyWire

NO_USAGE = ev_completed(usage=None)


@pytest.mark.parametrize("wire", ["responses", "chat"])
def test_it_is_estimated_from_the_bytes_of_request_and_answer(
    place: Workplace, wire: str
) -> None:
    with AnyWire(place) as wires:
        wires.prompt(
            wire, "x" * 40_000, [ev_created(), *ev_message("y" * 4000), NO_USAGE]
        )
    usage = wires.last["usage"]
    sent = len(str(wires.requests[0].body)) // 4
    assert 0.8 * sent < usage["input_tokens"] < 1.1 * sent
    assert 1000 <= usage["output_tokens"] < 1100


def test_a_full_history_is_compacted_by_the_estimate(place: Workplace) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("one")
        await session.run_turn("two")

    said = [
        [ev_created(), *ev_message(text), NO_USAGE]
        for text in ("y" * 80_000, "note", "done")
    ]
    with AnyWire(place, check_prefix=False) as wires:
        flags = {"model_auto_compact_token_limit": 20_000}
        wires.session("chat", work, *said, flags=flags)
    last = str(wires.requests[-1].body)
    assert "note" in last
    assert "yyy" not in last


def test_an_image_costs_the_same_whatever_its_size() -> None:
    small, large = (
        EncodedItem(b'{"image_url":"data:image/png;base64,' + b"A" * size + b'"}')
        for size in (10, 4_000_000)
    )
    assert estimated_tokens([small]) == estimated_tokens([large])
    assert 1000 < estimated_tokens([large]) < 3000
