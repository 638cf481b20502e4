"""Finds the line on which a TOML text sets a key, which `tomllib` does not tell.

The scanner reads text that `tomllib` has already accepted, so it need not check it.
Specification: https://toml.io/en/v1.0.0
"""

import tomllib
from collections.abc import Mapping
from functools import lru_cache

from codex_py.config.check import KeyPath

_SPACE = " \t"
_BLANK = " \t\r\n"


@lru_cache(maxsize=16)
def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line, counted from 1, on which each key and table of a valid TOML text first appears.

    Elements of arrays count as keys by their number, `("notify", "0")`.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text + "\n"
        self._at = 0
        self._lines: dict[KeyPath, int] = {}
        self._array_tables: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip_blank():
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _skip_blank(self) -> bool:
        """Skip white space and comments; False at the end of the text."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                self._at = self._text.index("\n", self._at)
            elif self._text[self._at] in _BLANK:
                self._at += 1
            else:
                return True
        return False

    def _skip_space(self) -> None:
        while self._text[self._at] in _SPACE:
            self._at += 1

    def _record(self, key: KeyPath) -> None:
        line = self._text.count("\n", 0, self._at) + 1
        for length in range(1, len(key) + 1):
            self._lines.setdefault(key[:length], line)

    def _header(self) -> KeyPath:
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        parts = self._key()
        self._at += 2 if is_array else 1
        # A table may lie inside the last element of an array of tables.
        table: KeyPath = ()
        for number, part in enumerate(parts):
            table = (*table, part)
            if is_array and number == len(parts) - 1:
                self._array_tables[table] = self._array_tables.get(table, -1) + 1
            if table in self._array_tables:
                table = (*table, str(self._array_tables[table]))
        self._record(table)
        return table

    def _pair(self, table: KeyPath) -> None:
        start = self._at
        key = (*table, *self._key())
        after, self._at = self._at, start
        self._record(key)
        self._at = after + 1  # past the equals sign
        self._skip_space()
        self._value(key)

    def _key(self) -> KeyPath:
        """Read a dotted key, up to the equals sign or bracket that follows it."""
        parts: list[str] = []
        while True:
            self._skip_space()
            start = self._at
            if self._text[start] in "\"'":
                self._string()
                parts.append(tomllib.loads("key = " + self._text[start : self._at])["key"])
            else:
                while self._text[self._at] not in " \t.=]":
                    self._at += 1
                parts.append(self._text[start : self._at])
            self._skip_space()
            if self._text[self._at] != ".":
                return tuple(parts)
            self._at += 1

    def _value(self, key: KeyPath) -> None:
        match self._text[self._at]:
            case '"' | "'":
                self._string()
            case "[":
                self._array(key)
            case "{":
                self._inline_table(key)
            case _:
                while self._text[self._at] not in ",]}#\n":
                    self._at += 1

    def _string(self) -> None:
        quote = self._text[self._at]
        escapes = quote == '"'
        fence = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        self._at += len(fence)
        while not self._text.startswith(fence, self._at):
            self._at += 2 if escapes and self._text[self._at] == "\\" else 1
        self._at += len(fence)
        # Up to two quotes may stand right before the closing three.
        while len(fence) == 3 and self._text[self._at] == quote:
            self._at += 1

    def _array(self, key: KeyPath) -> None:
        self._at += 1
        number = 0
        while self._skip_blank() and self._text[self._at] != "]":
            if self._text[self._at] == ",":
                self._at += 1
                number += 1
                continue
            element = (*key, str(number))
            self._record(element)
            self._value(element)
        self._at += 1

    def _inline_table(self, key: KeyPath) -> None:
        self._at += 1
        while self._skip_blank() and self._text[self._at] != "}":
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._pair(key)
        self._at += 1
