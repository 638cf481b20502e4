"""The items of the Responses API: what the model says, what it calls, and what it is answered.

One representation serves the wire, the history, the session files and the router. Unknown items and
unknown fields go back as they came; an item of a known type that lacks what its type promises is an
error. Source: the Responses API reference, `input` and `output` items.

Importing this module loads pydantic (some 65 ms), so nothing that runs before the first request is on
the wire imports it; what we write ourselves by then is made by `protocol.messages`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, TypeAdapter, ValidationError

from codex_py.errors import MalformedItem
from codex_py.protocol.messages import EncodedItem


class _Wire(BaseModel):
    """Keeps unknown fields, and writes back just the fields that came."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def model_post_init(self, _context: Any, /) -> None:
        # A default tag must be written too: only fields that count as set are.
        self.model_fields_set.add("type")


class InputText(_Wire):
    type: Literal["input_text"] = "input_text"
    text: str


class InputImage(_Wire):
    type: Literal["input_image"] = "input_image"
    image_url: str | None = None
    """A data URL, or an address that the server fetches."""
    detail: str | None = None


class OutputText(_Wire):
    type: Literal["output_text"] = "output_text"
    text: str


class Refusal(_Wire):
    type: Literal["refusal"] = "refusal"
    refusal: str


class OtherPart(_Wire):
    type: str


def _field(value: Any, name: str) -> Any:
    """A field of a decoded JSON object or of a model; None where there is none."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(name)
    return getattr(value, name, None)


def _part_tag(value: Any) -> str:
    tag = _field(value, "type")
    known = {"input_text", "input_image", "output_text", "refusal"}
    return tag if isinstance(tag, str) and tag in known else "other"


ContentPart: TypeAlias = Annotated[
    Annotated[InputText, Tag("input_text")]
    | Annotated[InputImage, Tag("input_image")]
    | Annotated[OutputText, Tag("output_text")]
    | Annotated[Refusal, Tag("refusal")]
    | Annotated[OtherPart, Tag("other")],
    Discriminator(_part_tag),
]


class _Item(_Wire):
    id: str | None = None
    """The server's name of the item; never the key that pairs a call with its output."""
    status: str | None = None

    def encoded(self) -> EncodedItem:
        """The item as compact JSON: the fields that it came with, and no others."""
        return EncodedItem(self.model_dump_json(exclude_unset=True).encode())


class Message(_Item):
    type: Literal["message"] = "message"
    role: str
    content: str | list[ContentPart] | None = None
    phase: str | None = None
    """`commentary` or `final_answer`; must be sent back where it was given."""

    @property
    def text(self) -> str:
        """The text of all parts; images and refusals give none."""
        if isinstance(self.content, list):
            return "".join(p.text for p in self.content if isinstance(p, InputText | OutputText))
        return self.content or ""

    @property
    def refusal(self) -> str:
        """What the model said in refusing, or an empty string."""
        if not isinstance(self.content, list):
            return ""
        return "".join(part.refusal for part in self.content if isinstance(part, Refusal))


class SummaryText(_Wire):
    type: str = "summary_text"
    text: str


class ReasoningContent(_Wire):
    type: str = "reasoning_text"
    text: str


class Reasoning(_Item):
    type: Literal["reasoning"] = "reasoning"
    summary: list[SummaryText] = []
    content: list[ReasoningContent] | None = None
    encrypted_content: str | None = None


class FunctionCall(_Item):
    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it: it need not parse."""
    namespace: str | None = None


class FunctionCallOutput(_Item):
    type: Literal["function_call_output"] = "function_call_output"
    call_id: str
    output: str | list[ContentPart]


class CustomToolCall(_Item):
    type: Literal["custom_tool_call"] = "custom_tool_call"
    call_id: str
    name: str
    input: str
    """Raw text, not JSON."""
    namespace: str | None = None


class CustomToolCallOutput(_Item):
    type: Literal["custom_tool_call_output"] = "custom_tool_call_output"
    call_id: str
    output: str | list[ContentPart]


class LocalShellAction(_Wire):
    type: Literal["exec"] = "exec"
    command: list[str]
    timeout_ms: int | None = None
    working_directory: str | None = None
    env: dict[str, str] | None = None
    user: str | None = None


class LocalShellCall(_Item):
    type: Literal["local_shell_call"] = "local_shell_call"
    call_id: str | None = None
    """Absent in the oldest form, which is answered under the item's `id`."""
    action: LocalShellAction


class WebSearchCall(_Item):
    """A search that the server ran; it is recorded, never answered."""

    type: Literal["web_search_call"] = "web_search_call"
    action: dict[str, Any] | None = None


class Compaction(_Item):
    """History that the server has folded into an opaque text."""

    type: Literal["compaction", "compaction_summary"] = "compaction"
    encrypted_content: str


class OtherItem(_Item):
    """An item of a type that this program does not know; it goes back as it came."""

    type: str


_KNOWN_ITEMS = {
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
    "compaction",
}


def _item_tag(value: Any) -> str:
    tag = _field(value, "type")
    if tag is None and _field(value, "role") is not None:
        # The API's short form of a message has no type.
        return "message"
    if tag == "compaction_summary":
        return "compaction"
    return tag if isinstance(tag, str) and tag in _KNOWN_ITEMS else "other"


ResponseItem: TypeAlias = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[CustomToolCall, Tag("custom_tool_call")]
    | Annotated[CustomToolCallOutput, Tag("custom_tool_call_output")]
    | Annotated[LocalShellCall, Tag("local_shell_call")]
    | Annotated[WebSearchCall, Tag("web_search_call")]
    | Annotated[Compaction, Tag("compaction")]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(_item_tag),
]

_ITEM: TypeAdapter[ResponseItem] = TypeAdapter(ResponseItem)


def parse_item(data: object) -> ResponseItem:
    """Type one JSON value, as `decode_json` gives it.

    Raises:
        MalformedItem: the value is no object with a `type`, or a known type lacks a field or has one
            of the wrong type. The message names the field.
    """
    try:
        return _ITEM.validate_python(data)
    except ValidationError as error:
        raise _malformed(data, error) from error


def _malformed(data: object, error: ValidationError) -> MalformedItem:
    kind = _field(data, "type")
    # Of the branches of a union, the one that got furthest is the one that was meant.
    errors = error.errors(include_url=False, include_input=False)
    first = max(errors, key=lambda e: len(e["loc"]))
    path = ".".join(str(part) for part in first["loc"][1:] if "[" not in str(part))
    where = f"field {path!r} of " if path else ""
    return MalformedItem(
        f"the model's service sent a malformed item: {where}{kind or 'an item without a type'}: "
        f"{first['msg']}"
    )
