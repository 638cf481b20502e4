"""Events that are put off, and read after all: many, long and with any character."""

import json

import pytest

from codex_py.model.responses import unread
from codex_py.model.responses.decoder import ResponsesDecoder
from codex_py.model.responses.unread import UnreadEvents
from codex_py.protocol.items import Message
from codex_py.protocol.stream import OutputItemDone
from codex_py.testing import ev_completed, ev_text_deltas


@pytest.mark.parametrize("packed_at", [0, 300, 1_000_000])
def test_events_come_back_in_their_order(
    monkeypatch: pytest.MonkeyPatch, packed_at: int
) -> None:
    monkeypatch.setattr(unread, "_PACKED_AT", packed_at)
    texts = [f'{{"delta": "{each}\ud800\n ü"}}' for each in range(1000)]
    events = UnreadEvents()
    assert not events
    for text in texts:
        events.append(text)
    assert events
    assert list(events) == texts
    assert bool(events.packed_bytes) == (packed_at < 1_000_000)


def test_many_events_take_a_tenth_of_their_size() -> None:
    events = UnreadEvents()
    for number in range(20_000):
        place = f'"sequence_number": {number}, "output_index": 0, "content_index": 0'
        events.append(
            f'{{"type": "response.output_text.delta", {place}, "delta": "a"}}'
        )
    assert events.packed_bytes < 200_000


@pytest.mark.parametrize("most", [0, 16 * 1024 * 1024])
def test_the_text_is_whole_if_the_item_never_comes(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(unread, "_PACKED_AT", 5_000)
    monkeypatch.setattr("codex_py.model.responses.slot._MAX_PACKED_BYTES", most)
    pieces = [f"{number} ü\ud83d" if number % 2 else "\ude00" for number in range(500)]
    decoder = ResponsesDecoder(deltas=False)
    first, *others = ev_text_deltas(pieces)
    decoder.feed(json.dumps(first))
    for event in others:
        assert decoder.feed(json.dumps(event)) == ()
    (done,) = [
        event
        for event in decoder.feed(json.dumps(ev_completed()))
        if isinstance(event, OutputItemDone)
    ]
    assert isinstance(done.item, Message)
    whole = (
        "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    assert done.item.text == whole
