"""Removes keys from text that leaves the machine.

It finds the values of the user's own keys, and text in the well-known form of a key. Other secrets,
such as passwords outside of a URL, stay.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from codex_py.model.auth import stored_fields
from codex_py.protocol.messages import encode_json

REDACTED: Final = "[redacted]"
_SECRET_NAME: Final = re.compile(r"KEY|SECRET|TOKEN", re.IGNORECASE)
"""The names of variables that hold credentials, as Codex recognises them."""
_SHORTEST: Final = 8
"""The characters of the shortest value that is taken for a key."""
_LINE_END: Final = r"(?:\r?\n|(?:\\r)?\\n|(?:%0D)?%0A)[ \t\d+>|:-]{0,16}?"
"""The pattern of a line end in a key, plain, in JSON or in a URL, and of the mark of the next line: as
in a diff, in a quotation, or after a line number."""
_GITHUB: Final = r"\w{36,}"
_AWS: Final = r"[0-9A-Z]{16}(?![0-9A-Z])"
_LETTERS: Final = r"[0-9A-Za-z]{40,}"
_STRIPE: Final = r"[0-9A-Za-z]{16,}"
_TOKENS: Final = {
    "github_pat_": r"\w{22,}",
    "glpat-": r"[\w-]{20,}",
    "gho_": _GITHUB,
    "ghp_": _GITHUB,
    "ghr_": _GITHUB,
    "ghs_": _GITHUB,
    "ghu_": _GITHUB,
    "npm_": r"\w{36,}",
    "hf_": r"\w{30,}",
    "xox": r"[abprs]-[\w-]{10,}",
    "AIza": r"[\w-]{35}",
    "AKIA": _AWS,
    "ASIA": _AWS,
    "SG.": r"[\w-]{22}\.[\w-]{43}",
    "gsk_": _LETTERS,
    "pplx-": _LETTERS,
    "pypi-": r"AgE[\w-]{50,}",
    "r8_": r"[0-9A-Za-z]{37}",
    "rk_live_": _STRIPE,
    "rk_test_": _STRIPE,
    "sk_live_": _STRIPE,
    "sk_test_": _STRIPE,
    "xai-": _LETTERS,
    "xapp-": r"\d-[\w-]{20,}",
    "ya29.": r"[\w-]{20,}",
    "eyJ": r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
}
"""The prefixes of tokens and the pattern after each, found anywhere in a text: GitHub, GitLab, npm,
Hugging Face, Slack, Google, AWS, SendGrid, Groq, Perplexity, PyPI, Replicate, Stripe, xAI; RFC 7519."""
_BEARER: Final = r"(?<=(?i:bearer) )[\w.~+/-]{16,}=*"
# Words of a sentence have no capitals together with digits or `=`.
_BASIC: Final = (
    r"(?<=(?i:basic) )(?=[a-z\d+/]*[A-Z])(?=[A-Za-z+/]*[\d=])[A-Za-z\d+/]{12,}={0,2}"
)
_API_KEY: Final = r"""((?i:api-key)[\\"']{0,2}[:=] ?[\\"']{0,2})(?=[A-Za-z_.~+/-]{0,99}\d)[\w.~+/-]{16,}=*"""
_FORMS: Final = {
    "PRIVATE KEY": r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "earer ": _BEARER,
    "EARER ": _BEARER,
    "asic ": _BASIC,
    "ASIC ": _BASIC,
    **dict.fromkeys(("api-key", "Api-Key", "API-Key", "API-KEY"), _API_KEY),
    # OpenAI, Anthropic and others. The pattern does not match in `task-`, but after an escape:
    # `\n`, of a URL, or of a colour.
    "sk-": r"(?:(?<![a-zA-Z0-9-])|(?<=\\[bfnrt])|(?<=%[\dA-F]{2})|(?<=\[[mK])|(?<=[\d;]m))sk-[\w-]{20,}",
    **{opening: re.escape(opening) + rest for opening, rest in _TOKENS.items()},
    # The password of a user in a URL, and no placeholder for it.
    "://": r"""(://[\w.~+%-]{0,128}:)[^\s/:@"'`<>()[\]{}$*\\]{2,256}(?=@)""",
}
"""The patterns of keys: PEM; RFC 6750 and 7617; headers; tokens; RFC 3986.

Each stands under a text that every such key contains. To look for this text first is faster. The
group of a pattern is what stays before the key.
"""


class Redactor:
    """Replaces each key in a text by `[redacted]` when it is called, and counts the keys.

    Args:
        home: `$CODEX_HOME`, for `auth.json`.

    Raises:
        ConfigError: `auth.json` cannot be read.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        home: Path,
    ) -> None:
        self.count = 0
        # A key that contains another one is replaced first.
        own = sorted(set(_own_keys(environment, home)), key=len, reverse=True)
        forms = [(_plain_part(key), _spellings(key)) for key in own]
        forms += _FORMS.items()
        self._forms = [(part, re.compile(form, re.DOTALL)) for part, form in forms]

    @property
    def notes(self) -> list[str]:
        """A sentence for the user if a key was replaced; otherwise nothing."""
        if self.count:
            return [f"{self.count} keys were replaced by {REDACTED}."]
        return []

    def line(self, data: bytes) -> bytes:
        """Redact a line of JSON. A line without a key stays the same, byte for byte.

        Raises a `ValueError` if the line may have a key, but is no JSON.
        """
        text = data.decode(errors="replace")
        if not any(part in text for part, _ in self._forms):
            return data
        before = self.count
        value = map_texts(json.loads(text), self._within)
        if self.count == before:
            return data
        return encode_json(value) + b"\n"

    def _within(self, text: str) -> str:
        """Redact a text. If it is a JSON object, as the arguments of a call are, it stays one."""
        if not text.startswith("{"):
            return self(text)
        try:
            return encode_json(map_texts(json.loads(text), self)).decode()
        except (ValueError, RecursionError):
            return self(text)

    def __call__(self, text: str) -> str:
        for part, form in self._forms:
            if part in text:
                replacement = REDACTED
                if form.groups:
                    replacement = rf"\1{REDACTED}"
                text, count = form.subn(replacement, text)
                self.count += count
        return text


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change every string in a value of lists, mappings and data classes."""
    match value:
        case str():
            if isinstance(value, Enum):
                return value
            return change(value)
        case list():
            return [map_texts(part, change) for part in cast("list[Any]", value)]
        case tuple():
            return tuple(
                map_texts(part, change) for part in cast("tuple[Any, ...]", value)
            )
        case Mapping():
            table = cast("Mapping[str, Any]", value)
            changed: dict[str, Any] = {}
            for key, part in table.items():
                changed[change(key)] = map_texts(part, change)
            return changed
        case _ if is_dataclass(value) and not isinstance(value, type):
            changed = {}
            for each in fields(value):
                part = getattr(value, each.name)
                changed[each.name] = map_texts(part, change)
            return replace(value, **changed)
        case _:
            return value


def _own_keys(environment: Mapping[str, str], home: Path) -> Iterator[str]:
    """Yield the values of the user's variables and of `auth.json` that may be keys."""
    values = [*_strings(stored_fields(home / "auth.json"))]
    for name, value in environment.items():
        if _SECRET_NAME.search(name):
            values.append(value)
    for value in values:
        # The spaces and line ends around a key are not always copied with it.
        value = value.strip()
        # A path leads to a key, but is not a key itself.
        if len(value) >= _SHORTEST and not value.startswith("/"):
            yield value


def _plain_part(key: str) -> str:
    """The longest part of a key that JSON and a URL do not change, however often they are nested."""
    return max(re.findall(r"[A-Za-z0-9_.-]*", key), key=len)


def _spellings(key: str) -> str:
    """Make the pattern of a key: as it is, in JSON or in a URL.

    Each line but the first may have a mark before it.
    """
    lines = re.split(r"\r?\n", key)
    # The outputs of many tools have keys in JSON or in a URL.
    spelt = [
        lines,
        [json.dumps(line)[1:-1] for line in lines],
        [json.dumps(line, ensure_ascii=False)[1:-1] for line in lines],
        [quote(line, safe="", errors="surrogateescape") for line in lines],
    ]
    patterns = [_LINE_END.join(map(re.escape, each)) for each in spelt]
    return "|".join(dict.fromkeys(patterns))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value: itself, or those of an object. Lists are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in cast("dict[str, Any]", value).values():
            yield from _strings(part)
