"""One item of a response while it streams: its announcement, and the events that follow.

Servers differ in the events that they send. `output_item.done` counts most, then the `done` events
of its parts, then the deltas, then the item in the terminal response, then the announcement.
"""

from collections import defaultdict
from itertools import count
from typing import Any

from codex_py.model.failures import MAX_ITEMS, too_many_items
from codex_py.model.freeform import unwrapped
from codex_py.model.responses.texts import (
    TEXT_EVENTS,
    Part,
    TextEvent,
    is_empty,
    part_kind,
    part_text,
    text_of,
)
from codex_py.model.responses.unread import UnreadEvents
from codex_py.protocol.ids import new_call_id
from codex_py.protocol.json_fields import (
    JsonObject,
    integer_field,
    is_json,
    object_field,
    objects,
    parse_event,
    text_field,
    well_formed,
)
from codex_py.protocol.stream import OutputTextDelta, ReasoningDelta, ResponseEvent

CALLS = frozenset({"function_call", "custom_tool_call"})

_NAMING_FIELDS = ("id", "call_id", "name", "namespace", "role", "phase")
_PAYLOAD_FIELDS = ("arguments", "input", "content", "summary", "action")
_STREAMED_FIELDS = {
    "message": ("content",),
    "reasoning": ("summary", "content"),
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
}


_MAX_PACKED_BYTES = 16 * 1024 * 1024
"""The most memory for unread events of one item. Those of an answer of 128,000 tokens take some 3
million bytes."""


class Slot:
    """The place of one item in a response. It is open until the item is given out."""

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.announced: JsonObject = {}
        self.is_open = True
        """False once the item was given out."""
        self.item: JsonObject | None = None
        """The item as it was given out; None while the slot is open."""
        self.is_reported = False
        """True once `OutputItemAdded` was emitted for the item."""
        self._parts: defaultdict[str, dict[int, Part]] = defaultdict(dict)
        """The parts by field and index. `arguments` and `input` have one part, at 0."""
        self._unread = UnreadEvents()
        """The data of text events that were put off."""

    def announce(self, item: JsonObject) -> None:
        """Take the item of `output_item.added`, which some servers send whole."""
        if self._unread:
            self._catch_up()
        self.announced.update(item)
        for field in ("arguments", "input"):
            text = text_field(item, field)
            if text:
                self._part(field, 0, field).announced = text
        for field in ("content", "summary"):
            for index, fields in enumerate(objects(item.get(field))):
                part = self._part(field, index, part_kind(fields), opens=True)
                part.announce(fields)

    def put_off(self, text: TextEvent, data: str) -> bool:
        """Keep a text event unread, because the whole item nearly always comes after its texts.

        False if the event must be read at once, because it does not belong here, or may contain the
        name of the call.
        """
        if self.item is not None or self.kind not in text.item_types:
            return False
        if self.kind in CALLS and not self.announced.get("name"):
            return False
        self._unread.append(data)
        if self._unread.packed_bytes > _MAX_PACKED_BYTES:
            self._catch_up()
        return True

    def _catch_up(self) -> None:
        """Take the events that were put off."""
        unread = self._unread
        self._unread = UnreadEvents()
        for data in unread:
            event = parse_event(data) or {}
            # An event can have two `type` fields. `peek` has read the first, and JSON keeps the
            # last.
            text = TEXT_EVENTS.get(text_field(event, "type"))
            if text is not None:
                self.take(text, event)

    def take(self, text: TextEvent, event: JsonObject) -> ResponseEvent | None:
        """Take a text event. Returns the event that shows its delta to a listener, if any."""
        if self._unread:
            self._catch_up()
        fields = {} if text.kind else object_field(event, "part")
        index = integer_field(event, f"{text.field}_index")
        kind = text.kind or part_kind(fields)
        part = self._part(text.field, index, kind, opens=text.verb == "added")
        match text.verb:
            case "delta":
                delta = text_field(event, "delta")
                part.append(delta)
                return self._shown(text, well_formed(delta), part)
            case "added":
                part.announce(fields)
            case "annotated":
                part.annotate(event.get("annotation"))
            case _:
                if not text.kind:
                    whole = part_text(fields)
                elif kind in {"refusal", "arguments", "input"}:
                    whole = text_field(event, kind)
                else:
                    whole = text_field(event, "text")
                part.finish(whole, fields)
                name = text_field(event, "name")
                if name and self.kind in CALLS:
                    self.announced.setdefault("name", name)
        return None

    def _shown(
        self,
        text: TextEvent,
        delta: str,
        part: Part,
    ) -> ResponseEvent | None:
        if text.shown is OutputTextDelta:
            return OutputTextDelta(self.index, delta)
        if text.shown is ReasoningDelta:
            raw = text.field == "content"
            return ReasoningDelta(self.index, delta, part.index, raw=raw)
        return None

    def _part(
        self,
        field: str,
        index: int | None,
        kind: str,
        *,
        opens: bool = False,
    ) -> Part:
        """The part that an event belongs to; a new one for the first event of a part.

        vLLM counts `content_index` up with every delta, so an index that was not announced goes to
        the part that is open.

        Args:
            opens: True for an event that announces a part.
        """
        parts = self._parts[field]
        if index is None and field != "content":
            index = 0
        # A reasoning item has parts of one sort, which servers name in several ways.
        is_any = self.kind == "reasoning"
        part = None if index is None else parts.get(index)
        if part is not None and (is_any or part.kind == kind):
            return part
        if field == "content" and not opens:
            for part in reversed(parts.values()):
                if (is_any or part.kind == kind) and not part.whole:
                    return part
        if len(parts) >= MAX_ITEMS:
            raise too_many_items()
        if index is None or index in parts:
            index = next(free for free in count(len(parts)) if free not in parts)
        part = Part(index, kind)
        parts[index] = part
        return part

    def completed(self, item: JsonObject) -> JsonObject:
        """The item in `output_item.done`, with missing fields added from earlier events."""
        result = dict(item)
        for field in _NAMING_FIELDS:
            announced = self.announced.get(field)
            if announced and item.get(field) in (None, ""):
                result[field] = announced
        for field in _STREAMED_FIELDS.get(self.kind, ()):
            if not is_empty(result.get(field)):
                continue
            self._catch_up()
            streamed = self._streamed(field)
            if not is_empty(streamed):
                result[field] = streamed
        if self.kind == "message":
            result.setdefault("role", "assistant")
        # Output is paired with its call by this id alone, so a call without one cannot be answered.
        # The oldest form of a local shell call is answered under its `id`.
        kind = kind_of_item(result)
        is_nameless_shell = kind == "local_shell_call" and not result.get("id")
        is_call = is_nameless_shell or kind in CALLS
        if is_call and result.get("call_id") in (None, ""):
            result["call_id"] = new_call_id()
        return result

    def assembled(self, entry: JsonObject | None) -> JsonObject | None:
        """Assemble an item without `output_item.done`; None if the other events make no item.

        `entry`: the item in the terminal response, if it is there.
        """
        self._catch_up()
        fields = _STREAMED_FIELDS.get(self.kind, ())
        if not is_json(text_of(self._streamed("arguments")) or "{}"):
            # The arguments were cut short, and a call must not run with half of them.
            self._parts.pop("arguments")
        values = {field: self._streamed(field) for field in fields}
        streamed = {
            name: value for name, value in values.items() if not is_empty(value)
        }
        if entry is None:
            is_nameless = self.kind in CALLS and not self.announced.get("name")
            if is_nameless or (fields and not streamed):
                return None
            entry = self._entry(streamed)
        result = self.completed(entry)
        for field, value in streamed.items():
            # The deltas count more than the entry, unless the entry begins with them.
            if not text_of(result.get(field)).startswith(text_of(value)):
                result[field] = value
        return result

    def _entry(self, streamed: JsonObject) -> JsonObject:
        """The item according to its announcement and these streamed fields."""
        entry = {
            "type": self.kind,
            **self.announced,
            **streamed,
            "status": "completed",
        }
        if self.kind == "reasoning":
            # An announcement may contain only a part of it.
            entry.pop("encrypted_content", None)
            entry.setdefault("summary", [])
        return entry

    def close(self, item: JsonObject) -> None:
        """Keep the item as it was emitted, and drop the state that led to it."""
        self.is_open = False
        self.item = item
        self._parts.clear()
        self._unread = UnreadEvents()

    def _streamed(self, field: str) -> Any:
        """The value of a field according to the events before the item's end."""
        parts = self._parts[field]
        if field == "arguments":
            first = next(iter(parts.values()), None)
            if first is None:
                return ""
            # Some servers announce `{}`, and then stream the arguments from their start.
            if is_json(first.streamed):
                return first.streamed
            return first.text
        if field == "input":
            text = "".join(part.text for part in parts.values())
            wrapped = self._streamed("arguments")
            if not text and is_json(wrapped):
                return unwrapped(wrapped)
            return text
        data = [parts[index].data() for index in sorted(parts)]
        return [part for part in data if not is_empty([part])]

    def says(self, item: JsonObject) -> bool:
        """True if the slot is closed, and its item has this item's content, with any id."""
        if self.item is None:
            return False
        for field in ("type", "name", *_PAYLOAD_FIELDS):
            value = item.get(field)
            if not is_empty(value) and self.item.get(field) != value:
                return False
        return True

    def differs(self, item: JsonObject, *fields: str) -> bool:
        """True if the slot's item and this one have one of these fields with different values."""
        known = self.announced if self.item is None else self.item
        for field in fields:
            ours = known.get(field)
            theirs = item.get(field)
            if ours and theirs and ours != theirs:
                return True
        return False

    def has_id_of(self, item: JsonObject) -> bool | None:
        """True if the slot is closed and its item has the type and the id of this item.

        The call id counts, or the id if one of them has no call id. None if there are no ids to
        compare.
        """
        if self.item is None or self.kind != kind_of_item(item):
            return False
        for field in ("call_id", "id"):
            if self.item.get(field) and item.get(field):
                return self.item[field] == item[field]
        return None


def kind_of_item(item: JsonObject) -> str:
    """The type of an item; an item with only a role is a message."""
    kind = item.get("type")
    if kind is None and "role" in item:
        return "message"
    if isinstance(kind, str):
        return kind
    return ""
