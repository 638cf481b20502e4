"""The history of a thread and its session file, kept in step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from codex_py.core.context import context_update, model_switch
from codex_py.core.history import is_cut_off, without_turns
from codex_py.errors import CodexError
from codex_py.protocol.extension import Occasion, ParentThread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.messages import (
    EncodedItem,
    estimated_tokens,
    input_text,
    message,
)
from codex_py.protocol.prompts import Note, UserPrompt, is_models
from codex_py.protocol.response_order import COMPLETED, HistoryPlace, OpenCall, in_order
from codex_py.protocol.settings import TurnSettings, turn_context
from codex_py.protocol.stream import Prompt, Usage
from codex_py.protocol.tools import ToolCall

_ABORTED = (
    "<turn_aborted>\n{}. Commands that were running"
    " have been stopped and may have done part of their work: check before you repeat one.\n"
    "</turn_aborted>"
)


Introduction: TypeAlias = Callable[[Occasion], Sequence[Note]]
"""See `Extension.context`."""


class Recorder(Protocol):
    """Writes the session file."""

    def response_item(
        self, item: EncodedItem, place: HistoryPlace | None = None
    ) -> None:
        """Write an item of the history. Without a `place`, the order of the lines is its place."""
        ...

    def turn_context(self, payload: Mapping[str, Any]) -> None:
        """Write the settings of a turn."""
        ...

    def event_msg(
        self, payload: Mapping[str, Any], place: HistoryPlace | None = None
    ) -> None:
        """Write an event that is no item of the history."""
        ...

    def compacted(
        self, message: str, replacement_history: Sequence[EncodedItem]
    ) -> None:
        """Record that the history after the base prompt was replaced.

        `message` is the summary in the new history.
        """
        ...

    def rename(self, name: str) -> None:
        """Save a new name. Raises a `SessionError` if that fails."""
        ...


@frozen(kw_only=True)
class ThreadState:
    """The state of a thread when a session opens it."""

    id: str
    instructions: str
    """The base prompt; blank if the thread has no base prompt."""
    items: Sequence[EncodedItem]
    """The history after the base prompt. Every call but the open one has its output."""
    open_call: OpenCall | None = None
    """A call without an output, which the next turn runs first."""
    read_conversation: Callable[[], Sequence[EncodedItem]] = tuple
    """Reads the history for display, with the items that a compaction removed from `items`."""
    usage: Usage = field(default_factory=Usage)
    """The tokens of the whole thread."""
    last_usage: Usage = field(default_factory=Usage)
    """The tokens of the last response."""
    provider: str | None = None
    """The provider that the thread began with; None for a new thread."""
    model: str | None = None
    """The model of the last turn; None for a new thread."""
    name: str | None = None
    parent: ParentThread | None = None
    file: Path | None = None
    """The absolute path of the session file; None if the thread is not saved."""


class ThreadLog:
    """Keeps the history, its token counts and its unanswered calls.

    Every item is written to the session file before it is shown.

    Args:
        context: creates the first items of a new thread, without the base prompt.
    """

    def __init__(
        self,
        thread: ThreadState,
        recorder: Recorder,
        context: Callable[[TurnSettings], Sequence[EncodedItem]],
    ) -> None:
        self.thread = thread
        self._recorder = recorder
        self.rename = recorder.rename
        self._context = context
        is_new = thread.model is None
        self._introduction: Occasion | None = "start" if is_new else "resume"
        """The occasion of the notes that extensions add to the first turn; None after it."""
        text = thread.instructions
        if text.strip():
            self._base = [message("developer", [input_text(text)])]
        else:
            self._base = []
        self.items = [*self._base, *thread.items]
        """The history, base prompt first. A live view, until the history is replaced."""
        self._first_items = len(self.items)
        self._response: list[tuple[HistoryPlace, str, EncodedItem]] = []
        """The items of the running response with their places and types, in order of arrival."""
        self._told_model = thread.model
        """The model of the last turn."""
        self._told_settings: TurnSettings | None = None
        """The settings of the last `turn_context`."""
        self._context_is_current = is_new
        """True if the history ends with the whole context, so that it need not be compared."""
        self.notes: list[Note] = []
        """Notes that are sent with the next request."""
        self._injected: list[EncodedItem] = []
        """Items of a client that are sent with the next request."""
        self.is_unfinished = is_cut_off(thread.items)
        """True if the last turn failed or was interrupted."""
        self.ran: list[ToolCall] = []
        """The calls that ran for a response that broke off: a retry must not run them again."""
        self._open_call = thread.open_call
        """The call without an output, until the first turn takes it."""
        self._left_open: set[HistoryPlace] = set()
        """The places of outputs that are not written to the session file."""
        self.usage = thread.usage
        """The tokens of the whole thread."""
        self.last_usage = thread.last_usage
        """The tokens of the last response; an estimate after a compaction."""
        self._counted = 0
        """The number of items when `last_usage` was counted."""

    @property
    def is_untouched(self) -> bool:
        """True if the thread is new, and nothing was added to its first items."""
        return self.thread.model is None and len(self.items) == self._first_items

    def state(self, name: str | None) -> ThreadState:
        """The state of the thread now, for a later session that continues it without its file.

        `name`: the name of the thread.
        """
        items = tuple(self.items[len(self._base) :])
        return replace(
            self.thread,
            items=items,
            read_conversation=lambda: items,
            open_call=None,
            usage=self.usage,
            last_usage=self.last_usage,
            model=self._told_model,
            name=name,
        )

    def request(self, settings: TurnSettings, output_schema: Any = None) -> Prompt:
        """The request that sends the whole history."""
        cache_key = self.thread.id
        parent = self.thread.parent
        if parent is not None:
            # A child's requests begin like its parent's.
            cache_key = parent.thread_id
        return Prompt(
            model=settings.model,
            input=self.items[len(self._base) :],
            cache_key=cache_key,
            instructions=self.thread.instructions if self._base else "",
            tools=settings.tools,
            parallel_tool_calls=settings.parallel_tool_calls,
            reasoning=settings.reasoning,
            verbosity=settings.verbosity,
            output_schema=output_schema,
            service_tier=settings.service_tier,
            max_output_tokens=settings.max_output_tokens,
            abilities=settings.abilities,
        )

    def used_tokens(self, settings: TurnSettings) -> int:
        """The tokens of the history: the last response's count, and an estimate of later items."""
        if not self.last_usage.total_tokens:
            return self.request(settings).estimated_tokens
        uncounted = reversed(self.items[self._counted :])
        # The last response's count includes its own items.
        later = takewhile(lambda item: not is_models(item), uncounted)
        return self.last_usage.total_tokens + estimated_tokens(later)

    def count(
        self,
        usage: Usage,
        last: Usage | None = None,
    ) -> None:
        """Add tokens. `last`: the tokens of the last response, if that has changed."""
        self.usage += usage
        if last is not None:
            self.last_usage = last
            self._counted = len(self.items)

    def begin_turn(self, settings: TurnSettings, introduction: Introduction) -> None:
        """Append the context that changed since the last turn.

        The first turn also appends the notes of the extensions.
        """
        self._left_open.clear()
        self._tell_context(settings)
        if self._introduction is not None:
            self.tell(introduction(self._introduction))
            self._introduction = None
        self._recorder.turn_context(turn_context(settings))

    def outdate_context(self) -> None:
        """Let the next turn compare the context with the history: the settings have changed."""
        self._context_is_current = False

    def tell_change(self, settings: TurnSettings) -> None:
        """Append the context that changed with the settings since the turn began."""
        if settings != self._told_settings:
            self._context_is_current = False
            self._tell_context(settings)
            self._recorder.turn_context(turn_context(settings))

    def _tell_context(self, settings: TurnSettings) -> None:
        """Append what differs from the context in the history, and a note about a new model."""
        self._told_settings = settings
        if self._told_model not in {None, settings.model}:
            self.item(model_switch())
        self._told_model = settings.model
        if not self._context_is_current:
            for item in context_update(self.items, self._context(settings)):
                self.item(item)
        # Files and the date may change between turns.
        self._context_is_current = False

    def prompt(
        self,
        prompt: UserPrompt,
        notes: Sequence[Note],
        image_rule: ImageRule,
        warn: Callable[[str], None],
    ) -> None:
        """Add a prompt, and the notes that follow it.

        `warn` gets a message for each unreadable image.
        """
        parts: list[JsonObject] = []
        if prompt.images:
            from codex_py.core.images import image_parts  # 3 ms

            for number, path in enumerate(prompt.images, 1):
                parts += image_parts(Path(path), number, image_rule, warn)
        parts.append(input_text(prompt.text))
        self.item(message("user", parts))
        event = {
            "type": "user_message",
            "message": prompt.text,
            "images": list(prompt.images),
        }
        self._recorder.event_msg(event)
        self.tell(notes)

    def send_notes(self) -> None:
        """Append the waiting notes and injected items to the history, unless a call is left open."""
        if self._left_open:
            # The open call has no output yet, and a later session inserts it directly after the
            # call.
            return
        notes = self.notes
        self.notes = []
        self.tell(notes)
        injected = self._injected
        self._injected = []
        if injected:
            mark = {"type": "items_injected", "count": len(injected)}
            self._recorder.event_msg(mark)
        for item in injected:
            self.item(item)

    def inject(self, items: Sequence[EncodedItem]) -> None:
        """Let `send_notes` append these items to the history, too. Every call has its output."""
        self._injected += items

    def tell(self, notes: Sequence[Note]) -> None:
        """Append notes to the history.

        Raises a `TypeError`, and adds nothing, if one of them, which extensions make, is no `Note`.
        """
        for note in cast("Sequence[object]", notes):
            if not isinstance(note, Note):
                raise TypeError(f"a note is a {type(note).__name__}, not a `Note`")
        for note in notes:
            self.item(note)

    def item(self, item: EncodedItem | Note) -> None:
        """Append an item to the history, and write it to the session file."""
        if isinstance(item, Note):
            encoded = item.encoded()
        else:
            encoded = item
        self.items.append(encoded)
        self._recorder.response_item(encoded)

    def record(self, item: ResponseItem | Note, place: HistoryPlace) -> None:
        """Write an item of the running response to the session file."""
        kind = "message" if isinstance(item, Note) else item.type
        encoded = item.encoded()
        self._response.append((place, kind, encoded))
        if place not in self._left_open:
            self._recorder.response_item(encoded, place)

    def take_open_call(self) -> OpenCall | None:
        """Return the open call once, to run it now. Only its output may be recorded next."""
        open_call = self._open_call
        self._open_call = None
        return open_call

    def leave_open(self, place: HistoryPlace) -> None:
        """Keep the output of this place out of the session file.

        Notes, which would follow it, wait for the next turn.
        """
        self._left_open.add(place)

    def mark_response_complete(self) -> None:
        """Record that the response is complete, if its last item is reasoning.

        Without the mark, `in_order` drops reasoning that no item follows.
        """
        kinds = {
            place: kind for place, kind, _ in self._response if not place.is_output
        }
        if not kinds:
            return
        last = max(kinds)
        if kinds[last] != "reasoning":
            return
        place = last._replace(
            position=last.position + 1,
            arrival=last.arrival + 1,
        )
        self._response.append((place, COMPLETED, EncodedItem(b"")))
        self._recorder.event_msg({"type": COMPLETED}, place)

    def insert_response(self, open_call: OpenCall | None = None) -> None:
        """Add the recorded items of the response to the history.

        Args:
            open_call: the items answer this call, and are inserted directly after it. None: they
                follow everything else.
        """
        index = len(self.items)
        if open_call is not None:
            index = len(self._base) + open_call.output_index
        self.items[index:index] = in_order(self._response)
        self._response.clear()

    def abort(self, error: CodexError | None) -> None:
        """Tell the model that this error ended its turn; None: the user interrupted it."""
        why = "The user interrupted the previous turn on purpose"
        event = {"type": "turn_aborted", "reason": "interrupted"}
        if error is not None:
            why = f"The previous turn was stopped: {error}"
            # Codex has no reason that fits, and ignores this field.
            event["error"] = str(error)
        text = _ABORTED.format(why)
        self.item(message("user", [input_text(text)]))
        self._recorder.event_msg(event)

    def new_context(
        self, settings: TurnSettings, notes: Iterable[Note]
    ) -> list[EncodedItem]:
        """The first items of a compacted history: the context of a new thread, and these notes."""
        encoded = [note.encoded() for note in notes]
        return [*self._context(settings), *encoded]

    def compact(
        self, items: Sequence[EncodedItem], text: str, settings: TurnSettings
    ) -> None:
        """Replace the history after the base prompt.

        `items` begin with a `new_context` and end with `text`.
        """
        self.items = [*self._base, *items]
        self._context_is_current = True
        self._introduction = None
        self._told_settings = settings
        self._recorder.compacted(text, items)
        self._recorder.turn_context(turn_context(settings))

    def rollback(self, turns: int) -> None:
        """Drop the last `turns` prompts and everything after them.

        Raises a `ValueError` if there are fewer prompts.
        """
        self.items = without_turns(self.items, turns)
        self._context_is_current = False
        self._recorder.event_msg({"type": "thread_rolled_back", "num_turns": turns})
        # There is nothing to retry.
        self.is_unfinished = False
        self.ran.clear()

    def forget_missing_calls(self) -> None:
        """Forget the calls that a compaction removed: if the model repeats one, it is new."""
        kept: list[ToolCall] = []
        for call in self.ran:
            call_id = call.call_id.encode()
            if any(call_id in item for item in self.items):
                kept.append(call)
        self.ran[:] = kept
