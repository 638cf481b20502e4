"""Calls of tools: what `Extension.wrap_dispatch` takes and returns.

A `Dispatch` runs one `ToolUse`, which is a call that was understood: the tool, its parameters and its
context. The model gets the `ToolOutput`. The docstring of `Dispatch` says what a wrapper may raise, such
as a `ToolError` or a `CallRefused`.
"""

from codex_py.errors import CallRefused, ToolError
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.tools import ToolCall, ToolOutput

__all__ = [
    "CallRefused",
    "Dispatch",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "ToolUse",
]
