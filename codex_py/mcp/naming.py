"""Names the tools of MCP servers for the model: `mcp__server__tool`.

A name has at most 64 characters, all of them letters, digits, `_` and `-`, as the strictest provider demands.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

MAX_NAME_CHARS = 64
_HASH_CHARS = 8
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")

ToolId: TypeAlias = tuple[str, str]
"""The configured name of a server, and the server's name of a tool."""


def wire_names(tools: Iterable[ToolId]) -> dict[ToolId, str]:
    """A unique name for every tool, independent of their order.

    A name that is too long, or that several tools would share, is shortened and ends with a hash.
    """
    plain = {tool: _sanitised(f"mcp__{tool[0]}__{tool[1]}") for tool in tools}
    shared = Counter(plain.values())
    return {
        tool: name if shared[name] == 1 and len(name) <= MAX_NAME_CHARS else _hashed(name, tool)
        for tool, name in plain.items()
    }


def folded(name: str) -> str:
    """One spelling for those that models confuse: `get-sum`, `get_sum`."""
    return _NOT_IN_A_NAME.sub("_", name).replace("-", "_")


def _sanitised(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name)


def _hashed(name: str, tool: ToolId) -> str:
    digest = hashlib.sha1("\0".join(tool).encode(errors="replace"), usedforsecurity=False)
    return f"{name[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest.hexdigest()[:_HASH_CHARS]}"
