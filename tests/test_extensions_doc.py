"""`docs/extensions.md` shows the package of `examples/ledger` as it is, and lists every extension point."""

import re

import pytest

from codex_py import registry
from tests.support.packages import DOC, EXAMPLE

PAGE = DOC.read_text(encoding="utf-8")
FILES = [
    path.relative_to(EXAMPLE).as_posix()
    for path in sorted(EXAMPLE.rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts
]


@pytest.mark.parametrize("name", FILES)
def test_the_page_shows_the_file_as_it_is(name: str) -> None:
    text = (EXAMPLE / name).read_text(encoding="utf-8")
    if len(text.splitlines()) == 1:
        return
    shown = re.search(
        rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    assert shown is not None
    assert shown[1] == text


def test_the_tree_of_the_page_has_every_file() -> None:
    (tree,) = re.findall(
        r"^```text\nledger/\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    for name in FILES:
        assert name.rpartition("/")[2] in tree


def test_the_example_uses_public_names_alone() -> None:
    for name in FILES:
        text = (EXAMPLE / name).read_text(encoding="utf-8")
        used = re.findall(r"^(?:from|import) (codex_py\b[\w.]*)", text, re.MULTILINE)
        rest = [each for each in used if not each.startswith("codex_py.api.")]
        is_test = name.startswith("tests/")
        assert set(rest) <= ({"codex_py", "codex_py.testing"} if is_test else set())


def test_the_table_of_extension_points_lists_every_group() -> None:
    listed = re.findall(r"^\| `(codex_py\.\w+)` \|", PAGE, re.MULTILINE)
    groups = {
        value
        for name, value in vars(registry).items()
        if name.isupper() and isinstance(value, str) and value.startswith("codex_py.")
    }
    assert sorted(groups) == sorted(listed)
