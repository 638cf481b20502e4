"""Fields of a request, forms of ids and kinds of tools that a server refuses: another profile leaves them out."""

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
_CALL_ID: Final = (
    r"(?i)\b(?:tool[ _])?call[ _]?id\b|tool_calls?[\w.\[\]]{0,20}\.id\b"
    r"|tool_use[._]?(?:\w+\.)?id\b"
)
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
"""The fields to leave out of requests, by the name that the server's error has for them."""


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
        if re.search(_NINE_CHARACTERS, message):
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
    """True if the message says that the id of a call has a wrong form."""
    is_named = re.search(_CALL_ID, message) is not None
    return is_named and re.search(_WRONG_FORM, message) is not None


def _is_named(field: str, message: str) -> bool:
    if "_" in field:
        return re.search(rf"\b{field}\b", message) is not None
    # The name is also a word of English, so it must be quoted, or stand where a name does.
    quoted = rf"(?:['\"`.]|: ?|^){field}(?:['\"`.:,\] ]|$)"
    return re.search(quoted, message) is not None
