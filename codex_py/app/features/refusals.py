"""Finds out from an error which part of a request a server refuses. LIGHT."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from codex_py.errors import ModelError
from codex_py.model.profile import Profile
from codex_py.model.wordings import means

_NO_NAMESPACES: Final = r"['\"`]namespace['\"`]|must be ['\"`]function['\"`]"
"""vLLM and OpenAI name the type of tool that they do not know; llama.cpp names the type that it
knows."""
_REFUSED: Final = (
    r"(?i)unsupported|unknown|unrecognized|extra_forbidden|unexpected (?:field|key|param|prop|arg)"
    r"|not (?:be )?(?:supported|permitted|allowed)|(?:not|n't) support"
)
_CALL_ID: Final = r"(?i)\b(?:tool[ _])?call[ _]?id\b|tool_calls?[\w.\[\]]{0,20}\.id\b|tool_use[._]?(?:\w+\.)?id\b"
_ODD_ID: Final = (
    r"(?i)too long|maximum length|at most \d|pattern|alphanumeric|a-z|length of \d"
)
_NINE: Final = r"(?i)length of 9|9 characters|mistral"
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{
        name: (name,)
        for name in (
            "parallel_tool_calls",
            "reasoning_effort",
            "reasoning",
            "include",
            "prompt_cache_key",
            "service_tier",
            "stream_options",
            "tool_choice",
        )
    },
    "thinking": ("thinking", "output_config.effort"),
    "output_config": ("output_config.effort",),
    "verbosity": ("text.verbosity", "verbosity"),
}
"""The fields to leave out of requests, by the server's name for them."""


def remedy(
    error: ModelError, profile: Profile, *, may_write_calls: bool
) -> tuple[Profile, str] | None:
    """Return the profile that the server seems to need, and the change in words.

    Returns None if nothing is refused.

    Args:
        may_write_calls: the request had tools, and calls may be written as text instead.
    """
    message = error.words or str(error)
    if profile.tool_namespaces and re.search(_NO_NAMESPACES, message):
        profile = replace(profile, tool_namespaces=False)
        return profile, "refuses tools in a namespace: they have flat names from now on"
    if profile.tool_ids == "verbatim" and _is_about_call_ids(message):
        if re.search(_NINE, message):
            tool_ids = "mistral"
        else:
            tool_ids = "openai"
        profile = replace(profile, tool_ids=tool_ids)
        return (
            profile,
            "refuses the ids of calls: they are sent in another form from now on",
        )
    if may_write_calls and profile.tools == "native" and means("no_tools", message):
        profile = replace(profile, tools="text")
        return profile, "refuses tools: calls are written as text from now on"
    if re.search(_REFUSED, message):
        for name, fields in _FIELDS.items():
            new = [field for field in fields if field not in profile.left_out]
            if new and _is_named(name, message):
                profile = replace(profile, left_out=[*profile.left_out, *new])
                return profile, f"refuses `{name}`, which is left out from now on"
    return None


def _is_about_call_ids(message: str) -> bool:
    return (
        re.search(_CALL_ID, message) is not None
        and re.search(_ODD_ID, message) is not None
    )


def _is_named(field: str, message: str) -> bool:
    if "_" in field:
        return re.search(rf"\b{field}\b", message) is not None
    # The name is also a word of English.
    return (
        re.search(rf"(?:['\"`.]|: ?|^){field}(?:['\"`.:,\] ]|$)", message) is not None
    )
