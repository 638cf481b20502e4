"""Also tests `config/files.py`."""

import tomllib
from pathlib import Path

import pytest

from codex_py.config.files import parse_toml
from codex_py.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("model = 'a'\n\nmodel = 'b'\n", 3, "`model` stands twice, first in line 1"),
        ("[tui]\na = 1\nb = 2\na = 3\n", 4, "`tui.a` stands twice, first in line 2"),
        ("[tui]\na = 1\n[x]\n[tui]\nb = 1\n", 4, "`tui` stands twice, first in line 1"),
        ("[a.b]\n[[c]]\nd = 1\nd = 2\n", 4, "`c.0.d` stands twice, first in line 3"),
        (
            'model_provider = "m"\n[model_provider.m]\nbase_url = "x"\n',
            2,
            "`model_provider` has a value in line 1, so it cannot be a table;"
            " did you mean `model_providers`?",
        ),
        (
            "[a]\nb = 1\n[a.b] # more\nc = 1\n",
            3,
            "`a.b` stands twice, first in line 2",
        ),
        ("a.b = 1\na = 2\n", 2, "`a` stands twice, first in line 1"),
        ("model = gpt-5.5\n", 1, 'text needs quotes: "…"'),
        ("x = [1,\nfoo]\n", 2, 'text needs quotes: "…"'),
        ("cwd = ~/work\n", 1, 'text needs quotes: "…"'),
        ("a = {b = sk-secret}\n", 1, 'text needs quotes: "…"'),
        ("a = True\n", 1, "write `true`"),
        ("a = no\n", 1, "write `false`"),
        ("a = None\n", 1, "TOML has no value for nothing: leave the key out"),
        ("a = \u201cx\u201d\n", 1, 'quotes must be plain ones: "…"'),
        (
            'p = "C:\\Users\\x"\n',
            1,
            "Invalid hex value: a `\\` in double quotes begins an escape; use single quotes",
        ),
        ('a = "x\nb = 1\n', 1, "the quote is not closed on this line"),
        ("a = \n", 1, "Invalid value"),
        ("a = 'x\n", 2, "a quote is not closed"),
        ('a = "x', 1, "a quote is not closed"),
        ("model: gpt-5.5\n", 1, "a key and its value have `=` between them, not `:`"),
        (
            '{"model": "gpt-5.5"}\n',
            1,
            "this is JSON; in TOML, each line is `KEY = VALUE`",
        ),
        ("a b = 1\n", 1, "Expected '=' after a key in a key/value pair"),
    ],
)
def test_an_error_says_what_was_done_wrong(text: str, line: int, message: str):
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    with pytest.raises(ConfigError) as caught:
        parse_toml(text, Path("/c.toml"))
    place, _, told = (
        str(caught.value).removeprefix("Error loading config.toml: ").partition(": ")
    )
    assert place.startswith(f"/c.toml:{line}:")
    assert told.startswith(message)
    assert "sk-secret" not in told
