"""Explains the errors of `tomllib` in the words of someone who writes a configuration file."""

import re
from typing import Final

from codex_py.config.check import KeyPath, dotted
from codex_py.config.declared.section import key_of
from codex_py.config.declared.settings import Settings
from codex_py.config.lines import key_lines, open_table

_BARE_VALUE: Final = re.compile(r"[A-Za-z~/$][^\s,\]}]*")
"""The start of a text without quotes."""
_WORDS: Final = {
    "True": "true",
    "False": "false",
    "yes": "true",
    "no": "false",
    "None": None,
}
"""Values of other languages, with the TOML values that they mean; None: TOML has no such value."""
_CURLY_QUOTES: Final = ("\u201c", "\u201d", "\u2018", "\u2019", "\u00ab")
_NOT_CLOSED: Final = {'Expected "\'"', "Unterminated string"}
_NO_EQUALS_SIGN: Final = "Expected '=' after a key in a key/value pair"


def explained(
    message: str,
    text: str,
    line: int,
    column: int,
) -> str:
    """Explain an error by a frequent mistake; without one, return the message unchanged.

    Args:
        message: the message of `tomllib` without its position.
        line: the line of the error, counted from 1, as is `column`.
    """
    rows = text.split("\n")
    row = rows[min(line, len(rows)) - 1]
    if message == "Illegal character '\\n'":
        return "the quote is not closed on this line"
    if message in _NOT_CLOSED:
        return "a quote is not closed"
    if message == "Invalid statement" and row.lstrip().startswith("{"):
        return "this is JSON; in TOML, each line is `KEY = VALUE`"
    if message == _NO_EQUALS_SIGN and row[column - 1 :].startswith(":"):
        return "a key and its value have `=` between them, not `:`"
    if message == "Cannot overwrite a value" or message.startswith("Cannot declare"):
        return _conflict("\n".join(rows[: line - 1]), row) or message
    if message == "Invalid value":
        return _unquoted(row[column - 1 :]) or message
    if message in {"Invalid hex value", "Unescaped '\\' in a string"} and '"' in row:
        return f"{message}: a `\\` in double quotes begins an escape; use single quotes"
    return message


def _unquoted(value: str) -> str | None:
    """Explain why a value is not valid; None if it does not begin with a word or a curly quote."""
    if value.startswith(_CURLY_QUOTES):
        return 'quotes must be plain ones: "…"'
    found = _BARE_VALUE.match(value)
    if found is None:
        return None
    word = found[0]
    if word in _WORDS:
        meant = _WORDS[word]
        if meant is None:
            return "TOML has no value for nothing: leave the key out"
        return f"write `{meant}`"
    # The text itself is not shown: it may be a secret.
    return 'text needs quotes: "…"'


def _conflict(before: str, row: str) -> str | None:
    """Explain why a key or table conflicts with those that the lines before it set."""
    lines = key_lines(before)
    key = _parts(row)
    is_header = row.lstrip().startswith("[")
    if not is_header:
        key = (*open_table(before), *key)
    for length in range(len(key), 0, -1):
        first = lines.get(key[:length])
        if first is None:
            continue
        name = dotted(key[:length])
        if length == len(key):
            return f"`{name}` stands twice, first in line {first}"
        text = f"`{name}` has a value in line {first}, so it cannot be a table"
        plural = f"{key[0]}s"
        if key_of(Settings, plural) is not None:
            return f"{text}; did you mean `{plural}`?"
        return text
    return None


def _parts(row: str) -> KeyPath:
    """The parts of the key or the header on a line."""
    header = row.strip().split("#")[0].rstrip()
    if header.startswith("["):
        name = header.strip("[] ")
    else:
        name = header.partition("=")[0]
    parts = [part.strip() for part in name.strip().split(".")]
    return tuple(part.strip("\"'") for part in parts)
