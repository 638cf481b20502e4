"""`scripts/density`, which counts how dense the code is, finds each kind that must not be."""

from pathlib import Path

import pytest

from scripts.density import count, figures, main

FORBIDDEN = {
    "a conditional expression inside another one": (
        "x = 1 if a else 2 if b else 3",
        "x = 1 if (2 if a else b) else 3",
        "x = f(1 if a else [2 if b else 3])",
    ),
    "a conditional expression inside a comprehension": (
        "x = [1 if a else 2 for a in b]",
        "x = {a: f(1 if a else 2) for a in b}",
        "x = any(a for a in (b if c else ()))",
    ),
    "values splatted to keep them on one line": (
        'x = (*("a", "b"),)',
        "f(*[a, b])",
    ),
    "a text or list multiplied by a truth value": (
        'x = "s" * (n > 1)',
        'x = (not n) * "s"',
        'x = f"{a} more" * bool(a)',
        "x = [1] * is_on",
        'x = " failed" * entry.has_failed',
        'x = "s" * (n > 1 and n < 5)',
    ),
    "a truth value used as a number": (
        "x = n + (a > b)",
        "x = n - (not a)",
        "n += a == b",
        "n -= item.is_open",
        'n += name.endswith("/")',
    ),
    "a truth value used as an index": (
        "x = names[a != b]",
        "x = names[not a]",
    ),
    "code beyond column 100": (
        f"x = f({', '.join(['argument'] * 12)})",
        f'x = "text"; y = f({", ".join(["argument"] * 12)})',
    ),
}

ALLOWED = (
    "x = 1 if a else 2",
    "x = [1 for a in b if a]",
    "x = [lambda: 1 if a else 2 for a in b]",
    "x = f(*names, *(a for a in b))",
    'x = "-" * width',
    "x = n + (a or 1)",
    "x = names[a]",
    f'x = "{"long " * 30}"',
    f"x = 1  # {'long ' * 30}",
    f'x = f("short", "{"long " * 30}")',
    f'"""{"long " * 30}"""',
    f'x = """short\n{"long " * 30}\n"""',
)


def _written(folder: Path, text: str) -> Path:
    path = folder / "package" / "module.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("why", "line"),
    [(why, line) for why, lines in FORBIDDEN.items() for line in lines],
)
def test_forbidden_code_is_named_with_its_line_and_fails(
    why: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The figures alone break no limit here.
    path = _written(tmp_path, "x = 1\n" * 2_000 + line)
    assert {place.why for place in count([path]).forbidden} == {why}
    assert main([str(path.parent)]) == 1
    assert f"package/module.py:2001: {why}" in capsys.readouterr().out


@pytest.mark.parametrize("line", ALLOWED)
def test_readable_code_passes(line: str, tmp_path: Path) -> None:
    path = _written(tmp_path, line)
    assert count([path]).forbidden == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tokens in a line of code", "f(a, b, c, d, e)"),
        ("conditional expressions in 1,000 lines", "x = 1 if a else 2"),
        ("walruses in 1,000 lines", "f(x := 1)"),
        ("assignments of unrelated values in 1,000 lines", "x, y = 1, 2"),
    ],
)
def test_a_figure_above_its_limit_fails(
    name: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _written(tmp_path, "\n".join([line] * 20))
    broken = {
        figure.name for figure in figures(count([path])) if figure.value > figure.limit
    }
    assert name in broken
    assert main([str(path.parent)]) == 1
    assert f"{name} (limit" in capsys.readouterr().out


def test_plain_code_passes_and_its_densest_lines_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _written(tmp_path, "x = 1\nf(a, b)\n")
    assert main([str(path.parent)]) == 0
    printed = capsys.readouterr().out
    assert "too many" not in printed
    assert "package/module.py:2: 6 tokens in one line" in printed


def test_a_swap_is_no_assignment_of_unrelated_values(tmp_path: Path) -> None:
    path = _written(tmp_path, "a, b = b, a\nx.a, x.b = x.b, x.a\n")
    assert count([path]).packed == 0


def test_comments_and_docstrings_count_neither_as_lines_nor_as_tokens(
    tmp_path: Path,
) -> None:
    text = '"""A module."""\n\n# A comment.\nx = 1  # Another one.\n"""A\nvalue."""'
    counts = count([_written(tmp_path, text)])
    assert (counts.lines, counts.tokens) == (1, 3)


def test_a_formatted_string_is_one_token(tmp_path: Path) -> None:
    counts = count([_written(tmp_path, 'x = f"{a + b:{width}} and {c}"')])
    assert counts.tokens == 3


def test_the_files_that_the_demo_patches_are_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _written(tmp_path, "x = 1").parent
    data = folder / "frontends" / "demo" / "repository"
    data.mkdir(parents=True)
    (data / "dense.py").write_text("x, y = 1, 2\n", encoding="utf-8")
    assert main([str(folder)]) == 0
    assert "dense.py" not in capsys.readouterr().out
