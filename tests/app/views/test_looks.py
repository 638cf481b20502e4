"""Tests `app/views/looks.py`."""

import pytest

from codex_py.app.views.looks import Look, looks_of


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cat a.txt", [Look("read", ("cat", "a.txt"), ["a.txt"])]),
        ("ls -la", [Look("list", ("ls", "-la"), [])]),
        (
            "rg -n TODO src | head -3",
            [Look("search", ("rg", "-n", "TODO", "src"), ["src"], "TODO")],
        ),
        (
            "cd src && cat a.txt",
            [Look("read", ("cat", "a.txt"), ["a.txt"], folder="src")],
        ),
        (
            "cd - && cat a.txt",
            [Look("read", ("cat", "a.txt"), ["a.txt"], folder=None)],
        ),
        ("cat a.txt > b.txt", []),
        ("cat a.txt && make", []),
        ("pwd", []),
        ("cat " + "a" * 5_000, []),
    ],
)
def test_looks_of_scripts(script: str, expected: list[Look]) -> None:
    assert looks_of(script) == expected
