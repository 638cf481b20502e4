"""Also tests `frontends/tui/markdown.py`."""

import time

import pytest

from codex_py.frontends.tui.blocks import Block, Blocks


def blocks(text: str, size: int = 3) -> list[Block]:
    splitter = Blocks()
    found: list[Block] = []
    for start in range(0, len(text), size):
        splitter.feed(text[start : start + size])
        found += splitter.take()
    return found + splitter.finish()


def test_blocks_end_where_the_next_one_begins() -> None:
    assert blocks("# A\n\nb\nc\n\n```py\nx\n\ny\n```\nd") == [
        Block("# A\n"),
        Block("b\nc\n"),
        Block("x\n\ny\n", "py"),
        Block("d"),
    ]


def test_items_of_a_list_are_printed_one_by_one() -> None:
    assert blocks("Look:\n- a\n  b\n- c\n\n  d\n- e\n\nf") == [
        Block("Look:\n"),
        Block("- a\n  b\n", is_first=False),
        Block("- c\n\n  d\n", is_first=False),
        Block("- e\n\n", is_first=False),
        Block("f"),
    ]


def test_code_inside_of_an_item_stays_with_it() -> None:
    item = "1. a\n   ```py\n   x\n\n   y\n   ```\n"
    assert blocks(item + "2. b") == [Block(item), Block("2. b", is_first=False)]


def test_text_that_may_still_change_is_the_rest() -> None:
    splitter = Blocks()
    splitter.feed("one\n\ntw")
    assert (splitter.take(), splitter.rest) == ([Block("one\n")], Block("tw"))
    splitter.feed("o\n\n```py\nx = ")
    splitter.take()
    assert splitter.rest == Block("x = ", "py")


def test_an_unclosed_fence_loses_nothing() -> None:
    assert blocks("```py\nx\n") == [Block("x\n", "py")]
    assert blocks("```") == [Block("", "")]


def test_long_code_comes_in_pieces_that_end_at_empty_lines() -> None:
    code = "".join(f"line {n}\n" + "\n" * (n % 10 == 9) for n in range(100))
    pieces = blocks(f"```py\n{code}```\n")
    assert "".join(piece.text for piece in pieces if piece.language is not None) == code
    assert [piece.is_first for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert all(p.language is not None and p.text.endswith("\n\n") for p in pieces[:-1])


def test_a_long_table_keeps_its_head_in_every_piece() -> None:
    head = "| a | b |\n|---|---|\n"
    rows = "".join(f"| {n} | {'x' * 90} |\n" for n in range(500))
    pieces = [piece for piece in blocks(head + rows, 1000) if piece.language is None]
    assert len(pieces) > 1
    assert all(piece.text.startswith(head) for piece in pieces)
    assert "".join(piece.text.removeprefix(head) for piece in pieces) == rows


def test_behind_so_much_markdown_text_is_shown_as_it_is() -> None:
    found = blocks("word " * 40_000, 1000)
    texts = [b.text for b in found]
    assert "".join(texts).replace("\n", "") == "word " * 40_000
    assert found[-1].language == ""


def test_nobody_is_told_that_there_is_no_end() -> None:
    splitter = Blocks()
    splitter.feed("x" * 1_000_000)
    assert splitter.hidden == 500_000


@pytest.mark.parametrize("text", ["x", "```\n" + "x", "- x\n", "\n", "| a |\n|-|\n"])
def test_time_is_linear_in_the_length_of_the_answer(text: str) -> None:
    splitter = Blocks()
    before = time.process_time()
    for _ in range(50_000):
        splitter.feed(text)
        splitter.take()
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "text", ["~" * 20_000 + "`\n", "a|b\n" + " " * 45_000 + "x|\n"]
)
def test_a_long_line_that_begins_nothing_is_no_work(text: str) -> None:
    before = time.process_time()
    assert (
        "".join(block.text for block in blocks(text, len(text))).strip() == text.strip()
    )
    assert time.process_time() - before < 2
