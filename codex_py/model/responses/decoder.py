"""Turns the events of one Responses API stream into `ResponseEvent`s, even if the server leaves
some out.

Specification: https://platform.openai.com/docs/api-reference/responses-streaming. Events are told
apart by the `type` in their data, or else by their name. Missing items are assembled from deltas,
or from the terminal response alone.
"""

from collections.abc import Collection, Sequence

from codex_py.errors import MalformedItem, ModelError, StreamError
from codex_py.model.failures import incomplete, stream_failure
from codex_py.model.freeform import unwrapped_item
from codex_py.model.provider_data import Maker
from codex_py.model.reported import reported_failure
from codex_py.model.responses.named_events import typed_event
from codex_py.model.responses.slot import CALLS, Slot, kind_of_item
from codex_py.model.responses.slot_table import SlotTable
from codex_py.model.responses.texts import TEXT_EVENTS, TextEvent, peek
from codex_py.protocol import stream
from codex_py.protocol.items import parse_item
from codex_py.protocol.json_fields import (
    JsonObject,
    as_object,
    integer_field,
    object_field,
    parse_event,
    text_field,
)

_TERMINAL = {
    f"response.{state}" for state in ("completed", "incomplete", "failed", "cancelled")
}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Items to ignore: only this program answers calls, and a server's output would lack its call or
replace ours."""


class ResponsesDecoder:
    """A `Decoder` for one response.

    A failure that comes with items (the text of an answer that was cut short) is raised by the next
    call of `feed` or `end` after the one that returned them; any other failure is raised at once.
    After the terminal event, `finished` is true and nothing more is read: `end` returns or raises.
    """

    def __init__(
        self,
        *,
        deltas: bool = True,
        maker: Maker | None = None,
        wrapped: Collection[str] = (),
    ) -> None:
        """
        Args:
            deltas: True to emit deltas. Otherwise most of them are not even parsed.
            maker: the provider that makes the items.
            wrapped: the names of freeform tools that were offered as functions.
        """
        self.finished = False
        self._deltas = deltas
        self._maker = maker or Maker()
        self._wrapped = wrapped
        self._failure: ModelError | None = None
        self._is_created = False
        self._slots = SlotTable()
        self._out: list[stream.ResponseEvent] = []

    def feed(
        self,
        data: str,
        name: str = "message",
    ) -> Sequence[stream.ResponseEvent]:
        if self.finished:
            return self.end()
        self._out = []
        try:
            if self._put_off(data):
                return ()
            event = parse_event(data, name)
            if event is not None:
                self._take(typed_event(event, name))
        except ModelError as error:
            self._fail(self._failure or error)
        if self._failure is not None:
            has_items = any(isinstance(e, stream.OutputItemDone) for e in self._out)
            if not has_items:
                raise self._failure
        return self._out

    def _put_off(self, data: str) -> bool:
        """Leave a text event unread that nobody watches. False if it must be read now."""
        peeked = peek(data)
        if peeked is None:
            return False
        text, index = peeked
        if self._deltas and text.shown:
            return False
        slot = self._slots.at(index)
        return slot is not None and slot.put_off(text, data)

    def end(self) -> Sequence[stream.ResponseEvent]:
        if not self.finished:
            self._fail(StreamError.broke_off("stream closed before response.completed"))
        if self._failure is not None:
            raise self._failure
        return ()

    def _take(self, event: JsonObject) -> None:
        kind = event.get("type")
        match kind:
            case str() if kind in TEXT_EVENTS:
                self._take_text(TEXT_EVENTS[kind], event)
            case "response.created":
                self._created()
            case "response.output_item.added":
                self._take_item(event, is_done=False)
            case "response.output_item.done":
                self._take_item(event, is_done=True)
            case str() if kind in _TERMINAL:
                self._terminal(kind, object_field(event, "response") or event)
            case None | "response" if "response" in {kind, event.get("object")}:
                self._take_whole(event)
            case str() if kind.startswith("response."):
                # The event reports progress, or has a type that this program does not know.
                pass
            case _:
                # Gateways insert their own errors.
                failure = reported_failure(event)
                if failure is not None:
                    self._fail(failure)

    def _take_whole(self, response: JsonObject) -> None:
        """Take a response that replaces a stream, or ends one without an event around it."""
        self._created()
        has_result = bool(response.get("error")) or any(
            field in response for field in ("status", "output", "usage")
        )
        if has_result and response.get("status") not in {"queued", "in_progress"}:
            self._terminal("response.completed", response)

    def _take_text(self, text: TextEvent, event: JsonObject) -> None:
        if text.verb == "delta" and not text_field(event, "delta"):
            return
        slot = self._slots.for_text(event, text.item_types)
        if slot.is_open:
            self._report(slot)
            shown = slot.take(text, event)
            if shown is not None and self._deltas:
                self._out.append(shown)

    def _fail(self, failure: ModelError) -> None:
        self.finished = True
        self._failure = failure

    def _take_item(self, event: JsonObject, *, is_done: bool) -> None:
        item = object_field(event, "item")
        if not item or kind_of_item(item) in _OUTPUTS:
            return
        if is_done:
            slot = self._slots.for_done(event, item)
        else:
            slot = self._slots.for_added(event, item)
        if not slot.is_open:
            return
        if is_done:
            slot.kind = kind_of_item(item)
            self._give_out(slot, slot.completed(item))
        else:
            slot.announce(item)
            self._report(slot)

    def _report(self, slot: Slot) -> None:
        """Emit `OutputItemAdded`, once for each slot."""
        if not slot.is_reported:
            slot.is_reported = True
            self._out.append(stream.OutputItemAdded())

    def _give_out(self, slot: Slot, item: JsonObject) -> None:
        """Close a slot, and emit its item."""
        if self._wrapped:
            item = unwrapped_item(item, self._wrapped)
        parsed = parse_item(self._maker.marked(item))
        self._report(slot)
        slot.close(item)
        self._out.append(stream.OutputItemDone(slot.index, parsed))

    def _created(self) -> None:
        if not self._is_created:
            self._is_created = True
            self._out.append(stream.Created())

    def _terminal(self, kind: str, response: JsonObject) -> None:
        """Take the event that ends the response. `kind`: its type."""
        # Servers report a cut or failed response as `response.completed` too: its status says so.
        status = text_field(response, "status")
        states = {kind.removeprefix("response."), status}
        error = response.get("error")
        details = response.get("incomplete_details")
        if "failed" in states or (error and status != "completed"):
            # Some servers send the error itself instead of a response.
            error = error or {**response, "type": _type_of_error(response)}
            fallback = "response.failed event received"
            self._fail(stream_failure(error, fallback=fallback))
        elif "cancelled" in states:
            cut = ModelError("The response was cancelled.", code="cancelled")
            self._finish(response, cut)
        elif "incomplete" in states or (details and not status):
            reason = text_field(as_object(details), "reason") or "unknown"
            self._finish(response, incomplete(reason))
        else:
            self._finish(response)

    def _finish(
        self,
        response: JsonObject,
        cut: ModelError | None = None,
    ) -> None:
        """Emit the open items, but only text of a cut response: half a call must not run.

        `cut`: the failure of a response that was cut.
        """
        entries = self._slots.for_listed(response.get("output"))
        failure = cut
        for slot in self._slots:
            if cut is None:
                is_wanted = slot.kind not in _OUTPUTS
            else:
                is_wanted = slot.kind == "message"
            if not slot.is_open or not is_wanted:
                continue
            try:
                self._give_out_late(slot, entries.get(slot.index), is_cut=bool(cut))
            except (MalformedItem, StreamError) as error:
                failure = failure or error
        self.finished = True
        self._failure = failure
        if failure is None:
            usage = _usage(object_field(response, "usage"))
            end_turn = response.get("end_turn")
            if not isinstance(end_turn, bool):
                end_turn = None
            self._out.append(stream.Completed(usage, end_turn))

    def _give_out_late(
        self, slot: Slot, entry: JsonObject | None, *, is_cut: bool
    ) -> None:
        """Emit the item of a slot that is open at the end. `entry`: see `Slot.assembled`.

        Raises a `StreamError` for a call that was only announced, and a `MalformedItem`.
        """
        item = slot.assembled(entry)
        if item is not None:
            if is_cut:
                item["status"] = "incomplete"
            self._give_out(slot, item)
        elif slot.kind in CALLS:
            raise StreamError.broke_off(f"a {slot.kind} was announced and never sent")


def _type_of_error(response: JsonObject) -> str:
    """The type of an error that came instead of a response; empty for a response."""
    kind = text_field(response, "type")
    if kind == "response" or kind.startswith("response."):
        return ""
    return kind


def _usage(usage: JsonObject) -> stream.Usage:
    """The token counts; 0 for each that is absent, null, or not a number."""
    inputs = object_field(usage, "input_tokens_details")
    outputs = object_field(usage, "output_tokens_details")
    return stream.Usage(
        input_tokens=integer_field(usage, "input_tokens") or 0,
        cached_input_tokens=integer_field(inputs, "cached_tokens") or 0,
        cache_write_input_tokens=integer_field(inputs, "cache_write_tokens") or 0,
        output_tokens=integer_field(usage, "output_tokens") or 0,
        reasoning_output_tokens=integer_field(outputs, "reasoning_tokens") or 0,
    )
