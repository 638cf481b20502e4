import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from codex_py.core.shorten import Size, shortened, weight
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.prompts import SUMMARY_OPENING, Note, user_prompt

SEEDS = range(30)
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 9000}
LABEL = input_text('<image name=[Image #1] path="/a.png">')


def prompt(text: str, *more: dict[str, Any]) -> EncodedItem:
    return message("user", [*more, input_text(text)])


def item(kind: str, **fields: Any) -> EncodedItem:
    return EncodedItem(encode_json({"type": kind, **fields}))


def says(text: str) -> EncodedItem:
    return message("assistant", [{"type": "output_text", "text": text}])


def call(call_id: str, output: Any = "out", arguments: str = "{}") -> list[EncodedItem]:
    return [
        item("function_call", call_id=call_id, name="echo", arguments=arguments),
        item("function_call_output", call_id=call_id, output=output),
    ]


def random_history(seed: int) -> list[EncodedItem]:
    """Turns as they come: several calls in a response, reasoning, notes, images, ids that come again."""
    dice = random.Random(seed)

    def text() -> str:
        return dice.choice(["x", "line\n", "é”", '"', "猫"]) * int(
            dice.expovariate(1 / 800)
        )

    def response() -> Iterator[EncodedItem]:
        if dice.random() < 0.5:
            yield item("reasoning", summary=[], encrypted_content=text())
        if dice.random() < 0.5:
            yield says(text())
        if dice.random() < 0.2:
            yield item("web_search_call", action={"type": "search", "query": "q"})
        ids = [
            dice.choice(["a", "b", f"c{dice.random()}"])
            for _ in range(dice.randrange(4))
        ]
        kind = dice.choice(["function_call", "custom_tool_call"])
        yield from (item(kind, call_id=i, name="n", arguments=text()) for i in ids)
        for call_id in ids:
            if dice.random() < 0.1:
                yield Note(text(), "user").encoded()
            output = text() if dice.random() < 0.8 else [input_text(text()), IMAGE]
            yield item(f"{kind}_output", call_id=call_id, output=output)

    items: list[EncodedItem] = []
    for _ in range(dice.randrange(1, 12)):
        if dice.random() < 0.2:
            items.append(prompt(f"{SUMMARY_OPENING}: {text()}"))
        items.append(
            prompt(
                f"{dice.random()} {text()}", *([LABEL, IMAGE] * (dice.random() < 0.2))
            )
        )
        items += [each for _ in range(dice.randrange(5)) for each in response()]
        if dice.random() < 0.2:
            items.append(Note(text()).encoded())
    return items


def total(items: Sequence[EncodedItem], size: Size = weight) -> int:
    return sum(map(size, items))


def calls_and_outputs(
    items: Sequence[EncodedItem],
) -> tuple[Counter[str], Counter[str]]:
    decoded = [json.loads(each) for each in items]
    ids = [
        [data["call_id"] for data in decoded if data["type"].endswith(end)]
        for end in ("tool_call", "function_call", "_output")
    ]
    return Counter(ids[0] + ids[1]), Counter(ids[2])


@pytest.mark.parametrize("size", [weight, len])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_shortened_history_fits_and_is_whole(seed: int, size: Size) -> None:
    items = random_history(seed)
    last = max(n for n, each in enumerate(items) if user_prompt(each))
    for percent in (95, 60, 30, 10, 3, 0):
        room = total(items, size) * percent // 100
        short = shortened(items, room, size)
        left = short.items
        prompts = [found.text for each in left if (found := user_prompt(each))]
        # It fits, or nothing but the last words of the user are there, cut as far as they may be.
        if total(left, size) > room:
            assert len(prompts) == 1
            assert len(left) - 1 == sum(
                SUMMARY_OPENING.encode() in each for each in left
            )
            assert total(left, len) < 1000 * len(left)
        calls, outputs = calls_and_outputs(left)
        assert calls == outputs
        assert all(
            b'"reasoning"' not in a or items[items.index(a) + 1] == b
            for a, b in pairwise(left)
        )
        found = user_prompt(items[last])
        assert found is not None
        assert prompts[-1][:50] == found.text[:50]
        if total(items[last : last + 1], size) <= room:
            assert items[last] in left
        assert shortened(left, room, size).items == left
        # What is not cut is the same, and in the same order.
        rest = iter(items)
        assert all(each in rest for each in left if each in items)


def test_a_history_that_fits_is_left_alone() -> None:
    items = random_history(1)
    short = shortened(items, total(items))
    assert short.items == items
    assert (short.outputs, short.turns, short.prompts) == (0, 0, 0)


def test_outputs_are_cut_first_and_the_oldest_first() -> None:
    big = "start" + "x" * 4000 + "end"
    items = [
        prompt("go"),
        *call("c1", big),
        *call("c2", big),
        *call("c3", big),
        says("done"),
    ]
    short = shortened(items, total(items) - 5000)
    outputs = [json.loads(each)["output"] for each in short.items if b"_output" in each]
    assert len(outputs[0]) <= 400 < len(outputs[1]) < len(outputs[2]) == len(big)
    assert outputs[0].startswith("startxxx")
    assert outputs[0].endswith("xxxend")
    assert "characters cut…" in outputs[0]
    assert (short.outputs, short.turns, short.prompts) == (2, 0, 0)


def test_images_of_outputs_go_like_their_texts() -> None:
    items = [prompt("look"), *call("c1", [IMAGE, input_text("a cat")])]
    (*_, output) = shortened(items, total(items) - 4000).items
    assert [part["text"] for part in json.loads(output)["output"]] == [
        "…image cut…",
        "a cat",
    ]


def test_responses_go_as_a_whole_and_the_words_of_the_user_stay() -> None:
    old = [item("reasoning", summary=[], encrypted_content="s" * 900), says("a" * 900)]
    items = [prompt("one"), *old, *call("c1"), prompt("two"), *call("c2"), says("done")]
    short = shortened(items, total(items) - 100)
    assert list(short.items) == [prompt("one"), *items[5:]]
    assert (short.outputs, short.turns, short.prompts) == (0, 1, 0)


def test_a_huge_old_prompt_goes_before_recent_answers() -> None:
    items = [
        prompt("small"),
        says("a"),
        prompt("p" * 50_000),
        says("b"),
        prompt("now"),
        *call("c"),
    ]
    short = shortened(items, 8000)
    texts = [found.text for each in short.items if (found := user_prompt(each))]
    assert texts[::2] == ["small", "now"]
    assert 7000 < len(texts[1].encode()) < 8000
    assert (len(short.items), short.prompts) == (len(items), 1)


def test_a_prompt_keeps_the_names_of_the_images_that_are_cut() -> None:
    items = [prompt("What is this?", LABEL, IMAGE, input_text("</image>"))]
    (cut,) = shortened(items, 100).items
    found = user_prompt(cut)
    assert found is not None
    assert (found.text, found.images) == ("What is this?", ("/a.png",))
    assert b"base64" not in cut


def test_calls_that_the_server_answers_belong_to_their_response() -> None:
    server = [item("image_generation_call", id="ig_1"), says("x" * 500)]
    items = [prompt("one"), *server, prompt("two"), *call("c1")]
    assert list(shortened(items, total(items) - 10).items) == [
        prompt("one"),
        *items[3:],
    ]
