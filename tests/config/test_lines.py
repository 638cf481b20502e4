import random
import tomllib
from typing import Any, cast

from codex_py.config.lines import key_lines
from tests.support.searches import share

TEXT = '''\
a = 1  # b = 2
b.c = [1, { x = 2, "y.z" = [3,
  4] }]
[t."u v"]
s = """a = 1
\\""" b"""""
'k' = 'x\\'
[[h.E]]
m = 1
[[h.E.k]]
q = 1979-05-27 07:32:00
[[h.E]]
m = 2
'''


def test_every_key_is_found_on_its_line():
    assert key_lines(TEXT) == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 2,
        ("b", "c", "0"): 2,
        ("b", "c", "1"): 2,
        ("b", "c", "1", "x"): 2,
        ("b", "c", "1", "y.z"): 2,
        ("b", "c", "1", "y.z", "0"): 2,
        ("b", "c", "1", "y.z", "1"): 3,
        ("t",): 4,
        ("t", "u v"): 4,
        ("t", "u v", "s"): 5,
        ("t", "u v", "k"): 7,
        ("h",): 8,
        ("h", "E"): 8,
        ("h", "E", "0"): 8,
        ("h", "E", "0", "m"): 9,
        ("h", "E", "0", "k"): 10,
        ("h", "E", "0", "k", "0"): 10,
        ("h", "E", "0", "k", "0", "q"): 11,
        ("h", "E", "1"): 12,
        ("h", "E", "1", "m"): 13,
    }
    assert set(key_lines(TEXT)) == _keys(tomllib.loads(TEXT))


def test_windows_line_ends_count_once():
    assert key_lines("a = 1\r\n\r\nb = 2\r\n") == {("a",): 1, ("b",): 3}


def test_any_text_that_parses_is_scanned_to_the_same_keys():
    pieces = [
        "a", "b", ".", "=", "=1", "=''", '="x"', '"q"', "'w'", '"""', "'''", "[", "]", "[[", "]]",
        "{", "}", ",", "\n", "\n", " ", "#c", "\\", "1", "true", "\r\n", '"\\""', "é",
    ]  # fmt: skip
    generator = random.Random(7)
    parsed = 0
    for _ in range(share(30_000)):
        text = "".join(generator.choices(pieces, k=generator.randrange(1, 14)))
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        parsed += 1
        assert set(key_lines(text)) == _keys(values), text
    assert parsed > share(500)


def _keys(value: Any, key: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    if isinstance(value, dict):
        parts = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        parts = [
            (str(number), part) for number, part in enumerate(cast("list[Any]", value))
        ]
    else:
        return set()
    return {
        found
        for name, part in parts
        for found in ((*key, name), *_keys(part, (*key, name)))
    }
