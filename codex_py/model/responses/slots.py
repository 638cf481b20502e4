"""One item of a response while it streams: how it was announced, and what came for it since.

Servers differ in which events they send. Of what there is, `output_item.done` counts most, then the `done`
events of its parts, then the deltas, then the item in the terminal response, then the announcement.
"""

from typing import Any

from codex_py.model.responses.parts import (
    TEXT_EVENTS,
    Part,
    Text,
    TextEvent,
    is_empty,
    part_kind,
    parts_data,
    text_of,
)
from codex_py.protocol.ids import new_call_id
from codex_py.protocol.json_fields import (
    JsonObject,
    integer_field,
    is_json,
    json_object,
    object_field,
    objects,
    parse_event,
    text_field,
    well_formed,
)
from codex_py.protocol.stream import OutputTextDelta, ReasoningDelta, ResponseEvent, ToolInputDelta

CALLS = frozenset({"function_call", "custom_tool_call"})

_NAMING_FIELDS = ("id", "call_id", "name", "namespace", "role", "phase")
_PAYLOAD_FIELDS = ("arguments", "input", "content", "summary", "action")
_STREAMED_FIELDS = {
    "message": ("content",),
    "reasoning": ("summary", "content"),
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
}
_WHOLE_TEXT = {"refusal": "refusal", "arguments": "arguments", "input": "input"}
"""The field of a `done` event that holds the text; `text` for all others."""
_MAX_UNREAD = 32 * 1024 * 1024
"""Characters of events that are kept unread for one item: an answer of 128,000 tokens has some 26 million."""


class Slot:
    """The place of one item in a response."""

    __slots__ = (
        "_unread", "_unread_size", "announced", "arguments", "content", "index", "input",
        "is_reported", "item", "kind", "summary",
    )  # fmt: skip

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.announced: JsonObject = {}
        self.item: JsonObject | None = None
        """The item as it was given out; None while it is open."""
        self.is_reported = False
        """Whether whoever watches has been told of the item."""
        self.arguments = Text()
        self.input = Text()
        self.content: dict[int, Part] = {}
        self.summary: dict[int, Part] = {}
        self._unread: list[str] = []
        self._unread_size = 0

    @property
    def is_open(self) -> bool:
        return self.item is None

    def announce(self, item: JsonObject) -> None:
        """Take the item of `output_item.added`, which some servers send whole."""
        self._catch_up()
        self.announced.update(item)
        for text, field in ((self.arguments, "arguments"), (self.input, "input")):
            if isinstance(value := item.get(field), str):
                text.announced = value
        for index, fields in enumerate(objects(item.get("content"))):
            self._announce_part(index, fields)
        for index, fields in enumerate(objects(item.get("summary"))):
            self._summary_part(index).announce(fields)

    def put_off(self, text: TextEvent, data: str) -> bool:
        """Keep a text event unread. Nearly always the whole item comes after its texts, and nobody needs them.

        False if it must be read at once: it does not belong here, or may hold the name of the call.
        """
        if self.item is not None or self.kind not in text.item_types:
            return False
        if self.kind in CALLS and not self.announced.get("name"):
            return False
        self._unread.append(data)
        self._unread_size += len(data)
        if self._unread_size > _MAX_UNREAD:
            self._catch_up()
        return True

    def _catch_up(self) -> None:
        unread, self._unread, self._unread_size = self._unread, [], 0
        for data in unread:
            event = parse_event(data) or {}
            # An event can have two types. It was put off by the first, and JSON takes the last.
            if (text := TEXT_EVENTS.get(text_field(event, "type"))) is not None:
                self.take(text, event)

    def take(self, text: TextEvent, event: JsonObject) -> ResponseEvent | None:
        """Take what a text event brings. What a listener is told of a delta; None for other events."""
        if self._unread:
            self._catch_up()
        content_index = integer_field(event, "content_index")
        summary_index = integer_field(event, "summary_index")
        match text.target:
            case "content" | "summary":
                self._take_part(text, event)
                return None
            case "annotations":
                part = self._content_part(content_index, "output_text")
                part.annotate(event.get("annotation"))
                return None
            case "arguments":
                part, streamed = None, self.arguments
            case "input":
                part, streamed = None, self.input
            case "summary_text":
                part = self._summary_part(summary_index)
                streamed = part.text
            case _:
                part = self._content_part(content_index, text.target)
                streamed = part.text
        if text.verb == "done":
            streamed.finish(text_field(event, _WHOLE_TEXT.get(text.target, "text")))
            if part is None and (name := text_field(event, "name")):
                self.announced.setdefault("name", name)
            return None
        delta = text_field(event, "delta")
        streamed.append(delta)
        return self._shown(text, well_formed(delta), 0 if part is None else part.index)

    def _shown(self, text: TextEvent, delta: str, part: int) -> ResponseEvent | None:
        if text.shown is OutputTextDelta:
            return OutputTextDelta(self.index, delta)
        if text.shown is ReasoningDelta:
            return ReasoningDelta(self.index, delta, part, raw=text.target == "reasoning_text")
        # The wrapped arguments of a custom call are not for the eye.
        is_input = text.target == "input" or self.kind == "function_call"
        return ToolInputDelta(self.index, delta) if is_input else None

    def _take_part(self, text: TextEvent, event: JsonObject) -> None:
        fields = object_field(event, "part")
        if text.target == "summary":
            part = self._summary_part(integer_field(event, "summary_index"))
            (part.announce if text.verb == "added" else part.finish)(fields)
        elif text.verb == "added":
            self._announce_part(integer_field(event, "content_index"), fields)
        else:
            index = integer_field(event, "content_index")
            self._content_part(index, part_kind(fields)).finish(fields)

    def _content_part(self, index: int | None, kind: str) -> Part:
        """The part that an event speaks of; a new one where it is the first.

        vLLM counts `content_index` up with every delta, so an index that was not announced goes to the
        part that is open.
        """
        if index is not None and (part := self.content.get(index)) and self._takes(part, kind):
            return part
        for part in reversed(self.content.values()):
            if self._takes(part, kind) and not part.text.is_whole:
                return part
        return self._new_part(index, kind)

    def _announce_part(self, index: int | None, fields: JsonObject) -> None:
        """Open a part, unless its deltas have done so."""
        part = self.content.get(index) if index is not None else None
        if part is None or not self._takes(part, part_kind(fields)):
            part = self._new_part(index, part_kind(fields))
        part.announce(fields)

    def _new_part(self, index: int | None, kind: str) -> Part:
        if index is None or index in self.content:
            index = max(self.content, default=-1) + 1
        part = self.content[index] = Part(index, kind)
        return part

    def _summary_part(self, index: int | None) -> Part:
        """A section of a reasoning summary; the first where the server does not number them."""
        part = self.summary.get(index or 0)
        if part is None:
            part = self.summary[index or 0] = Part(index or 0, "summary_text")
        return part

    def completed(self, item: JsonObject) -> JsonObject:
        """The item that `output_item.done` gave, with what it lacks put in from earlier events."""
        result = dict(item)
        for field in _NAMING_FIELDS:
            if result.get(field) in (None, "") and (value := self.announced.get(field)):
                result[field] = value
        for field in _STREAMED_FIELDS.get(self.kind, ()):
            if is_empty(result.get(field)):
                self._catch_up()
                if not is_empty(value := self._streamed(field)):
                    result[field] = value
        return _with_call_id(result)

    def assembled(self, entry: JsonObject | None, status: str) -> JsonObject | None:
        """The item, where `output_item.done` never came; None where what did come makes no item.

        Args:
            entry: the item in the terminal response, if it is there.
            status: of the item, where there is no entry.
        """
        self._catch_up()
        fields = {field: self._streamed(field) for field in _STREAMED_FIELDS.get(self.kind, ())}
        streamed = {field: value for field, value in fields.items() if not is_empty(value)}
        if not is_json(streamed.get("arguments", "")):
            # Cut short: a call must not run with half of its arguments.
            streamed.pop("arguments", None)
            self.arguments = Text()
        if entry is not None:
            result = self.completed(entry)
            for field, value in streamed.items():
                # The entry counts less than the deltas, unless it says the same and goes on.
                if not text_of(result.get(field)).startswith(text_of(value)):
                    result[field] = value
            return result
        if (fields and not streamed) or (self.kind in CALLS and not self.announced.get("name")):
            return None
        result = {"type": self.kind, **self.announced, **streamed, "status": status}
        if self.kind == "message":
            result.setdefault("role", "assistant")
        elif self.kind == "reasoning":
            # What an announcement holds of it can be a part.
            result.pop("encrypted_content", None)
            result.setdefault("summary", [])
        return _with_call_id(result)

    def close(self, item: JsonObject) -> None:
        """Take the item as it is given out; what led to it is let go."""
        self.item = item
        self.arguments = self.input = Text()
        self.content.clear()
        self.summary.clear()
        self._unread.clear()

    def repeats(self, item: JsonObject) -> bool:
        """Whether an item says what this closed slot has given out, under whatever id."""
        return self.item is not None and all(
            is_empty(item.get(field)) or self.item.get(field) == item[field]
            for field in ("type", "name", *_PAYLOAD_FIELDS)
        )

    def has_id_of(self, item: JsonObject) -> bool | None:
        """Whether this closed slot gave out an item of the same type and id; None where ids are missing."""
        if self.item is None or self.kind != kind_of_item(item):
            return False
        for field in ("call_id", "id"):
            if self.item.get(field) and item.get(field):
                return self.item[field] == item[field]
        return None

    def contradicts(self, item: JsonObject, *fields: str) -> bool:
        """Whether one of the fields is given for both, and differs; or the types differ."""
        known = self.announced if self.item is None else self.item
        return self.kind != kind_of_item(item) or any(
            known.get(field) and item.get(field) and known[field] != item[field] for field in fields
        )

    def _takes(self, part: Part, kind: str) -> bool:
        # A reasoning item has parts of one sort, which servers name in several ways.
        return part.kind == kind or self.kind == "reasoning"

    def _streamed(self, field: str) -> Any:
        """What the events before the item's end amount to, for one field."""
        match field:
            case "arguments":
                streamed = self.arguments.streamed
                # `{}` can be announced for arguments that then come from their start.
                return streamed if is_json(streamed) else self.arguments.value
            case "input":
                return self.input.value or _unwrapped(self.arguments.value)
            case "content":
                return parts_data(self.content)
            case _:
                return parts_data(self.summary)


def kind_of_item(item: JsonObject) -> str:
    kind = item.get("type")
    if kind is None and "role" in item:
        return "message"
    return kind if isinstance(kind, str) else ""


def _with_call_id(item: JsonObject) -> JsonObject:
    # Output is paired with its call by this id alone, so a call without one cannot be answered.
    # The oldest form of a local shell call is answered under its `id`.
    kind = kind_of_item(item)
    is_nameless_shell = kind == "local_shell_call" and not item.get("id")
    if (is_nameless_shell or kind in CALLS) and item.get("call_id") in (None, ""):
        item["call_id"] = new_call_id()
    return item


def _unwrapped(arguments: str) -> str:
    """The text of a freeform call that a Chat bridge passes on as the arguments of a function."""
    texts = map(json_object(arguments).get, ("input", "content"))
    return next((text for text in texts if isinstance(text, str)), "")
