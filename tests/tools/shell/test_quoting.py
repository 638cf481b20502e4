import shlex
import subprocess

import pytest

from codex_py.tools.shell.quoting import quote_argv


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["/bin/bash", "-lc", "echo hi"], "/bin/bash -lc 'echo hi'"),
        (["bash", "-lc", "echo 'x'"], "bash -lc \"echo 'x'\""),
        (["a", ""], "a ''"),
        (["=", "a,b", "a@b:c]"], "'=' 'a,b' a@b:c]"),
        (["a\\b"], '"a\\\\b"'),
        (["it's $HOME"], "\"it's \"'$HOME'"),
        (["^x'"], "'^x'\"'\""),
    ],
)
def test_words_are_quoted_as_codex_does(argv: list[str], line: str) -> None:
    assert quote_argv(argv) == line


@pytest.mark.parametrize(
    "word",
    [
        "it's",
        "a\nb",
        "$(x) `y`",
        "'\"\\",
        "!^'!^",
        "^",
        "^^",
        "\\",
        "é'",
        "'^'",
        "~ * [a]",
    ],
)
def test_a_shell_reads_back_what_was_quoted(word: str) -> None:
    line = quote_argv(["printf", "%s", word])
    assert shlex.split(line) == ["printf", "%s", word]
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
    )
    assert done.stdout == word
