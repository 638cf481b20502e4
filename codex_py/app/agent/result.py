"""The result of a turn of an `Agent`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from codex_py.errors import CodexError, TurnAborted
from codex_py.protocol.event_items import ErrorItem, ThreadItem
from codex_py.protocol.stream import Usage

if TYPE_CHECKING:
    # The default, which the program does not need, is in `typing` from Python 3.13 on.
    from typing_extensions import TypeVar

    OutputT = TypeVar("OutputT", default=str)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[OutputT]):
    """The result of a turn. If the turn failed, it is the attribute `result` of the error.

    >>> from codex_py import Agent
    >>> from codex_py.testing import FakeModel
    >>> result = Agent(FakeModel("Hello.")).run_sync("Say hello")
    >>> result.text, result.usage.output_tokens, result.diff
    ('Hello.', 20, None)
    """

    text: str
    """The last message of the model; empty without a message. If the turn was interrupted in the
    middle of it, the part that had come."""
    output: OutputT
    """The answer as the `output_type`, or as text if no type was given. None if the turn failed."""
    usage: Usage
    """The tokens of the turn, including those of subagents."""
    diff: str | None
    """All changes to files, in git's form; None without changes."""
    items: tuple[ThreadItem, ...]
    """Messages, commands, changes and calls, in the order in which they ended."""
    denied: bool
    """True if a policy, or `approve`, refused a call."""
    exit_code: int
    """The exit code that `codex-py exec` would have: 0 if the turn completed and every gate is
    satisfied."""
    error: CodexError | None = None
    """The error that the turn failed with."""

    @property
    def warnings(self) -> list[str]:
        """Sentences for the user, which the logger `codex_py` gets too."""
        return [item.message for item in self.items if isinstance(item, ErrorItem)]


def aborted_before_start() -> TurnAborted:
    """Make the error of a turn that was interrupted before it began. Its `result` is empty."""
    error = TurnAborted("the turn was interrupted before it began")
    result: Result[None] = Result(
        text="",
        output=None,
        usage=Usage(),
        diff=None,
        items=(),
        denied=False,
        exit_code=error.exit_code,
        error=error,
    )
    error.result = result
    return error
