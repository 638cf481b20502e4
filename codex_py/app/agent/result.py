"""What a turn of an `Agent` brought."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from codex_py.errors import CodexError
from codex_py.protocol.event_items import ErrorItem, ThreadItem
from codex_py.protocol.stream import Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OutputT = TypeVar("OutputT", default=str)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[OutputT]):
    """What a turn brought. If the turn failed, it is the attribute `result` of the error.

    >>> from codex_py import Agent
    >>> from codex_py.testing import FakeModel
    >>> result = Agent(FakeModel("Hello.")).run_sync("Say hello")
    >>> result.text, result.usage.output_tokens, result.diff
    ('Hello.', 20, None)
    """

    text: str
    """The last message of the model; empty if there is none."""
    output: OutputT
    """The answer as the `output_type`; the text without one. None if the turn failed."""
    usage: Usage
    """Tokens of the turn, subagents included."""
    diff: str | None
    """All changes to files, git style; None if there are none."""
    items: tuple[ThreadItem, ...]
    """Messages, commands, changes and calls, in the order of their ends."""
    denied: bool
    """True if a policy, or `approve`, refused a call."""
    exit_code: int
    """That of `codex-py exec`: 0 if the turn completed and every gate is satisfied."""
    error: CodexError | None = None
    """Why the turn failed."""

    @property
    def warnings(self) -> list[str]:
        """Sentences for the user, which the logger `codex_py` gets too."""
        return [item.message for item in self.items if isinstance(item, ErrorItem)]
