"""Finds the line on which a TOML text sets a key; `tomllib` does not report it.

The scanner reads text that `tomllib` has already accepted, so it need not check the text.
Specification: https://toml.io/en/v1.0.0
"""

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from codex_py.config.check import KeyPath

_TOKEN: Final = re.compile(
    # Up to two quotes may stand right before three that close a string.
    r"""
    \"{3}(?:\\.|[^\\])*?\"{3,5} | '{3}.*?'{3,5} | \"(?:\\.|[^\"\\])*\" | '[^']*'
    | \#[^\n]* | [\n\[\]{},.=] | [^\s\[\]{},.=\"'\#]+
    """,
    re.DOTALL | re.VERBOSE,
)
_NO_NUMBER: Final = -1
"""The element number of a place that is in a table, not in an array."""


@lru_cache(maxsize=16)
def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line, counted from 1, on which each key and table of a valid TOML text first appears.

    The elements of an array count as keys by their number: `("notify", "0")`.
    """
    return _scanned(text).lines


def open_table(text: str) -> KeyPath:
    """The table that a key appended to the TOML text would belong to."""
    return _scanned(text).table


def _scanned(text: str) -> "_Scanner":
    """Read a whole TOML text."""
    scanner = _Scanner()
    for found in _TOKEN.finditer(text):
        scanner.read(found[0])
    return scanner


def _key_part(token: str) -> str:
    """The name that a part of a key stands for, without its quotes and escapes."""
    if token[0] in "\"'":
        return tomllib.loads(f"key = {token}")["key"]
    return token


class _Scanner:
    """Follows a TOML text token by token, and notes the line of each key."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.table: KeyPath = ()
        """The table that the present line belongs to."""
        self._line = 1
        self._array_tables: dict[KeyPath, int] = {}
        """The number of the last element of each array of tables."""
        self._open: list[tuple[KeyPath, int]] = []
        """The arrays and inline tables around the present place, each with the number of its
        element."""
        self._parts: list[str] = []
        """The parts of the key or the header that is being read."""
        self._brackets = 0
        """The number of opening brackets of the header that is being read."""
        self._key: KeyPath | None = None
        """The key of the value that is being read."""

    def read(self, token: str) -> None:
        around, number = self._place()
        is_in_array = number != _NO_NUMBER
        if is_in_array and token[0] not in ",]\n#":
            # An element begins here.
            self._key = (*around, str(number))
            self._record(self._key)
        match token:
            case "\n" if not self._open:
                self._key = None
                self._parts = []
                self._brackets = 0
            case "," if is_in_array:
                self._open[-1] = (around, number + 1)
            case ",":
                self._key = None
                self._parts = []
            case "=":
                self._key = (*around, *self._parts)
                self._record(self._key)
            case "[" if self._key is None:
                self._brackets += 1
            case "[" if self._key is not None:
                self._open.append((self._key, 0))
            case "{" if self._key is not None:
                self._open.append((self._key, _NO_NUMBER))
                self._key = None
                self._parts = []
            case "]" | "}" if self._open:
                self._open.pop()
            case "]" if self._parts:
                self._end_header()
            case _ if self._key is None and token[0] not in ".#\n]":
                self._parts.append(_key_part(token))
            case _:
                pass
        self._line += token.count("\n")

    def _place(self) -> tuple[KeyPath, int]:
        """The innermost table or array, and the number of its element."""
        if self._open:
            return self._open[-1]
        return self.table, _NO_NUMBER

    def _end_header(self) -> None:
        """Enter the table that the header names, `[a.b]` or `[[a.b]]`."""
        # A table may lie inside the last element of an array of tables.
        table: KeyPath = ()
        for number, part in enumerate(self._parts, 1):
            table = (*table, part)
            if self._brackets == 2 and number == len(self._parts):
                self._array_tables[table] = self._array_tables.get(table, -1) + 1
            if table in self._array_tables:
                table = (*table, str(self._array_tables[table]))
        self._record(table)
        self.table = table
        self._parts = []

    def _record(self, key: KeyPath) -> None:
        """Note the present line for a key and the tables around it, unless they have one."""
        for length in range(1, len(key) + 1):
            self.lines.setdefault(key[:length], self._line)
