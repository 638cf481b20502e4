"""Python functions as tools of a session. LIGHT."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from codex_py.app.loading import load
from codex_py.protocol.dispatch import Tool
from codex_py.protocol.extension import Extension, Feature, OfferedTool, Thread
from codex_py.protocol.tools import MCP_PREFIX, called_tool
from codex_py.tools.offered import own_names
from codex_py.tools.python.function import PythonFunction, tool_of


def functions(tools: Sequence[Callable[..., Any]]) -> Feature:
    """
    Raises:
        TypeError: a function cannot be described; see `tool`.
        ValueError: two functions have the same name, or it is reserved.
    """
    made = [tool_of(function) for function in tools]
    names = Counter(called_tool(None, function.spec.name) for function in made)
    for name, count in names.items():
        if count > 1 or name in own_names() or name.startswith(MCP_PREFIX):
            raise ValueError(f"the tool {name!r} needs another name: this one is taken")

    def feature(thread: Thread) -> Extension:
        return Extension(tools=[_offered(function, thread) for function in made])

    return feature


def _offered(function: PythonFunction[..., Any], thread: Thread) -> OfferedTool:
    def make() -> Tool[Any]:
        detail = thread.settings.image_detail
        return load("codex_py.tools.python.call:PythonTool")(function, image_detail=detail)

    return OfferedTool(function.spec.name, make, function.spec)
