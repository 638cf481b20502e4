"""Finds out what a provider's error means from the words in it.

`wordings.toml` lists known wordings. This module has the general rules for requests that are too
long and for refused schemas.
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from codex_py.protocol.frozen import frozen

Meaning: TypeAlias = Literal[
    "too_long",
    "no_room",
    "throttled",
    "other",
    "no_tools",
    "no_images",
    "bad_schema",
    "unauthorized",
    "arguments",
    "image",
]
"""The meanings of an error; see the head of `wordings.toml`."""

_PATH = Path(__file__).with_name("wordings.toml")
_MAX_WORDS = 10_000
"""The number of characters that are examined."""

# The general rule for a lack of room without a known wording: the words mention a size and a part
# of the request.
_SIZE = (
    r"(?i)\btoo (?:long|large|big|many|much)\b|\bexceed|\blonger than\b|\blimit|\bmax(?:imum)?\b"
    r"|\d(?: tokens)? >=? \d|\bat most\b|\bshorte[nr]\b|\breduce\b|\boverflow|\bover\b.{0,20}\bby\b"
)
_SENT = (
    r"(?i)\b(?:tokens?|context|prompt|inputs?|length|messages?|conversation|history|window"
    r"|sequence)\b"
    r"|context_|_length\b|_tokens\b"
)

# The general rule for a refused schema: the words mention tools and parts of a schema, and no call
# in the history.
_TOOLS = (
    r"(?i)(?<![a-z_])(?:tools?|functions?|function_?declarations?)(?![a-z_])|工具|函数"
)
_SCHEMA = (
    r"(?i)(?<![a-z_])"
    r"(?:schemas?|properties|any_?of|one_?of|all_?of|additional_?properties)"
    r"(?![a-z_])"
    r"|\$(?:ref|defs)\b"
    r"|\b(?:arrays?|objects?)\b.{0,40}\b(?:items|fields?)\b"
    r"|['\"`](?:type|items|enum|required|format|pattern)['\"`]"
)
_HISTORY = (
    r"(?i)\bmessages?\b|\binput\[|tool_calls?\b|tool_use|tool_result|\barguments\b"
    r"|response_format"
)


@frozen
class Wording:
    """A row of `wordings.toml`."""

    meaning: Meaning
    provider: str
    pattern: str
    example: str


@cache
def wordings() -> Sequence[Wording]:
    """The wordings of the table, in order."""
    with _PATH.open("rb") as stream:
        rows = tomllib.load(stream)["wording"]
    return [Wording(**row) for row in rows]


def means(meaning: Meaning, words: str) -> bool:
    """True if the words have a known wording with this meaning."""
    return _found(meaning, words) is not None


def is_too_long(words: str) -> bool:
    """True if the words say that the request has more tokens than the model takes."""
    if means("throttled", words):
        return False
    if means("no_room", words):
        return True
    return means("too_long", words) and not means("other", words)


def may_be_too_long(words: str) -> bool:
    """True if the words may say that the request is too long.

    Some servers send no words at all then.
    """
    others = ("throttled", "other", "bad_schema", "image")
    if any(means(meaning, words) for meaning in others):
        return False
    if not words.strip():
        return True
    text = words[:_MAX_WORDS]
    if re.search(_SIZE, text) is None:
        return False
    return re.search(_SENT, text) is not None


def may_be_bad_schema(words: str) -> bool:
    """True if the words may say that the description of a tool is not accepted."""
    if means("bad_schema", words):
        return True
    others = ("too_long", "no_room", "throttled", "other", "no_tools", "no_images")
    if any(means(meaning, words) for meaning in others):
        return False
    text = words[:_MAX_WORDS]
    if re.search(_HISTORY, text) is not None:
        return False
    if re.search(_TOOLS, text) is None:
        return False
    return re.search(_SCHEMA, text) is not None


def stated_limit(words: str) -> int | None:
    """The model's token limit in its provider's words, if they say that a request exceeds it."""
    if not is_too_long(words):
        return None
    limits: list[int] = []
    for pattern in _patterns("too_long"):
        found = pattern.search(words[:_MAX_WORDS])
        if found is None:
            continue
        limit = found.groupdict().get("limit")
        if limit:
            limits.append(int(limit.replace(",", "")))
    return max(limits, default=None)


def _found(meaning: Meaning, words: str) -> re.Match[str] | None:
    text = words[:_MAX_WORDS]
    matches = (pattern.search(text) for pattern in _patterns(meaning))
    return next((match for match in matches if match), None)


@cache
def _patterns(meaning: Meaning) -> Sequence[re.Pattern[str]]:
    """The compiled wordings with this meaning."""
    assert meaning in get_args(Meaning)
    return [
        re.compile(f"(?is){row.pattern}")
        for row in wordings()
        if row.meaning == meaning
    ]
