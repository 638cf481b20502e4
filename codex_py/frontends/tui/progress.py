"""Following the conversation: what was said, what the status tells of it, and the clock of what is under way."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from codex_py.frontends.tui.composer import Submission
from codex_py.protocol.events import (
    AgentMessage,
    CommandExecution,
    CommandOutputDelta,
    ErrorInfo,
    Event,
    ItemCompleted,
    ItemStarted,
    Reconnecting,
    ThreadItem,
    ThreadStarted,
    TurnFailed,
    TurnStarted,
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
        self._has_failed = False
        """The last turn failed in a way that may pass."""
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
            case ThreadStarted() if (left := self._terminal.conversation.session) is not None:
                # On a line of its own the command is not broken in a narrow terminal.
                back = f" To go back:\n/resume {left.thread_id}" if left.has_begun else ""
                self._terminal.transcript.separate(f"Another conversation from here on.{back}")
            case TurnStarted():
                self._has_failed = False
            case TurnFailed(error):
                self._has_failed = error.retryable
                event = replace(event, error=replace(error, message=self._advised(error)))
            case UsageReported():
                status.usage = event
            case ItemStarted(CommandExecution() as item):
                status.commands[item.id] = item.command, time.monotonic()
            case ItemCompleted(item):
                self._completed(item)
            case _:
                pass
        self._terminal.transcript(event)

    @property
    def offers_retry(self) -> bool:
        """Whether Enter on an empty composer goes on with the turn that failed."""
        session, is_working = (
            self._terminal.conversation.session,
            self._terminal.status.working_since,
        )
        return (
            self._has_failed
            and is_working is None
            and session is not None
            and session.is_unfinished
        )

    def begin(self, session: "Session", earlier: Sequence[ThreadItem]) -> None:
        """Another session is open now: show it, and what was said in it."""
        status = self._terminal.status
        status.usage = session.token_usage if session.earlier else None
        status.commands.clear()
        self._has_failed = False
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

    def _advised(self, error: ErrorInfo) -> str:
        """Why the turn failed, and what can be done about it here."""
        session = self._terminal.conversation.session
        if error.code == "context_length_exceeded":
            advice = "/compact puts a summary in place of the conversation, /retry goes on with it;"
            return f"{error.message}\n{advice} /new begins another one."
        if error.retryable and session is not None and session.is_unfinished:
            return f"{error.message}\nEnter on an empty prompt, or /retry, tries again."
        return error.message

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
