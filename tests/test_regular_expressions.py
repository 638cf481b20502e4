"""`re` of Python 3.11.0 to 3.11.4 matches possessive quantifiers and atomic groups wrongly: there are none."""

import ast
import importlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import codex_py

PACKAGE = Path(codex_py.__file__).parent
PARSER: Any = importlib.import_module("re._parser")
WRONG = {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each string of a module, with its line. What is put into an f-string counts as a group."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text):
                yield node.lineno, text
            case ast.Constant(value=bytes() as data):
                yield node.lineno, data.decode("latin-1")
            case ast.JoinedStr():
                parts = (
                    part.value if isinstance(part, ast.Constant) else "(?:x)"
                    for part in node.values
                )
                yield node.lineno, "".join(map(str, parts))
            case _:
                pass


def operations(parsed: Any) -> Iterator[str]:
    """The names of all operations of a parsed expression."""
    if isinstance(parsed, PARSER.SubPattern):
        parsed = parsed.data
    if isinstance(parsed, list | tuple):
        for part in parsed:  # pyright: ignore[reportUnknownVariableType]
            yield from operations(part)
    elif hasattr(parsed, "name"):
        yield parsed.name


def is_wrong(text: str) -> bool:
    # Nothing else writes them, and most strings are prose.
    if not re.search(r"[*+?}]\+|\(\?>", text):
        return False
    for flags in (0, re.VERBOSE):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                parsed = PARSER.parse(text, flags)
            except (re.error, OverflowError, RecursionError):
                continue
        if WRONG & set(operations(parsed)):
            return True
    return False


@pytest.mark.parametrize(
    "text", ["a++", "(?:a|b*+)c", "[ab]?+", "a{2,3}+", "(?>a)", "a++  # why"]
)
def test_they_are_recognised(text: str) -> None:
    assert is_wrong(text)


@pytest.mark.parametrize(
    "text", ["a+", r"a\++", "[*+]", "+++ b/x", "--- a\n+++ b\n", "[-+]+"]
)
def test_other_expressions_and_texts_are_not_taken_for_them(text: str) -> None:
    assert not is_wrong(text)


def test_no_expression_of_the_program_has_one() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in PACKAGE.rglob("*.py")
        for line, text in texts(ast.parse(file.read_text(encoding="utf-8")))
        if is_wrong(text)
    ]
    assert found == []
