"""Takes keys out of text that leaves the machine.

Found are the values of the user's own keys, and text in the well-known form of one. Other secrets, such as passwords, stay.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from codex_py.model.auth import stored_fields

REDACTED: Final = "[redacted]"
_SECRET_NAME: Final = re.compile(r"KEY|SECRET|TOKEN", re.IGNORECASE)
"""Of variables: the names that Codex takes for those of credentials."""
_SHORTEST: Final = 8
_FORMS: Final = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"(?<=[Bb]earer )[\w.~+/-]{16,}=*",
    r"(?<![\w-])(?:"
    r"sk-[\w-]{20,}|gh[oprsu]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}|npm_\w{36,}|hf_\w{30,}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{35}|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})",
)
"""PEM; RFC 6750; OpenAI, Anthropic and others, GitHub, GitLab, npm, Hugging Face, Slack, Google, AWS; RFC 7519."""


_OPENINGS: Final = (
    *(
        "PRIVATE KEY",
        "earer ",
        "sk-",
        "gho_",
        "ghp_",
        "ghr_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "npm_",
    ),
    *("glpat-", "hf_", "xox", "AIza", "AKIA", "ASIA", "eyJ"),
)
"""Without one of these, there is none of these forms: the search for all of them is slow."""


class Redactor:
    """Puts `[redacted]` in place of each key, and counts them.

    Args:
        home: `$CODEX_HOME`, for `auth.json`.

    Raises:
        ConfigError: `auth.json` cannot be read.
    """

    def __init__(self, environment: Mapping[str, str], home: Path) -> None:
        self.count = 0
        named = {v for name, v in environment.items() if _SECRET_NAME.search(name)}
        known = named.union(_strings(stored_fields(home / "auth.json")))
        # A path leads to a key, and is none.
        values = {v for v in known if len(v) >= _SHORTEST and not v.startswith("/")}
        own = map(re.escape, sorted(values, key=len, reverse=True))
        self._keys = re.compile("|".join([*own, *_FORMS]), re.DOTALL)
        self._openings = [*values, *_OPENINGS]

    def __call__(self, text: str) -> str:
        if not any(opening in text for opening in self._openings):
            return text
        text, count = self._keys.subn(REDACTED, text)
        self.count += count
        return text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in cast("dict[str, Any]", value).values():
            yield from _strings(part)
