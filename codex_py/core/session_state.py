"""The state that turns and compactions of a session share: history, settings, extensions and
emitted events."""

from collections.abc import Sequence
from itertools import count
from typing import Protocol

from codex_py.core.running_turn import RunningTurn
from codex_py.core.thread_log import ThreadLog
from codex_py.protocol import event_items, events
from codex_py.protocol.events import EventSink
from codex_py.protocol.extension import Extension, TurnStart
from codex_py.protocol.items import OutputItem, ResponseItem
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.stream import ModelStream, PlanUse, Usage
from codex_py.protocol.tools import ToolCall, ToolOutput


class ToolCalls(Protocol):
    """Runs the tool calls of a session. The core, which knows no tool, gets it as an argument."""

    def build_tool_call(self, item: ResponseItem) -> ToolCall | None:
        """The call that an item asks for; None if it is not a call."""
        ...

    async def dispatch(
        self, call: ToolCall, emit: EventSink
    ) -> Sequence[Note | OutputItem]:
        """Run a call and emit its events. Returns its notes, then its output; see `Dispatch`."""
        ...

    def answer(
        self,
        call: ToolCall,
        output: ToolOutput,
        emit: EventSink,
    ) -> OutputItem:
        """Make the output of a call that did not run or did not end."""
        ...


class SessionState:
    """The one owner of the state; `Session` adds the methods for callers and features."""

    extension: Extension
    """The combined extension of all features."""
    model: ModelStream
    """The model, wrapped by the extensions."""

    def __init__(
        self, log: ThreadLog, settings: TurnSettings, tools: ToolCalls
    ) -> None:
        thread = log.thread
        self.thread_id = thread.id
        self.parent = thread.parent
        self.session_file = thread.file
        self.log = log
        self.settings = settings
        self.tools = tools
        self.steered: list[UserPrompt] = []
        """Prompts that are sent with the next request of the running turn."""
        self.running: RunningTurn | None = None
        """The running turn or compaction."""
        self._unsaid: list[str] | None = []
        """Warnings from before `ThreadStarted`; None after it."""
        # The numbers in the ids of items.
        self._item_ids = count()
        self._live_ids = count()
        self.plan: PlanUse | None = None
        """The use of the ChatGPT plan that paid for the last tokens; None if no plan did."""

    @property
    def turn(self) -> TurnStart | None:
        """The start of the running turn or compaction."""
        if self.running is None:
            return None
        return self.running.start

    @property
    def items(self) -> Sequence[EncodedItem]:
        """The history for the model, base prompt first. A live view; see `thread_items`."""
        return self.log.items

    @property
    def token_usage(self) -> events.UsageReported:
        """The usage that was last reported, or that was read from the session file."""
        log = self.log
        return events.UsageReported(
            log.last_usage, log.usage, self.settings.context_window, self.plan
        )

    def emit(self, event: events.Event) -> None:
        """Show an event to the running turn and to the event sinks."""
        if self.running is not None:
            self.running.watch(event)
        self.extension.sink(event)

    def warn(self, text: str) -> None:
        """Show the user a warning; before `ThreadStarted`, keep it until then."""
        if self._unsaid is not None:
            self._unsaid.append(text)
        else:
            item = event_items.ErrorItem(id=self.next_item_id(), message=text)
            self.emit(events.ItemCompleted(item))

    def next_item_id(self) -> str:
        """The next of `item_0`, `item_1`, …, in the order in which items first appear."""
        return f"item_{next(self._item_ids)}"

    def next_live_id(self) -> str:
        """A fresh `live_N` for a live-only item, so that the ids in `--json` have no gaps."""
        return f"live_{next(self._live_ids)}"

    def count(
        self,
        usage: Usage,
        last: Usage | None = None,
        plan: PlanUse | None = None,
    ) -> None:
        """Add tokens that were used for this thread, and emit the new usage.

        Args:
            last: the tokens of the thread's last response; None if this usage is not of a response
                in the thread.
            plan: the use of the ChatGPT plan that paid for the tokens; None if no plan did.
        """
        if usage.total_tokens:
            self.plan = plan
        self.log.count(usage, last)
        self.emit(self.token_usage)
