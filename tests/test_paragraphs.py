"""No paragraph of the README and of the documentation is a wall of text."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.documents import PAGES, name_of

_MAX_WORDS: Final = 90
_BEGINS_ANOTHER: Final = re.compile(r"\s*([-*] |\d+\. |#|\||>|$)")
"""The lines that do not continue a paragraph: items of lists, headings, rows, quotes and empty lines."""


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and items of lists. Code, tables and the head of a page are left out."""
    text = re.sub(r"\A---\n.*?^---$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines: list[str] = []
    for line in text.splitlines():
        if _BEGINS_ANOTHER.match(line):
            yield " ".join(lines).strip()
            lines = []
        if not line.startswith("|"):
            lines.append(line.strip())
    yield " ".join(lines).strip()


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=name_of(page)) for page in PAGES]
)
def test_no_paragraph_is_longer_than_a_reader_likes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    long = [each for each in paragraphs(text) if len(each.split()) > _MAX_WORDS]
    assert [f"{each[:60]}… ({len(each.split())} words)" for each in long] == []


def test_paragraphs_are_told_apart() -> None:
    text = "# A\n\nOne\ntwo.\n- three\n  four\n\n| five |\n\n```sh\nsix\n```\nseven\n"
    found = [each for each in paragraphs(text) if each]
    assert found == ["# A", "One two.", "- three four", "seven"]
