"""A streaming coding agent for the terminal and for CI, and the library it is made of."""

import sys

from codex_py.version import __version__

# This does not come from `typing`: with `python -m codex_py`, Python still searches the working
# directory first, which may have its own `typing.py`. The import would also take 5 ms, during which
# Ctrl-C shows a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from codex_py.app.agent.agent import Agent as Agent
    from codex_py.app.agent.result import Result as Result
    from codex_py.app.agent.stream import EventStream as EventStream
    from codex_py.app.options import SessionOptions as SessionOptions
    from codex_py.app.session import open_session as open_session
    from codex_py.config.config import Config as Config
    from codex_py.config.config import load_config as load_config
    from codex_py.core.session import Session as Session
    from codex_py.core.session_turn import TurnResult as TurnResult
    from codex_py.errors import CodexError as CodexError
    from codex_py.errors import CompactionFailed as CompactionFailed
    from codex_py.errors import ConfigError as ConfigError
    from codex_py.errors import ModelError as ModelError
    from codex_py.errors import PromptRefused as PromptRefused
    from codex_py.errors import SessionError as SessionError
    from codex_py.errors import StreamError as StreamError
    from codex_py.errors import ToolError as ToolError
    from codex_py.errors import TurnAborted as TurnAborted
    from codex_py.errors import TurnLimit as TurnLimit
    from codex_py.errors import TurnSkipped as TurnSkipped
    from codex_py.errors import UsageError as UsageError
    from codex_py.protocol.approval import ApprovalRequest as ApprovalRequest
    from codex_py.protocol.approval import Approver as Approver
    from codex_py.protocol.approval import Review as Review
    from codex_py.protocol.approval import ReviewDecision as ReviewDecision
    from codex_py.protocol.approval import SandboxPolicy as SandboxPolicy
    from codex_py.protocol.combined import combined as combined
    from codex_py.protocol.dispatch import Dispatch as Dispatch
    from codex_py.protocol.dispatch import ToolContext as ToolContext
    from codex_py.protocol.dispatch import ToolUse as ToolUse
    from codex_py.protocol.event_data import event_json as event_json
    from codex_py.protocol.events import Event as Event
    from codex_py.protocol.events import ItemCompleted as ItemCompleted
    from codex_py.protocol.events import ItemStarted as ItemStarted
    from codex_py.protocol.events import MessageDelta as MessageDelta
    from codex_py.protocol.events import TurnCompleted as TurnCompleted
    from codex_py.protocol.events import TurnFailed as TurnFailed
    from codex_py.protocol.extension import CommandResult as CommandResult
    from codex_py.protocol.extension import Compaction as Compaction
    from codex_py.protocol.extension import Extension as Extension
    from codex_py.protocol.extension import Feature as Feature
    from codex_py.protocol.extension import NewChild as NewChild
    from codex_py.protocol.extension import OfferedTool as OfferedTool
    from codex_py.protocol.extension import Thread as Thread
    from codex_py.protocol.extension import TurnStart as TurnStart
    from codex_py.protocol.extension import TurnStop as TurnStop
    from codex_py.protocol.mcp import Elicitation as Elicitation
    from codex_py.protocol.mcp import ElicitationAnswer as ElicitationAnswer
    from codex_py.protocol.mcp import Elicitor as Elicitor
    from codex_py.protocol.prompts import Note as Note
    from codex_py.protocol.prompts import UserPrompt as UserPrompt
    from codex_py.protocol.stream import Completed as Completed
    from codex_py.protocol.stream import ModelStream as ModelStream
    from codex_py.protocol.stream import Prompt as Prompt
    from codex_py.protocol.stream import ResponseEvent as ResponseEvent
    from codex_py.protocol.stream import Usage as Usage
    from codex_py.protocol.tools import FunctionSpec as FunctionSpec
    from codex_py.protocol.tools import ToolCall as ToolCall
    from codex_py.protocol.tools import ToolOutput as ToolOutput
    from codex_py.tools.python.function import tool as tool

_NAMES = {
    "codex_py.app.agent.agent": "Agent",
    "codex_py.app.agent.result": "Result",
    "codex_py.app.agent.stream": "EventStream",
    "codex_py.app.options": "SessionOptions",
    "codex_py.app.session": "open_session",
    "codex_py.config.config": "Config load_config",
    "codex_py.core.session": "Session",
    "codex_py.core.session_turn": "TurnResult",
    "codex_py.errors": "CodexError CompactionFailed ConfigError ModelError PromptRefused"
    " SessionError StreamError ToolError TurnAborted TurnLimit TurnSkipped UsageError",
    "codex_py.protocol.approval": "ApprovalRequest Approver Review ReviewDecision SandboxPolicy",
    "codex_py.protocol.dispatch": "Dispatch ToolContext ToolUse",
    "codex_py.protocol.event_data": "event_json",
    "codex_py.protocol.events": "Event ItemCompleted ItemStarted MessageDelta"
    " TurnCompleted TurnFailed",
    "codex_py.protocol.combined": "combined",
    "codex_py.protocol.extension": "CommandResult Compaction Extension Feature NewChild"
    " OfferedTool Thread TurnStart TurnStop",
    "codex_py.protocol.mcp": "Elicitation ElicitationAnswer Elicitor",
    "codex_py.protocol.prompts": "Note UserPrompt",
    "codex_py.protocol.stream": "Completed ModelStream Prompt ResponseEvent Usage",
    "codex_py.protocol.tools": "FunctionSpec ToolCall ToolOutput",
    "codex_py.tools.python.function": "tool",
}
"""The public names of each module."""
_PUBLIC = " ".join(_NAMES.values()).split()
# Pyright knows the names by the imports above.
__all__ = ["__version__", *_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> "list[str]":
    # An older Python, which `__main__` refuses in a sentence, would fail at the type itself.
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> "Any":
    # A name is imported when it is first used: `codex-py --version` imports this module alone.
    for module, names in _NAMES.items():
        if name in names.split():
            __import__(module)
            return getattr(sys.modules[module], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
