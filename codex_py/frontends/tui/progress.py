"""Following the conversation: what was said, what the status tells of it, and the clock of what is under way."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codex_py.frontends.tui.composer import Submission
from codex_py.protocol.events import (
    AgentMessage,
    CommandExecution,
    CommandOutputDelta,
    Event,
    ItemCompleted,
    ItemStarted,
    Reconnecting,
    ThreadItem,
    UsageReported,
    UserMessage,
)

if TYPE_CHECKING:
    from codex_py.core.session import Session
    from codex_py.frontends.tui.program import Terminal


class Progress:
    """An `EventSink`; it hands what it is told on to the transcript.

    Attributes:
        said: the conversation as it was shown, and what was gone back from no more.
    """

    def __init__(self, terminal: "Terminal") -> None:
        self._terminal = terminal
        self.said: list[ThreadItem] = []
        self._last_answer = ""
        self._clock: asyncio.TimerHandle | None = None

    def __call__(self, event: Event) -> None:
        status = self._terminal.status
        if not isinstance(event, CommandOutputDelta):
            # Commands in the background go on while the model is not to be had.
            status.reconnecting = None
        match event:
            case Reconnecting(wait_s=wait_s):
                status.reconnecting = event, time.monotonic() + wait_s
            case UsageReported():
                status.usage = event
            case ItemStarted(CommandExecution() as item):
                status.commands[item.id] = item.command, time.monotonic()
            case ItemCompleted(item):
                self._completed(item)
            case _:
                pass
        self._terminal.transcript(event)

    def begin(self, session: "Session", earlier: Sequence[ThreadItem]) -> None:
        """Another session is open now: show it, and what was said in it."""
        status = self._terminal.status
        status.usage = session.token_usage if session.earlier else None
        status.commands.clear()
        self._terminal.refresh()
        self.said = list(earlier)
        self._terminal.transcript.replay(self.said)

    def prompt(self, submission: Submission) -> None:
        """A turn begins with it."""
        self.said.append(UserMessage(id="", text=submission.text))
        self._terminal.transcript.user(submission.text)
        self.work_begins()

    def work_begins(self) -> None:
        self._terminal.status.working_since = time.monotonic()
        self._terminal.show_title()
        if self._clock is None:
            self._tick()

    def turn_ended(self, is_whole: bool) -> None:
        """
        Args:
            is_whole: it came to its own end.
        """
        terminal, conversation = self._terminal, self._terminal.conversation
        terminal.status.working_since = None
        if not is_whole:
            terminal.composer.restore(conversation.take_unsent())
        if is_whole and conversation.queue:
            self.prompt(conversation.queue[0])
        elif not terminal.is_leaving:
            terminal.notify("agent-turn-complete", self._last_answer or "The turn is over")
            terminal.start(terminal.opening.find_branch())
        self._last_answer = ""
        terminal.show_title()
        terminal.screen.changed()

    def close(self) -> None:
        if self._clock is not None:
            self._clock.cancel()

    def _completed(self, item: ThreadItem) -> None:
        match item:
            case UserMessage():
                self._terminal.conversation.was_told()
            case AgentMessage(text=text):
                self._last_answer = text
            case _:
                pass
        self._terminal.status.commands.pop(item.id, None)
        self.said.append(item)

    def _tick(self) -> None:
        """Keep the clock of what is under way going; there is none else."""
        self._clock = None
        if self._terminal.status.working_since is not None:
            self._clock = asyncio.get_running_loop().call_later(1, self._tick)
            self._terminal.screen.changed()
