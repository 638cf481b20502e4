"""The items of the Responses API: messages, calls and their outputs.

One representation serves the wire, the history, the session files and the router. Unknown items and
unknown fields are sent back unchanged; an item of a known type that lacks a required field is an
error. Source: the Responses API reference, `input` and `output` items.

`parse_item` checks the JSON against the annotations of the fields.
"""

from dataclasses import field, fields
from typing import Any, Literal, TypeAlias, cast, get_args

from codex_py.errors import MalformedItem
from codex_py.protocol.checked import REQUIRED, WrongValue, checked, checked_fields
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.messages import EncodedItem, encode_json

Parts: TypeAlias = list[JsonObject]
"""`{"type": "output_text", "text": …}` and the like; `parse_item` has checked the texts."""

_TEXT_OF_PART = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
"""The field with the text, by the type of the content part."""


@frozen(kw_only=True)
class _Item:
    type: str
    id: str | None = None
    """The server's id of the item. A call and its output are paired by `call_id` instead."""
    status: str | None = None
    source: JsonObject = field(default_factory=dict[str, Any], repr=False)
    """The item as received, unknown fields included; empty for an item that the program made."""

    def encoded(self) -> EncodedItem:
        """The item as compact JSON: as it was received, or with all fields that are not None."""
        if self.source:
            return EncodedItem(encode_json(self.source))
        given: JsonObject = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "source" and value is not None:
                given[each.name] = value
        return EncodedItem(encode_json(given))


@frozen(kw_only=True)
class Message(_Item):
    type: str = "message"
    role: str
    content: str | Parts | None = None
    phase: str | None = None
    """`commentary` or `final_answer`. It must be sent back if the server gave it."""

    @property
    def text(self) -> str:
        """The text of all parts, without images and refusals."""
        content = self.content
        if not isinstance(content, list):
            return content or ""
        kinds = {"input_text", "output_text"}
        parts = [part for part in content if part["type"] in kinds]
        return "".join([part["text"] for part in parts])

    @property
    def refusal(self) -> str:
        """The text of the refusal; empty without a refusal."""
        content = self.content
        if not isinstance(content, list):
            return ""
        parts = [part for part in content if part["type"] == "refusal"]
        return "".join([part["refusal"] for part in parts])


@frozen(kw_only=True)
class ReasoningText:
    type: str = ""
    text: str


@frozen(kw_only=True)
class Reasoning(_Item):
    type: str = "reasoning"
    summary: list[ReasoningText] = field(default_factory=list[ReasoningText])
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None


@frozen(kw_only=True)
class FunctionCall(_Item):
    type: str = "function_call"
    call_id: str
    name: str
    arguments: str
    """JSON as the model wrote it; it may be invalid."""
    namespace: str | None = None


@frozen(kw_only=True)
class FunctionCallOutput(_Item):
    type: str = "function_call_output"
    call_id: str
    output: str | Parts


@frozen(kw_only=True)
class CustomToolCall(_Item):
    type: str = "custom_tool_call"
    call_id: str
    name: str
    input: str
    """Raw text, not JSON."""
    namespace: str | None = None


@frozen(kw_only=True)
class CustomToolCallOutput(_Item):
    type: str = "custom_tool_call_output"
    call_id: str
    output: str | Parts


@frozen(kw_only=True)
class LocalShellAction:
    type: Literal["exec"] = "exec"
    command: list[str]
    timeout_ms: int | None = None
    working_directory: str | None = None
    env: dict[str, str] | None = None
    user: str | None = None


@frozen(kw_only=True)
class LocalShellCall(_Item):
    type: str = "local_shell_call"
    call_id: str | None = None
    """The call's id; None in the oldest form, where the output carries the `id` of the item."""
    action: LocalShellAction


@frozen(kw_only=True)
class WebSearchCall(_Item):
    """A search that the server ran. The history keeps it; it has no output."""

    type: str = "web_search_call"
    action: JsonObject | None = None


@frozen(kw_only=True)
class Compaction(_Item):
    """History that the server has compacted into an opaque text."""

    type: str = "compaction"
    encrypted_content: str


@frozen(kw_only=True)
class OtherItem(_Item):
    """An item of an unknown type; it is sent back unchanged."""


ResponseItem: TypeAlias = (
    Message
    | Reasoning
    | FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | CustomToolCallOutput
    | LocalShellCall
    | WebSearchCall
    | Compaction
    | OtherItem
)
OutputItem: TypeAlias = FunctionCallOutput | CustomToolCallOutput

_CLASSES: dict[object, type[ResponseItem]] = {
    each.__dataclass_fields__["type"].default: each for each in get_args(ResponseItem)
}
"""The classes by the `type` of their items."""
_CLASSES["compaction_summary"] = Compaction


def parse_item(data: object) -> ResponseItem:
    """Parse one JSON value, as `decode_json` returns it.

    Raises:
        MalformedItem: the value is not an object with a `type`, or an item of a known type has a
            field that is missing or of the wrong type. The message names the field.
    """
    item: JsonObject = {}
    if isinstance(data, dict):
        item = cast("JsonObject", data)
    kind = item.get("type")
    if kind is None and item.get("role") is not None:
        # The API's short form of a message has no type.
        kind = "message"
        item = {**item, "type": kind}
    item_class: type[ResponseItem] = OtherItem
    if isinstance(kind, str):
        item_class = _CLASSES.get(kind, OtherItem)
    try:
        values = checked_fields(item_class, item)
        if item_class is not Reasoning:
            _check_parts(values.get("content"), "content")
            _check_parts(values.get("output"), "output")
    except WrongValue as error:
        field_name = ".".join(error.path)
        raise MalformedItem(
            f"the provider sent a malformed item: field {field_name!r} of "
            f"{kind or 'an item without a type'}: {error.reason}"
        ) from error
    return item_class(**values, source=item)


def _check_parts(parts: object, name: str) -> None:
    """Check that each content part of a field has a type, and its text if it is a text.

    Raises:
        WrongValue: it does not.
    """
    if not isinstance(parts, list):
        return
    for at, part in enumerate(cast("Parts", parts)):
        place = (name, str(at))
        kind = _required(part, "type", place)
        if kind in _TEXT_OF_PART:
            _required(part, _TEXT_OF_PART[kind], place)


def _required(
    part: JsonObject,
    name: str,
    place: tuple[str, ...],
) -> str:
    """A text of a part. Raises a `WrongValue` if it is missing or no text."""
    if name not in part:
        raise WrongValue((*place, name), REQUIRED)
    return checked(str, part[name], (*place, name))
