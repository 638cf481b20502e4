"""Finds the tool that a server does not accept, by its name or by its place in the request."""

import re
from collections.abc import Iterator, Sequence

from codex_py.protocol.json_fields import (
    JsonObject,
    as_object,
    json_or,
    objects,
    text_field,
)

_MAX_WORDS = 10_000
_STEP = r"(?:\[|\]?\.|/|\]\[|['\"]?[,:]? ?['\"]?|\s?->\s?)"
"""Separates the parts of a path: `tools[3]`, `tools.3`, `tools/3`, `'tools', 3`, `tools -> 3`."""
# A place such as `tools[3]`, with `member` in it from AWS, and perhaps a place within it, such as
# `tools[0].function_declarations[3]`.
_OUTER = rf"\btools{_STEP}(\d{{1,5}})\b"
_INNER = (
    rf"(?:\])?{_STEP}(?:tools|functions|function_?declarations){_STEP}(\d{{1,5}})\b"
)
_PLACE = rf"(?i){_OUTER}(?P<member>\.member\b)?(?:{_INNER})?"
# A place such as `function_declarations[3]`.
_FUNCTION_PLACE = rf"(?i)\b(?:functions|function_?declarations){_STEP}(\d{{1,5}})\b"
_NAMING = r"\b(?:function|tool)s?(?:[ _]?name)?\b\W{0,4}"
"""Matches the word before a tool's name."""
# A place in words, such as `tool at index 3`.
_COUNTED = (
    r"(?i)\b(?:tool|function)(?: (?:definition|declaration|schema))?s?"
    r" (?:at )?(?:index|position|number|no\.|#) ?#?(\d{1,5})\b"
)


_QUOTED_KEY = (
    r"(?i)['\"](?:arguments|(?:tool_)?call_id|tool_use(?:_id)?|tool_calls|tool_?result|tool_?use"
    r"|(?:function|custom_tool|local_shell)_call(?:_output)?|function(?:Call|Response))\\{0,3}['\"]"
)
"""Matches a key, or a type, of a quoted call or output."""
_INNERMOST = r"\{([^{}]*)(?:\}|$)"
"""Matches an object without objects in it. The last one may be cut off."""
_MAX_DEPTH = 50
# Words about a call, or about its output.
_CALL = (
    r"(?i)\b(?:custom_|local_)?(?:tool|function|shell)[ _-]?"
    r"(?:calls?|uses?|results?|responses?|outputs?)(?:_(?:outputs?|ids?))?\b"
)
_TOOL_OR_SCHEMA = r"(?i)tool|function|schema"


class SentTools:
    """The tools of a request, in the order in which its server got them."""

    def __init__(self, body: bytes) -> None:
        entries = objects(as_object(json_or(body, None)).get("tools"))
        self._entries = [_names(entry) for entry in entries]
        self.names = [name for names in self._entries for name in names]
        self._functions: list[str] = []
        for entry, names in zip(entries, self._entries, strict=True):
            if _is_function(entry):
                self._functions += names

    def at(self, place: int, inner: int | None = None) -> str | None:
        """Return the tool at a place of the list, or at place `inner` of the namespace there.

        None if that is not one tool.
        """
        if 0 <= place < len(self._entries):
            names = self._entries[place]
        else:
            names = []
        if inner is not None and len(names) > 1:
            return _item(names, inner)
        if len(names) == 1:
            return names[0]
        return None

    def function_at(self, place: int) -> str | None:
        """Return the tool at a place among all functions.

        Gemini has them in one entry of its list.
        """
        return _item(self._functions, place)


def refused_tool(words: str, body: bytes) -> str | None:
    """Find the name of the tool that made a server refuse a request; None if it cannot be found.

    Args:
        words: the texts of the server's error.
        body: the body of the request.
    """
    words = _about_tools(words)
    if re.search(_TOOL_OR_SCHEMA, words) is None:
        return None
    sent = SentTools(body)
    return next(_candidates(words, sent), None)


def is_named(words: str, name: str) -> bool:
    """True if the words contain the name of a tool, which is more certain than its place."""
    words = _about_tools(words)
    if "__" in name:
        # No other word looks like this name.
        before = ""
    else:
        before = rf"{_NAMING}|['\"`]"
    return next(_named(words, [name], before), None) is not None


def _about_tools(words: str) -> str:
    """Leave out the calls that the words quote or speak of: their names are those of tools too.

    A server that dislikes the history quotes a part of it. That is no refusal of a tool.
    """
    words = words[:_MAX_WORDS]
    for _ in range(_MAX_DEPTH):
        words, count = re.subn(_INNERMOST, _without_call, words)
        if not count:
            break
    return re.sub(_CALL, " ", words)


def _without_call(found: re.Match[str]) -> str:
    """The fields of an object, without braces; empty if it is a call or an output."""
    fields = found[1]
    if re.search(_QUOTED_KEY, fields) is None:
        return fields
    return ""


def _candidates(words: str, sent: SentTools) -> Iterator[str]:
    """Yield the tools that the words may mean, the most certain first."""
    yield from _named(words, sent.names, _NAMING)
    unmistakable = [name for name in sent.names if "__" in name]
    yield from _named(words, unmistakable, "")
    yield from _placed(words, sent)
    yield from _named(words, sent.names, r"['\"`]")


def _named(
    words: str,
    names: Sequence[str],
    before: str,
) -> Iterator[str]:
    """Find the names that occur as whole words after the pattern `before`, in the words' order."""
    found: list[tuple[int, str]] = []
    for name in names:
        pattern = rf"(?i:{before})(?<![\w-]){re.escape(name)}(?![\w-])"
        match = re.search(pattern, words)
        if match:
            found.append((match.start(), name))
    return (name for _, name in sorted(found))


def _placed(words: str, sent: SentTools) -> Iterator[str]:
    """Yield the tools at the places that the words name."""
    for match in re.finditer(_PLACE, words):
        place = int(match[1])
        if match["member"]:
            # AWS writes `member`, and then counts from 1.
            place -= 1
        if match[3] is None:
            found = sent.at(place)
        elif "declaration" in match[0].lower():
            found = sent.function_at(int(match[3]))
        else:
            found = sent.at(place, int(match[3]))
        if found is not None:
            yield found
    for pattern in (_FUNCTION_PLACE, _COUNTED):
        for match in re.finditer(pattern, words):
            found = sent.function_at(int(match[1]))
            if found is not None:
                yield found


def _names(entry: JsonObject) -> list[str]:
    """Return the names of the tools in an entry of a request's list: several for a namespace."""
    inner = objects(entry.get("tools"))
    if inner:
        return [name for each in inner for name in _names(each)]
    function = as_object(entry.get("function"))
    name = (
        text_field(entry, "name")
        or text_field(function, "name")
        or text_field(entry, "type")
    )
    if name:
        return [name]
    return []


def _is_function(entry: JsonObject) -> bool:
    return entry.get("type", "function") in {"function", "namespace", "custom"}


def _item(values: Sequence[str], place: int) -> str | None:
    if 0 <= place < len(values):
        return values[place]
    return None
