"""Also tests `frontends/tui/compose/completion.py`."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from codex_py.app.file_index import FileIndex, match
from codex_py.frontends.tui.compose.completion import quoted
from codex_py.programs import programs_outside


def search(folder: Path, *queries: str, use_git: bool = False) -> list[Sequence[str]]:
    async def ask() -> list[Sequence[str]]:
        programs = programs_outside(folder, os.environ, folder)
        index = FileIndex(folder, programs, os.environ, use_git=use_git)
        return [await index.search(query, 5) for query in queries]

    return asyncio.run(ask())


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_the_best_matches_come_first(tmp_path: Path) -> None:
    names = (
        "test/main_case.py",
        "src/main.py",
        "src/domain.py",
        "main/x.py",
        "m/a/i/n.py",
        "z.md",
    )
    make(tmp_path, *names)
    assert search(tmp_path, "main", "MAIN/", "src/d", "zz", "") == [
        [
            "src/main.py",
            "test/main_case.py",
            "src/domain.py",
            "main/x.py",
            "m/a/i/n.py",
        ],
        ["main/x.py", "src/main.py", "test/main_case.py"][:1],
        ["src/domain.py"],
        [],
        ["z.md", "main/x.py", "m/a/i/n.py", "src/main.py", "src/domain.py"],
    ]


def test_a_word_may_begin_with_a_digit(tmp_path: Path) -> None:
    make(tmp_path, "a/2024.md", "b/x1.py", "2/0/z.md")
    assert search(tmp_path, "20", "1", "2024", "02") == [
        ["a/2024.md", "2/0/z.md"],
        ["b/x1.py"],
        ["a/2024.md"],
        ["a/2024.md"],
    ]


def test_files_that_git_ignores_are_not_found(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\nout/\n", encoding="utf-8")
    make(tmp_path, "a.py", "a.log", "out/a.py", ".hidden/a.py")
    assert search(tmp_path, "a", use_git=True) == [["a.py", ".hidden/a.py"]]
    # Without git, hidden folders are what is left out.
    assert search(tmp_path, "a.py", use_git=False) == [["a.py", "out/a.py"]]


def test_names_may_hold_anything(tmp_path: Path) -> None:
    make(tmp_path, "new\nline.py", "\u00c4rger.py", "(.*)+$")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.py")).touch()
    assert search(tmp_path, "line", "rger", "(.*)+", "bad") == [
        ["new\nline.py"],
        ["\u00c4rger.py"],
        ["(.*)+$"],
        [],
    ]


def test_diacritics_may_be_left_out_and_written_in_any_form(tmp_path: Path) -> None:
    composed, decomposed = (
        "sub/Sp\u00e9cifications \u00e9.md",
        "sub/Re\u0301sume\u0301.md",
    )
    make(
        tmp_path,
        composed,
        decomposed,
        "\u00c5ngstr\u00f6m.txt",
        "plain.md",
        "\u30c7\u30fc\u30bf.csv",
    )
    queries = (
        "Spe",
        "sp\u00e9",
        "spe\u0301cif",
        "resume",
        "r\u00e9sum\u00e9",
        "angstrom",
        "plain",
    )
    assert search(tmp_path, *queries, "\u30c6\u3099", "\u30c7\u30fc") == [
        *([[composed]] * 3),
        *([[decomposed]] * 2),
        ["\u00c5ngstr\u00f6m.txt"],
        ["plain.md"],
        *([["\u30c7\u30fc\u30bf.csv"]] * 2),
    ]


def test_several_words_have_to_be_in_a_path_all_of_them(tmp_path: Path) -> None:
    names = (
        "src/tui/screen_test.py",
        "src/tui/screen.py",
        "tests/api.py",
        "Sp\u00e9c \u00e9t\u00e9.md",
    )
    make(tmp_path, *names)
    queries = (
        "tui test",
        "TEST  tui ",
        "./screen src",
        "ete spe",
        "src tui nothing",
        "api ",
        "t .py tes",
    )
    assert search(tmp_path, *queries) == [
        ["src/tui/screen_test.py"],
        ["src/tui/screen_test.py"],
        ["src/tui/screen.py", "src/tui/screen_test.py"],
        ["Sp\u00e9c \u00e9t\u00e9.md"],
        [],
        ["tests/api.py"],
        ["tests/api.py", "src/tui/screen_test.py"],
    ]


def test_a_path_may_begin_with_this_folder_or_the_one_above(tmp_path: Path) -> None:
    here = tmp_path / "here"
    make(
        tmp_path,
        "here/src/main.py",
        "here/maine.txt",
        "other/main.rs",
        "Mainz\u00e9.md",
        ".hidden",
    )
    assert search(
        here,
        "./main",
        "./src/ma",
        "../mai",
        "../ma",
        "../",
        "../..",
        "../other/m",
        "../no/x",
    ) == [
        ["maine.txt", "src/main.py"],
        ["src/main.py"],
        ["../Mainz\u00e9.md"],
        ["../Mainz\u00e9.md"],
        ["../Mainz\u00e9.md", "../here/", "../other/"],
        ["../../"],
        ["../other/main.rs"],
        [],
    ]


def test_a_question_that_is_overtaken_ends(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.py")

    async def ask() -> list[Sequence[str]]:
        programs = programs_outside(tmp_path, os.environ, tmp_path)
        index = FileIndex(tmp_path, programs, os.environ, use_git=False)
        return list(await asyncio.gather(index.search("a.py", 5), index.search("b", 5)))

    assert asyncio.run(ask()) == [(), ["b.py"]]


def test_paths_are_quoted_where_they_would_not_be_told_apart() -> None:
    assert [
        quoted(path)
        for path in ("src/a-b.py", "my file.md", 'a"b\n\x1b.md', "\u00fc.md")
    ] == [
        "src/a-b.py",
        '"my file.md"',
        '"a\\"b\\n\\u001b.md"',
        "\u00fc.md",
    ]


def test_a_whole_index_finds_folders_and_hidden_files(tmp_path: Path) -> None:
    make(tmp_path, ".hidden/main.c", "src/sub/main.py", "node_modules/main.js")
    make(tmp_path, ".git/main")

    async def ask() -> list[Sequence[str]]:
        programs = programs_outside(tmp_path, os.environ, tmp_path)
        index = FileIndex(tmp_path, programs, os.environ, use_git=False, whole=True)
        return [await index.search("main", 5), await index.search("su", 5)]

    found, folders = asyncio.run(ask())
    assert set(found) == {".hidden/main.c", "src/sub/main.py", "node_modules/main.js"}
    assert folders[:2] == ["src/sub", "src/sub/main.py"]


@pytest.mark.parametrize(
    ("query", "path", "indices"),
    [
        ("MAIN", "src/main.py", (4, 5, 6, 7)),
        ("ain", "src/main.py", (5, 6, 7)),
        ("src/ma", "src/main.py", (0, 1, 2, 3, 4, 5)),
        ("mnpy", "src/main.py", (4, 7, 9, 10)),
        ("py src", "src/main.py", (0, 1, 2, 9, 10)),
        ("uber", "src/übermain.py", (4, 5, 6, 7)),
        ("u\u0308b", "src/über.py", (4, 5)),
    ],
)
def test_a_match_names_the_characters_that_the_query_means(
    query: str, path: str, indices: Sequence[int]
) -> None:
    assert tuple(match(query, path).indices) == indices


def test_the_scores_of_matches_are_in_the_order_of_the_search(tmp_path: Path) -> None:
    make(tmp_path, "main.py", "src/main.py", "domain.py", "main/a.py", "m/a/i/n.py")
    (found,) = search(tmp_path, "main")
    assert len(found) == 5
    scores = [match("main", path).score for path in found]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 5
