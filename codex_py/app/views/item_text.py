"""Texts for thread items that the terminal and exports share."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

from codex_py.execpolicy.place import is_known_shell
from codex_py.protocol.event_items import WebSearch
from codex_py.streams.plain_text import cut

_SHELL = re.compile(r"(\S+) -l?c (?=.)", re.DOTALL)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|([^\s'"\\]+)""", re.DOTALL)
"""A part of a word: within single quotes, within double quotes, or bare."""
LONGEST_SCRIPT = 100_000
"""The characters of the longest command line whose shell is left out."""

_AGENT_VERBS = {
    "spawn_agent": ("Starting an agent", "Started agent"),
    "send_input": ("Sending input to", "Sent input to"),
    "wait": ("Waiting for", "Waited for"),
    "close_agent": ("Closing", "Closed"),
}
"""The words while the call runs, and after its end."""
_MAX_VALUE_CHARS = 300
"""The limit of a single JSON value."""
_MAX_PARTS = 20
"""The largest number of parts of a JSON list or object that are shown."""


def agent_verb(tool: str, *, is_done: bool) -> str:
    """Describe a call to subagents in words; the agents' names follow them."""
    running, done = _AGENT_VERBS[tool]
    if is_done:
        return done
    return running


def script_of(command: str, own_shell: str = "") -> str:
    """Return a command line without its shell: `/bin/bash -lc 'ls -l'` becomes `ls -l`.

    Only a shell of the system, or the user's own at its absolute path, is left out. Another program
    of that name may do anything, whatever its script says.
    """
    wrapper = _SHELL.match(command)
    if wrapper is None or len(command) > LONGEST_SCRIPT:
        return command
    if not is_known_shell(wrapper[1], own_shell):
        return command
    script: list[str] = []
    position = wrapper.end()
    while position < len(command):
        part = _QUOTED.match(command, position)
        if part is None:
            # Several words: the script has arguments, which are a part of the command.
            return command
        single, double, bare = part.groups()
        if double:
            script.append(re.sub(r"\\(.)", r"\1", double))
        else:
            script.append(single or bare or "")
        position = part.end()
    return "".join(script)


def search_words(item: WebSearch) -> tuple[str, str]:
    """Return a verb and its object: `("Opened", "https://…")`."""
    action = item.action or {}
    match action.get("type"):
        case "open_page":
            verb = "Opened"
            what = str(action.get("url") or item.query)
        case "find_in_page":
            place = action.get("url")
            verb = "Looked for"
            what = str(action.get("pattern") or item.query)
            if place:
                what += f" in {place}"
        case _:
            verb = "Searched the web for"
            what = item.query
    return verb, what


def one_line_json(value: Any) -> str:
    """Return a value of any size as JSON on one line. Long strings, lists and objects are cut."""
    if isinstance(value, str):
        return json.dumps(cut(value, _MAX_VALUE_CHARS, ""), ensure_ascii=False)
    if isinstance(value, dict):
        fields = islice(cast("dict[str, Any]", value).items(), _MAX_PARTS)
        shown = [
            f"{one_line_json(str(key))}: {one_line_json(part)}" for key, part in fields
        ]
        return f"{{{', '.join(shown)}}}"
    if isinstance(value, list):
        parts = cast("list[Any]", value)[:_MAX_PARTS]
        return f"[{', '.join(map(one_line_json, parts))}]"
    return cut(json.dumps(value, default=str), _MAX_VALUE_CHARS, "")


def result_text(result: Mapping[str, Any] | None) -> str:
    """Return the texts of an MCP result. Images and other content become their type in brackets."""
    if result is None:
        return ""
    content = result.get("content")
    parts: list[Any] = []
    if isinstance(content, list):
        parts = cast("list[Any]", content)[:_MAX_PARTS]
    texts: list[str] = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": str(kind)}:
                texts.append(f"[{kind}]")
            case _:
                pass
    structured = result.get("structured_content")
    if not texts and structured is not None:
        texts.append(one_line_json(structured))
    return "\n".join(texts)
