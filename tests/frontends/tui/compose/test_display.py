import random
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import Transformation, TransformationInput
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.compose.attachments import Attachments
from codex_py.frontends.tui.compose.display import Display


def shown(
    text: str, width: int, attachments: Attachments | None = None
) -> Transformation:
    """How one line is shown in a window of so many columns, two of which the sign of the prompt takes."""
    fragments: Any = [("", text)]
    line = TransformationInput(
        BufferControl(Buffer()),
        Document(text),
        0,
        lambda place: place,
        fragments,
        width,
        1,
    )
    return Display(attachments or Attachments(), "Say something").apply_transformation(
        line
    )


def rows_of(transformation: Transformation, room: int) -> list[str]:
    """As prompt-toolkit breaks it: where the next character does not fit."""
    rows, used = [""], 0
    for _, text, *_ in transformation.fragments:
        for character in text:
            if used + get_cwidth(character) > room:
                rows.append("")
                used = 0
            rows[-1] += character
            used += get_cwidth(character)
    return [row.rstrip() for row in rows]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("fits", ["fits"]),
        ("two words", ["two words"]),
        ("three words here", ["three", "words here"]),
        ("ten chars  and blanks", ["ten chars", "and blanks"]),
        ("exactly te n", ["exactly te", "n"]),
        ("exactly te   n", ["exactly te", "n"]),
        ("unbreakable-word x", ["unbreakabl", "e-word x"]),
        ("a unbreakable-word", ["a unbreaka", "ble-word"]),
        ("日本語のテキスト x", ["日本語のテ", "キスト x"]),
        ("ab 日本語の テ", ["ab 日本語", "の テ"]),
    ],
)
def test_rows_end_between_words(text: str, rows: list[str]) -> None:
    assert rows_of(shown(text, 12), 10) == rows


def test_nothing_is_lost_and_each_place_is_found_again() -> None:
    chance = random.Random(7)
    for _ in range(500):
        text = "".join(
            chance.choice("ab  c日-\t") for _ in range(chance.randrange(80))
        ).strip("\n")
        room = chance.randrange(4, 30)
        transformation: Any = shown(text, room + 2)
        drawn = "".join(part for _, part, *_ in transformation.fragments)
        if text:
            assert "".join(drawn.split()) == "".join(text.split())
            if "日" not in text and all(len(word) <= room for word in text.split()):
                assert " ".join(rows_of(transformation, room)).split() == text.split()
        places = [transformation.source_to_display(n) for n in range(len(text) + 1)]
        assert places == sorted(places)
        for n, place in enumerate(places):
            back = transformation.display_to_source(place)
            assert back == n or set(text[min(n, back) : max(n, back)]) == {" "}


def test_a_label_is_not_broken() -> None:
    attachments = Attachments()
    mark = attachments.mark(Path("/repo/pic.png"))
    assert rows_of(shown(f"look {mark} here", 14, attachments), 12) == [
        "look",
        "[Image #1]",
        "here",
    ]


def test_behind_a_label_that_is_wider_than_the_row_words_are_not_torn() -> None:
    attachments = Attachments()
    mark = attachments.mark("x\n" * 52_000)
    rows = rows_of(shown(f"{mark} abc def ghi", 20, attachments), 18)
    assert rows == ["[Pasted 52,000 lin", "es, Ctrl-O] abc", "def ghi"]


def test_control_characters_take_the_room_of_what_they_are_shown_as() -> None:
    transformation: Any = shown("\x1b" * 6 + " text", 14)
    assert [transformation.source_to_display(n) for n in (6, 7, 11)] == [6, 7, 11]
