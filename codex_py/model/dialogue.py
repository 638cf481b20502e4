"""A history as a dialogue in turns: the model's texts and calls, the results of the calls, and
messages to the model.

It is for wires that group messages differently from the items of the Responses API. For any history,
a dialogue keeps the rules that these wires have in common: each call has exactly one result, in the turn after it
and in the order of the calls; a result without a call is left out; a message between a call and its
result comes after the result.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from codex_py.model.call_names import CallIds, legal_name
from codex_py.model.provider_data import GrowingHistory, Maker, without_images
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, object_field, objects, text_field
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import message_texts
from codex_py.protocol.tools import called_tool, read_coded_text

CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
OUTPUTS = {"function_call_output", "custom_tool_call_output"}
MISSING_RESULT = "[ERROR:missing_result] the call has no result"
_NO_OUTPUT: JsonObject = {"type": "input_text", "text": "(no output)"}


@frozen
class Thought:
    """A reasoning item."""

    text: str
    data: Mapping[str, Any] | None
    """The provider's data; None if another model made the item."""


@frozen
class DialogueText:
    text: str


@frozen
class DialogueCall:
    call_id: str
    """An id that the provider accepts."""
    name: str
    """The flat name of the tool, such as `mcp__server__tool`; legal even if the model invented
    it."""
    arguments: str
    """The arguments as JSON, or the raw input of a freeform tool."""
    is_freeform: bool
    data: Mapping[str, Any]
    """The provider's data; empty if another model made the call."""


@frozen
class Opaque:
    """Something that only its provider understands, such as a search that it ran."""

    data: Mapping[str, Any]


@frozen
class DialogueResult:
    call: DialogueCall
    parts: Sequence[JsonObject]
    """`input_text` and `input_image` parts, as in the Responses API; at least one."""

    @property
    def text(self) -> str:
        return "\n".join(message_texts(list(self.parts)))

    @property
    def images(self) -> Sequence[JsonObject]:
        return [part for part in self.parts if part.get("type") == "input_image"]

    @property
    def failed(self) -> bool:
        code, _ = read_coded_text(self.text)
        return code is not None


Block: TypeAlias = Thought | DialogueText | DialogueCall | Opaque


@dataclass(slots=True)
class ModelTurn:
    """The texts and calls of a model between two messages to it, with the calls' results."""

    blocks: list[Block] = field(default_factory=list[Block])
    results: list[DialogueResult | None] = field(
        default_factory=list[DialogueResult | None]
    )
    """The result of each call, in the order of the calls; None if it has not come yet."""
    call_ids: list[str] = field(default_factory=list[str])
    """The ids of the calls in the history."""
    encoded: Any = None
    """The wire's cached translation; None after a change."""

    @property
    def calls(self) -> list[DialogueCall]:
        return [block for block in self.blocks if isinstance(block, DialogueCall)]

    def complete_results(self) -> list[DialogueResult]:
        """The result of each call; `MISSING_RESULT` stands in for a missing one."""
        missing = ({"type": "input_text", "text": MISSING_RESULT},)
        pairs = zip(self.calls, self.results, strict=True)
        return [result or DialogueResult(call, missing) for call, result in pairs]


@dataclass(slots=True)
class InputMessage:
    """A message to the model: the role is `user`, `developer` or `system`."""

    role: str
    parts: Sequence[JsonObject]
    """`input_text` and `input_image` parts; at least one."""
    encoded: Any = None

    @property
    def text(self) -> str:
        return "\n\n".join(message_texts(list(self.parts)))


Turn: TypeAlias = ModelTurn | InputMessage


def split_system_texts(turns: Sequence[Turn]) -> tuple[list[str], Sequence[Turn]]:
    """Split off the messages before the first turn of the user or the model, as texts."""
    texts: list[str] = []
    for turn in turns:
        if not isinstance(turn, InputMessage) or turn.role == "user":
            break
        texts.append(turn.text)
    return texts, turns[len(texts) :]


class Dialogue:
    """The dialogue of one thread.

    It is kept between requests, so that only new items have to be read.
    """

    def __init__(self, maker: Maker, tool_ids: str = "verbatim") -> None:
        """
        Args:
            maker: the provider that gets the dialogue.
            tool_ids: the call ids that the provider accepts, see `Profile`.
        """
        self._maker = maker
        self._tool_ids = tool_ids
        self._model = ""
        self._images = True
        self._history = GrowingHistory()
        self._clear()

    def of(
        self,
        items: Sequence[EncodedItem],
        model: str,
        *,
        images: bool = True,
    ) -> Sequence[Turn]:
        """The turns of a history, for a model of the provider.

        Without `images`, a note replaces each image.
        """
        is_continued, new = self._history.grow(items, (model, images))
        if not is_continued:
            # It is another history, or for another model: read it from its beginning.
            self._model = model
            self._images = images
            self._clear()
        for item in new:
            self._take(json.loads(item))
        return [*self._turns, *self._waiting]

    def _clear(self) -> None:
        self._turns: list[Turn] = []
        self._waiting: list[InputMessage] = []
        """Messages that came while calls were open: they follow the results."""
        self._ids = CallIds(self._tool_ids)

    def _take(self, item: JsonObject) -> None:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") != "assistant":
            parts = self._parts(item.get("content"))
            if not parts:
                return
            told = InputMessage(str(item.get("role")), parts)
            if self._open_turn() is None:
                self._turns.append(told)
            else:
                self._waiting.append(told)
        elif kind in OUTPUTS:
            self._answer(item)
        else:
            block = self._block(kind, item)
            if block is not None:
                self._add(block)

    def _add(self, block: Block) -> None:
        turn = self._model_turn()
        turn.encoded = None
        if isinstance(block, DialogueCall):
            turn.call_ids.append(block.call_id)
            turn.results.append(None)
            block = replace(block, call_id=self._ids.fitting(block.call_id))
        turn.blocks.append(block)

    def _answer(self, item: JsonObject) -> None:
        """Add a result to its call. A result without an open call is left out."""
        turn = self._open_turn()
        if turn is None:
            return
        # The oldest form of a local shell call is answered under its `id`.
        call_id = str(item.get("call_id") or item.get("id"))
        for index, call in enumerate(turn.calls):
            if turn.call_ids[index] == call_id and turn.results[index] is None:
                parts = self._parts(item.get("output")) or [_NO_OUTPUT]
                turn.results[index] = DialogueResult(call, parts)
                turn.encoded = None
                if None not in turn.results:
                    self._release_waiting()
                return

    def _release_waiting(self) -> None:
        self._turns += self._waiting
        self._waiting = []

    def _open_turn(self) -> ModelTurn | None:
        """The last turn, if it has calls without a result."""
        last = self._turns[-1] if self._turns else None
        if isinstance(last, ModelTurn) and None in last.results:
            return last
        return None

    def _model_turn(self) -> ModelTurn:
        """The turn that the model's next item belongs to.

        A new one begins if all calls of the last one have results, or if a message came.
        """
        last = self._turns[-1] if self._turns else None
        if isinstance(last, ModelTurn) and not self._waiting:
            is_answered = bool(last.results) and None not in last.results
            if not is_answered:
                return last
        # If messages wait, the calls before them get no results any more: the model has gone on.
        self._release_waiting()
        turn = ModelTurn()
        self._turns.append(turn)
        return turn

    def _parts(self, content: object) -> Sequence[JsonObject]:
        """The parts of a message or a result that the model can take."""
        parts = list(_parts(content))
        if self._images:
            return parts
        return without_images(parts)

    def _block(self, kind: str, item: JsonObject) -> Block | None:
        """An item of the model as a block; None if it is blank, or another provider's own."""
        data = self._maker.own_data(item, self._model)
        if kind in CALLS:
            return call_of(item, data or {})
        match kind:
            case "message":
                text = "".join(_said(item.get("content")))
                if text:
                    return DialogueText(text)
                return None
            case "reasoning":
                summary = "\n\n".join(_said(item.get("summary")))
                text = summary or "\n\n".join(_said(item.get("content")))
                return Thought(text, data)
            case _ if data:
                return Opaque(data)
            case _:
                return None


def call_of(item: JsonObject, data: JsonObject) -> DialogueCall:
    """Convert an item of one of the types `CALLS` to a call. `data`: see `DialogueCall`."""
    kind = item["type"]
    call_id = str(item.get("call_id") or item.get("id"))
    if kind == "local_shell_call":
        arguments = json.dumps(_shell_arguments(object_field(item, "action")))
        return DialogueCall(call_id, "shell", arguments, is_freeform=False, data=data)
    called = called_tool(item.get("namespace"), str(item.get("name")))
    name = legal_name(called)
    is_freeform = kind == "custom_tool_call"
    text = str(item.get("input" if is_freeform else "arguments") or "")
    return DialogueCall(call_id, name, text, is_freeform, data)


def _shell_arguments(action: JsonObject) -> JsonObject:
    """The arguments of the tool `shell` for the action of a local shell call."""
    names = {
        "command": "command",
        "workdir": "working_directory",
        "timeout_ms": "timeout_ms",
    }
    values = {name: action.get(key) for name, key in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _said(parts: object) -> Iterator[str]:
    """The texts of a model's message, refusals included, or of a reasoning item."""
    if isinstance(parts, str):
        yield parts
    for part in objects(parts):
        text = text_field(part, "text") or text_field(part, "refusal")
        if text:
            yield text


def _parts(content: object) -> Iterator[JsonObject]:
    """Convert content to text and image parts; a note names each part of another kind."""
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    for part in objects(content):
        kind = text_field(part, "type")
        if kind in {"input_text", "output_text", "text"}:
            text = text_field(part, "text")
            if text:
                yield {"type": "input_text", "text": text}
        elif kind == "input_image" and text_field(part, "image_url"):
            yield part
        else:
            yield {"type": "input_text", "text": f"({kind} left out)"}
