"""The tests of a module are found by its name: that of the test file, or one in its docstring.

A docstring names modules in a paragraph of its own, such as "Tests `app/a.py` and `app/b.py`.";
where the file has the name of a module already, it is "Also tests `app/b.py`.".
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import codex_py

PACKAGE = Path(codex_py.__file__).parent
TESTS = Path(__file__).parent
MOST_STATEMENTS_WITHOUT_TEST = 30
"""A module with more statements than this has a test that is named for it, or that names it."""
NAMES_MODULES = re.compile(r"^(?:T|Also t)ests (`[^`]+`(, `[^`]+`)*( and `[^`]+`)?)\.$")


def modules() -> Iterator[Path]:
    for path in PACKAGE.rglob("*.py"):
        is_data = "repository" in path.parts  # what the demo works on
        if path.name != "__init__.py" and not is_data:
            yield path.relative_to(PACKAGE)


def files_of_tests() -> list[Path]:
    return sorted(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))


def mirrored(test: Path) -> Path:
    """The module with the name of a test file, which may not exist."""
    return test.with_name(test.name.removeprefix("test_"))


@cache
def docstring(test: Path) -> str:
    source = (TESTS / test).read_text("utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def named_modules(test: Path) -> list[Path]:
    """The modules that the docstring of a test file names, relative to the package."""
    found: list[Path] = []
    for paragraph in docstring(test).split("\n\n"):
        sentence = NAMES_MODULES.match(" ".join(paragraph.split()))
        if sentence is not None:
            found += map(Path, re.findall(r"`([^`]+)`", sentence[1]))
    return found


def statements(path: Path) -> int:
    """Count the statements of a module."""
    tree = ast.parse((PACKAGE / path).read_text("utf-8"))
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def test_a_test_file_mirrors_a_module_or_its_docstring_says_what_it_tests() -> None:
    silent = [
        str(test)
        for test in files_of_tests()
        if not (PACKAGE / mirrored(test)).exists() and not docstring(test)
    ]
    assert silent == []


def test_every_module_that_a_test_file_names_exists() -> None:
    missing = [
        f"{test} names {module}"
        for test in files_of_tests()
        for module in named_modules(test)
        if not (PACKAGE / module).is_file()
    ]
    assert missing == []


def test_every_module_has_a_test_file_of_its_name_or_one_that_names_it() -> None:
    found: set[Path] = set()
    for test in files_of_tests():
        found.add(mirrored(test))
        found.update(named_modules(test))
    untested = [
        str(module)
        for module in modules()
        if module not in found and statements(module) > MOST_STATEMENTS_WITHOUT_TEST
    ]
    assert untested == []
