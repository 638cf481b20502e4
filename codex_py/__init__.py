"""A streaming coding agent for the terminal and for CI, and the library it is made of."""

import sys

from codex_py.version import __version__

# Not from `typing`: with `python -m codex_py` the working directory, which may have a `typing.py` of its
# own, is still the first place that is looked in. It would take 5 ms as well, in which Ctrl-C shows a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from codex_py.app.options import SessionOptions
    from codex_py.app.session import open_session
    from codex_py.config.config import Config, load_config
    from codex_py.core.session import Session
    from codex_py.core.session_turn import TurnResult
    from codex_py.errors import (
        CodexError,
        CompactionFailed,
        ModelError,
        PromptRefused,
        ToolError,
        TurnSkipped,
    )
    from codex_py.protocol.approval import (
        ApprovalRequest,
        Approver,
        Review,
        ReviewDecision,
        SandboxPolicy,
    )
    from codex_py.protocol.combined import combined
    from codex_py.protocol.dispatch import Dispatch, ToolContext, ToolUse
    from codex_py.protocol.events import Event
    from codex_py.protocol.extension import (
        CommandResult,
        Compaction,
        Extension,
        Feature,
        NewChild,
        OfferedTool,
        Thread,
        TurnStart,
        TurnStop,
        UserCommand,
    )
    from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, Elicitor
    from codex_py.protocol.prompts import Note, UserPrompt
    from codex_py.protocol.stream import Completed, ModelStream, Prompt, ResponseEvent, Usage
    from codex_py.protocol.tools import FunctionSpec, ToolCall, ToolOutput
    from codex_py.tools.python.function import tool

__all__ = [
    "ApprovalRequest",
    "Approver",
    "CodexError",
    "CommandResult",
    "Compaction",
    "CompactionFailed",
    "Completed",
    "Config",
    "Dispatch",
    "Elicitation",
    "ElicitationAnswer",
    "Elicitor",
    "Event",
    "Extension",
    "Feature",
    "FunctionSpec",
    "ModelError",
    "ModelStream",
    "NewChild",
    "Note",
    "OfferedTool",
    "Prompt",
    "PromptRefused",
    "ResponseEvent",
    "Review",
    "ReviewDecision",
    "SandboxPolicy",
    "Session",
    "SessionOptions",
    "Thread",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolOutput",
    "ToolUse",
    "TurnResult",
    "TurnSkipped",
    "TurnStart",
    "TurnStop",
    "Usage",
    "UserCommand",
    "UserPrompt",
    "__version__",
    "combined",
    "load_config",
    "open_session",
    "tool",
]

_NAMES = {
    "codex_py.app.options": "SessionOptions",
    "codex_py.app.session": "open_session",
    "codex_py.config.config": "Config load_config",
    "codex_py.core.session": "Session",
    "codex_py.core.session_turn": "TurnResult",
    "codex_py.errors": "CodexError CompactionFailed ModelError PromptRefused ToolError TurnSkipped",
    "codex_py.protocol.approval": "ApprovalRequest Approver Review ReviewDecision SandboxPolicy",
    "codex_py.protocol.dispatch": "Dispatch ToolContext ToolUse",
    "codex_py.protocol.events": "Event",
    "codex_py.protocol.combined": "combined",
    "codex_py.protocol.extension": "CommandResult Compaction Extension Feature NewChild OfferedTool Thread TurnStart TurnStop UserCommand",
    "codex_py.protocol.mcp": "Elicitation ElicitationAnswer Elicitor",
    "codex_py.protocol.prompts": "Note UserPrompt",
    "codex_py.protocol.stream": "Completed ModelStream Prompt ResponseEvent Usage",
    "codex_py.protocol.tools": "FunctionSpec ToolCall ToolOutput",
    "codex_py.tools.python.function": "tool",
}
"""The public names by their module."""


def __getattr__(name: str) -> "Any":
    # `codex-py --version` imports this module and nothing else.
    home = next((module for module, names in _NAMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    __import__(home)
    return getattr(sys.modules[home], name)
