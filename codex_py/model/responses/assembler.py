"""Turns the events of one Responses API stream into `ResponseEvent`s, whichever of them the server sends.

Specification: https://platform.openai.com/docs/api-reference/responses-streaming. Events are told apart by
the `type` in their data, or else by their name. What a server leaves out is made up from what it did send: items from deltas, or
from the terminal response alone.
"""

from collections.abc import Collection, Sequence

from codex_py.errors import MalformedItem, ModelError
from codex_py.model.failures import incomplete, stream_failure, unfinished
from codex_py.model.freeform import unwrapped_item
from codex_py.model.provider_data import Maker
from codex_py.model.responses.parts import TEXT_EVENTS, peek
from codex_py.model.responses.slot_table import SlotTable
from codex_py.model.responses.slots import CALLS, Slot, kind_of_item
from codex_py.protocol import stream
from codex_py.protocol.items import parse_item
from codex_py.protocol.json_fields import (
    JsonObject,
    integer_field,
    object_field,
    parse_event,
    text_field,
)

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Calls are answered here alone: an output that a server sends would come without its call, or in place of ours."""


class ResponsesDecoder:
    """A `Decoder` for one response.

    A failure that comes with items (the text of an answer that was cut short) is raised by the call
    after the one that gave them out, be it `feed` or `end`; any other failure is raised at once. After
    the terminal event `finished` is true, and nothing more is read: `end` returns or raises.
    """

    def __init__(
        self,
        watched: Collection[type[stream.ResponseEvent]] = (
            stream.OutputTextDelta,
            stream.ReasoningDelta,
            stream.ToolInputDelta,
        ),
        *,
        maker: Maker | None = None,
        wrapped: Collection[str] = (),
    ) -> None:
        """
        Args:
            watched: the deltas that somebody listens to. Others are not given out, and mostly not even parsed.
            maker: the provider, for items that it alone can use.
            wrapped: names of freeform tools that were offered as functions.
        """
        self.finished = False
        self._watched = watched
        self._maker = maker or Maker()
        self._wrapped = wrapped
        self._failure: ModelError | None = None
        self._is_created = False
        self._response_id: str | None = None
        self._slots = SlotTable()
        self._out: list[stream.ResponseEvent] = []

    def feed(self, data: str, name: str = "message") -> Sequence[stream.ResponseEvent]:
        if self.finished:
            return self.end()
        text, index = peek(data) or (None, -1)
        if text is not None and text.shown not in self._watched:
            slot = self._slots.at(index)
            if slot is not None and slot.put_off(text, data):
                return ()
        event = parse_event(data)
        if event is None:
            return ()
        out = self._out = []
        try:
            self._take(_typed(event, name))
        except MalformedItem as error:
            self._fail(self._failure or error)
        if self._failure is not None and not any(isinstance(e, stream.OutputItemDone) for e in out):
            raise self._failure
        return out

    def end(self) -> Sequence[stream.ResponseEvent]:
        if not self.finished:
            self._fail(unfinished("stream closed before response.completed"))
        if self._failure is not None:
            raise self._failure
        return ()

    def _take(self, event: JsonObject) -> None:
        kind = event.get("type")
        match kind:
            case "response.created":
                self._created(object_field(event, "response") or event)
            case "response.output_item.added":
                self._item_added(event)
            case "response.output_item.done":
                self._item_done(event)
            case (
                "response.completed"
                | "response.incomplete"
                | "response.failed"
                | "response.cancelled"
            ):
                state = kind.removeprefix("response.")
                self._terminal(state, object_field(event, "response") or event)
            case "error":
                self._error(event)
            case "codex.rate_limits":
                self._out.append(stream.RateLimits({k: v for k, v in event.items() if k != "type"}))
            case str():
                self._take_text(kind, event)
            case _:
                self._untyped(event)

    def _take_text(self, kind: str, event: JsonObject) -> None:
        # Whatever is not in the table is progress, or news that this program does not know.
        text = TEXT_EVENTS.get(kind)
        if text is None or (text.verb == "delta" and not text_field(event, "delta")):
            return
        slot = self._slots.for_delta(event, text.item_types)
        if slot is not None:
            self._report(slot)
            shown = slot.take(text, event)
            if shown is not None and type(shown) in self._watched:
                self._out.append(shown)

    def _fail(self, failure: ModelError) -> None:
        self.finished = True
        self._failure = failure

    def _item_added(self, event: JsonObject) -> None:
        item = object_field(event, "item")
        if _is_spoken(item) and (slot := self._slots.for_added(event, item)):
            slot.announce(item)
            self._report(slot)

    def _item_done(self, event: JsonObject) -> None:
        item = object_field(event, "item")
        if _is_spoken(item) and (slot := self._slots.for_done(event, item)):
            slot.kind = kind_of_item(item)
            self._give_out(slot, slot.completed(item))

    def _report(self, slot: Slot) -> None:
        if not slot.is_reported:
            slot.is_reported = True
            self._out.append(stream.OutputItemAdded(slot.index, slot.kind))

    def _give_out(self, slot: Slot, item: JsonObject) -> None:
        item = unwrapped_item(item, self._wrapped) if self._wrapped else item
        parsed = parse_item(self._maker.marked(item))
        self._report(slot)
        slot.close(item)
        self._out.append(stream.OutputItemDone(slot.index, parsed))

    def _created(self, response: JsonObject) -> None:
        if not self._is_created:
            self._is_created = True
            self._response_id = text_field(response, "id") or None
            self._out.append(stream.Created(self._response_id))

    def _error(self, event: JsonObject) -> None:
        nested = object_field(event, "error")
        headers = {
            name.lower(): str(value)
            for source in (event, nested)
            for name, value in object_field(source, "headers").items()
        }
        self._fail(stream_failure(event, status=integer_field(event, "status"), headers=headers))

    def _untyped(self, event: JsonObject) -> None:
        """A whole response in place of a stream, or an error that a gateway put in."""
        if event.get("object") == "response":
            self._created(event)
            if event.get("status") not in {"queued", "in_progress"}:
                self._terminal("completed", event)
        elif event.get("error"):
            self._error(event)

    def _terminal(self, state: str, response: JsonObject) -> None:
        # Servers report a cut or failed response as `response.completed` too: its status says so.
        status = text_field(response, "status")
        states = {state, status}
        if "failed" in states or (response.get("error") and status != "completed"):
            fallback = "response.failed event received"
            self._fail(stream_failure(response.get("error"), fallback=fallback))
        elif "cancelled" in states:
            self._cut_short(response, ModelError("The response was cancelled.", code="cancelled"))
        elif "incomplete" in states or (response.get("incomplete_details") and not status):
            reason = text_field(object_field(response, "incomplete_details"), "reason") or "unknown"
            self._cut_short(response, incomplete(reason))
        else:
            self._completed(response)

    def _cut_short(self, response: JsonObject, failure: ModelError) -> None:
        """Keep the text that there is; a call that was not closed must not run."""
        entries = self._slots.match(response.get("output"))
        self._fail(failure)
        for slot in self._slots:
            if slot.is_open and slot.kind == "message":
                item = slot.assembled(entries.get(slot.index), "incomplete")
                if item is not None:
                    self._give_out(slot, {**item, "status": "incomplete"})

    def _completed(self, response: JsonObject) -> None:
        entries = self._slots.match(response.get("output"))
        failure: ModelError | None = None
        for slot in self._slots:
            if not slot.is_open or slot.kind in _OUTPUTS:
                continue
            entry = entries.get(slot.index)
            try:
                item = slot.assembled(entry, "completed")
                if item is not None:
                    self._give_out(slot, item)
                elif slot.kind in CALLS:
                    failure = failure or unfinished(f"a {slot.kind} was announced and never sent")
            except MalformedItem as error:
                failure = failure or error
        if failure is not None:
            self._fail(failure)
            return
        self.finished = True
        end_turn = response.get("end_turn")
        self._out.append(
            stream.Completed(
                text_field(response, "id") or self._response_id,
                _usage(object_field(response, "usage")),
                end_turn if isinstance(end_turn, bool) else None,
            )
        )


def _typed(event: JsonObject, name: str) -> JsonObject:
    """The event as one of the type that its name says, if its data name none or are those of an item alone."""
    kind = event.get("type", "")
    if isinstance(kind, str) and kind.startswith(("response.", "error")):
        return event
    if name.startswith("response.output_item.") and "item" not in event:
        return {"type": name, "output_index": event.pop("output_index", None), "item": event}
    is_named = not kind and name.startswith(("response.", "error"))
    return {**event, "type": name} if is_named else event


def _is_spoken(item: JsonObject) -> bool:
    """Whether it is an item that a model can say."""
    return bool(item) and kind_of_item(item) not in _OUTPUTS


def _usage(usage: JsonObject) -> stream.Usage:
    """Zeros for whatever is absent, null, or no number."""
    inputs = object_field(usage, "input_tokens_details")
    outputs = object_field(usage, "output_tokens_details")
    return stream.Usage(
        input_tokens=integer_field(usage, "input_tokens") or 0,
        cached_input_tokens=integer_field(inputs, "cached_tokens") or 0,
        cache_write_input_tokens=integer_field(inputs, "cache_write_tokens") or 0,
        output_tokens=integer_field(usage, "output_tokens") or 0,
        reasoning_output_tokens=integer_field(outputs, "reasoning_tokens") or 0,
    )
