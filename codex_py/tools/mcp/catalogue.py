"""The tools of MCP servers that requests offer, and the search for the others. LIGHT.

Up to 100 tools, of 256 KB at most, are all offered. With more tools, only `tool_search` is offered;
the tools that it finds are appended to the list and stay there. The provider's prompt cache begins
with this list, so the list changes only when a search finds new tools. That cache miss is
necessary: many providers let a model call only tools that are in the list.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from codex_py.mcp.servers import FoundTool, McpServers
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import RESOURCE_TOOLS, FunctionSpec
from codex_py.tools.mcp.schema import repaired_parameters
from codex_py.tools.offered import TOOL_SEARCH, own_spec

MAX_OFFERED: Final = 100
MAX_OFFERED_BYTES: Final = 256 * 1024
MAX_DESCRIPTION_CHARS: Final = 8_000
MAX_SCHEMA_BYTES: Final = 64 * 1024

_WORD = re.compile(r"[^\W_]+")
_NAME_WEIGHT = 3
"""The number of words of a description that a word of the name is worth."""
# Parameters of BM25: the saturation of repeated words, and the penalty of long texts.
_SATURATION = 1.2
_LENGTH_PENALTY = 0.75


class McpCatalogue:
    """The tools of the MCP servers of one session."""

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers
        self._found: dict[str, None] = {}
        """The names of the tools that searches have found, in that order."""
        self._known: object = None
        """The tools that `_all` and `_index` are made from."""
        self._all: tuple[FunctionSpec, ...] | None = ()
        """The specifications of all tools; None if they are too many to offer."""
        self._index: _Index | None = None
        """Made by the first search."""

    def specs(self) -> tuple[FunctionSpec, ...]:
        """The tools that the next request offers."""
        self._refresh()
        if self._all is not None:
            return (*map(own_spec, RESOURCE_TOOLS), *self._all)
        tools = self._servers.tools()
        found = {name: tools[name][1] for name in self._found if name in tools}
        own_names = (*RESOURCE_TOOLS, TOOL_SEARCH)
        return (*map(own_spec, own_names), *_server_specs(found))

    def search(self, query: str, limit: int) -> list[FunctionSpec]:
        """The tools that match best, in descending order. Later requests offer them."""
        self._refresh()
        tools = self._servers.tools()
        if self._index is None:
            self._index = _Index(_without_servers(tools))
        names = self._index.ranked(query)[:limit]
        self._found.update(dict.fromkeys(names))
        return [server_tool_spec(name, tools[name][1]) for name in names]

    def _refresh(self) -> None:
        """Take over the tools that the servers have now, if they have changed."""
        tools = self._servers.tools()
        if tools is self._known:
            return
        self._known = tools
        self._index = None
        self._all = None
        if len(tools) > MAX_OFFERED:
            return
        specs = _server_specs(_without_servers(tools))
        sizes = [len(encode_json(spec.described())) for spec in specs]
        if sum(sizes) <= MAX_OFFERED_BYTES:
            self._all = specs


def _without_servers(tools: Mapping[str, FoundTool]) -> dict[str, ServerTool]:
    return {name: tool for name, (_server, tool) in tools.items()}


def _server_specs(tools: Mapping[str, ServerTool]) -> tuple[FunctionSpec, ...]:
    return tuple(server_tool_spec(name, tool) for name, tool in tools.items())


def server_tool_spec(name: str, tool: ServerTool) -> FunctionSpec:
    """The specification of one tool.

    Its schema is the server's own, repaired. A schema of more than 64 KB, and the end of a long
    description, are left out, with a note.
    """
    description = tool.description
    missing = len(description) - MAX_DESCRIPTION_CHARS
    if missing > 0:
        beginning = description[:MAX_DESCRIPTION_CHARS]
        description = f"{beginning}… [{missing} more characters left out]"
    schema = dict(tool.input_schema)
    if len(encode_json(schema)) > MAX_SCHEMA_BYTES:
        schema = {}
        description += "\n[The schema of the parameters is too long and was left out.]"
    return FunctionSpec(name, description, repaired_parameters(schema))


class _Index:
    """The words of all tools, for searches."""

    def __init__(self, tools: dict[str, ServerTool]) -> None:
        self._entries: dict[str, Counter[str]] = {}
        """The words of each tool, by its name."""
        self._frequency: Counter[str] = Counter()
        """The number of tools that have a word."""
        for name, tool in tools.items():
            described = _words(tool.description[:MAX_DESCRIPTION_CHARS])
            named = _words(name.removeprefix("mcp")) * _NAME_WEIGHT
            entry = Counter([*described, *named])
            self._entries[name] = entry
            self._frequency.update(entry.keys())
        self._mean_length = 1.0
        if self._entries:
            total = sum(entry.total() for entry in self._entries.values())
            self._mean_length = max(1.0, total / len(self._entries))

    def ranked(self, query: str) -> list[str]:
        """The names of the tools that have a word of the query, best match first.

        Equal matches are in the order of their names.
        """
        words = set(_words(query))
        scores: dict[str, float] = {}
        for name, entry in self._entries.items():
            score = self._score(words, entry)
            if score > 0:
                scores[name] = score
        return sorted(scores, key=lambda name: (-scores[name], name))

    def _score(self, words: set[str], entry: Counter[str]) -> float:
        """The BM25 score of an entry (Robertson and Zaragoza, 2009)."""
        score = 0.0
        share = entry.total() / self._mean_length
        for word in sorted(words & entry.keys()):
            having = self._frequency[word]
            lacking = len(self._entries) - having
            rarity = math.log(1 + (lacking + 0.5) / (having + 0.5))
            count = entry[word]
            length = 1 - _LENGTH_PENALTY + _LENGTH_PENALTY * share
            saturated = count + _SATURATION * length
            score += rarity * count * (_SATURATION + 1) / saturated
        return score


def _words(text: str) -> list[str]:
    """The words in lower case, without the `s` of a plural; `camelCase` is two words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    words = _WORD.findall(spaced.lower())
    return [word.removesuffix("s") or word for word in words]
