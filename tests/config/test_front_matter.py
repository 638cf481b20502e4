"""Tests `config/definitions.py`."""

from pathlib import Path

import pytest

from codex_py.config.definitions import front_matter
from codex_py.errors import ConfigError

TEXT = """\
---
# how a skill begins
name: release   # ours
description: Use when: the user says "ship it"
quoted: "two\\nlines # here"
single: 'it''s'
folded: >-
  one
  two
kept: |
  one
  two
metadata:
  short: nothing
---
Body.
"""


def test_fields_are_read_as_people_write_them() -> None:
    assert front_matter(TEXT, Path("a")) == (
        {
            "name": "release",
            "description": 'Use when: the user says "ship it"',
            "quoted": "two\nlines # here",
            "single": "it's",
            "folded": "one two",
            "kept": "one\ntwo",
            "metadata": "",
        },
        "Body.\n",
    )


def test_a_text_without_fields_is_left_as_it_is() -> None:
    assert front_matter("Body.\n---\n", Path("a")) == ({}, "Body.\n---\n")


def test_fields_may_be_indented_and_lists_need_not_be() -> None:
    text = "---\r\n  name: a\r\n\r\n  tools:\r\n  - Read\r\n  - Edit\r\n  description: b\r\n  ...\r\n---\r\n"
    assert front_matter(f"\ufeff{text}", Path("a")) == (
        {"name": "a", "tools": "Read, Edit", "description": "b"},
        "",
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\nname: x\n", 1),
        ("---\n# why\nno field\n---\n", 3),
        ("---\nb: x\n  y\na: 'x\n---\n", 4),
        ('---\na: "x\n---\n', 2),
    ],
)
def test_fields_that_cannot_be_read_are_an_error(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match=f"a:{line}: the front matter"):
        front_matter(text, Path("a"))


def test_a_long_run_of_blanks_is_read_in_one_pass() -> None:
    blanks = " " * 500_000
    text = f"---\na: x{blanks}y{blanks}\nb: x{blanks}# z\n---\n"
    assert front_matter(text, Path("a")) == ({"a": f"x{blanks}y", "b": "x"}, "")
