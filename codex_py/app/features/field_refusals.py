"""Finds the profile for a server that refuses fields of a request, ids or kinds of tools."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from codex_py.errors import ModelError
from codex_py.model.profile import Profile
from codex_py.model.wordings import means

_NO_NAMESPACES: Final = r"['\"`]namespace['\"`]|must be ['\"`]function['\"`]"
"""The server refuses tools in a namespace.

vLLM and OpenAI name the type of tool that they do not know; llama.cpp names the type that it knows.
"""
_REFUSED: Final = (
    r"(?i)unsupported|unknown|unrecognized|extra_forbidden|unexpected (?:field|key|param|prop|arg)"
    r"|not (?:be )?(?:supported|permitted|allowed)|(?:not|n't) support"
)
"""The server refuses a field."""
_CALL_ID: Final = (
    r"(?i)\b(?:tool[ _])?call[ _]?id\b|tool_calls?[\w.\[\]]{0,20}\.id\b"
    r"|tool_use[._]?(?:\w+\.)?id\b"
)
"""The ways in which servers name the id of a call."""
_WRONG_FORM: Final = (
    r"(?i)too long|maximum length|at most \d|pattern|alphanumeric|a-z|length of \d"
)
_NINE_CHARACTERS: Final = r"(?i)length of 9|9 characters|mistral"
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "parallel_tool_calls": ("parallel_tool_calls",),
    "reasoning_effort": ("reasoning_effort",),
    "reasoning": ("reasoning",),
    "include": ("include",),
    "prompt_cache_key": ("prompt_cache_key",),
    "service_tier": ("service_tier",),
    "stream_options": ("stream_options",),
    "tool_choice": ("tool_choice",),
    "thinking": ("thinking", "output_config.effort"),
    "output_config": ("output_config.effort",),
    "verbosity": ("text.verbosity", "verbosity"),
}
"""The fields to leave out, by the name for them in the server's error. The first name wins."""


def remedy(
    error: ModelError, profile: Profile, *, may_write_calls: bool
) -> tuple[Profile, str] | None:
    """Return the profile that the server seems to need, and a clause that says what it refuses.

    Returns None if the error is about nothing that another profile could change.

    Args:
        profile: the profile of the refused request.
        may_write_calls: True if the request had tools, and calls may be written as text instead.
    """
    message = error.words or str(error)
    if profile.tool_namespaces and re.search(_NO_NAMESPACES, message):
        profile = replace(profile, tool_namespaces=False)
        return profile, "refuses tools in a namespace: they have flat names from now on"
    if profile.tool_ids == "verbatim" and _is_about_call_ids(message):
        takes_nine = re.search(_NINE_CHARACTERS, message) is not None
        tool_ids = "mistral" if takes_nine else "openai"
        profile = replace(profile, tool_ids=tool_ids)
        change = "refuses the ids of calls: they are sent in another form from now on"
        return profile, change
    if may_write_calls and profile.tools == "native" and means("no_tools", message):
        profile = replace(profile, tools="text")
        return profile, "refuses tools: calls are written as text from now on"
    if re.search(_REFUSED, message):
        return _without_field(message, profile)
    return None


def _without_field(message: str, profile: Profile) -> tuple[Profile, str] | None:
    """Leave out the fields that the message names. Returns None if it names no further ones."""
    for name, fields in _FIELDS.items():
        new = [field for field in fields if field not in profile.left_out]
        if new and _is_named(name, message):
            profile = replace(profile, left_out=[*profile.left_out, *new])
            return profile, f"refuses `{name}`, which is left out from now on"
    return None


def _is_about_call_ids(message: str) -> bool:
    """True if the message says that the id of a call has a wrong form."""
    is_named = re.search(_CALL_ID, message) is not None
    return is_named and re.search(_WRONG_FORM, message) is not None


def _is_named(field: str, message: str) -> bool:
    if "_" in field:
        return re.search(rf"\b{field}\b", message) is not None
    # The name is also an English word: require quotes, or the punctuation around a name.
    quoted = rf"(?:['\"`.]|: ?|^){field}(?:['\"`.:,\] ]|$)"
    return re.search(quoted, message) is not None
