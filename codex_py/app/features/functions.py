"""Python functions as tools of a session. LIGHT."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from codex_py.protocol.dispatch import Tool
from codex_py.protocol.extension import Extension, Feature, OfferedTool, Thread
from codex_py.tools.python.function import PythonFunction, tool


def functions(tools: Sequence[Callable[..., Any]]) -> Feature:
    """Return a feature that offers the functions as tools.

    Raises a `TypeError` if a function cannot be described; see `tool`.
    """
    described = [tool(function) for function in tools]

    def feature(thread: Thread) -> Extension:
        def make(function: PythonFunction[..., Any]) -> Tool[Any]:
            from codex_py.tools.python.call import PythonTool  # 55 ms behind the tools

            return PythonTool(function, image_rule=thread.settings.image_rule)

        offered = [
            OfferedTool(each.name, partial(make, each), each.spec) for each in described
        ]
        return Extension(tools=offered)

    return feature
