import pytest

from codex_py.config.front_matter import front_matter

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
    assert front_matter(TEXT) == (
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
    assert front_matter("Body.\n---\n") == ({}, "Body.\n---\n")


@pytest.mark.parametrize("text", ["---\nname: x\n", "---\nno field\n---\n", "---\na: 'x\n---\n"])
def test_fields_that_can_not_be_read_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="front matter"):
        front_matter(text)
