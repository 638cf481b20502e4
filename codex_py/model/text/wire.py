"""Puts tools into the text of another wire's messages, for models that cannot call tools."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from codex_py.model.dialogue import CALLS, OUTPUTS, DialogueCall, call_of
from codex_py.model.provider_data import GrowingHistory, Maker
from codex_py.model.text.decoder import TextToolsDecoder
from codex_py.model.text.format import (
    ANY_TAG,
    FORMAT_REMINDER,
    UNTAGGED,
    call_text,
    result_text,
    session_tag,
    tools_text,
)
from codex_py.protocol.json_fields import JsonObject, objects, text_field
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.stream import ANY_TOOL, Decoder, Prompt, ToolChoice, Wire
from codex_py.protocol.tools import ToolSpec

_CHOICE_TEXTS = {
    "none": "You may not call a tool now.",
    "required": "You must call a tool now.",
}

_REMINDER = encode_json(FORMAT_REMINDER)[1:-1]


class TextToolsWire:
    """A `Wire` around another wire, which then carries no tools and no calls."""

    def __init__(
        self,
        wire: Wire,
        *,
        session_id: str,
        maker: Maker | None = None,
        replayed: bool = False,
    ) -> None:
        """`replayed`: True if the answers were recorded in another session, with another tag."""
        self._wire = wire
        self._tag = session_tag(session_id)
        self._read_tag = ANY_TAG if replayed else self._tag
        self._reminder = _REMINDER.replace(UNTAGGED.encode(), self._tag.encode())
        self._maker = maker or Maker()
        self.path = wire.path
        self._history = GrowingHistory()
        self._items: list[EncodedItem] = []
        self._open: list[tuple[str, str]] = []
        """The id and the tool of each call that has no result yet."""

    @property
    def headers(self) -> Mapping[str, str]:
        return self._wire.headers

    def body(self, prompt: Prompt) -> bytes:
        return self._wire.body(self._with_text_tools(prompt))

    def decoder(self, prompt: Prompt) -> Decoder:
        without_tools = replace(prompt, tools=(), tool_choice=ANY_TOOL)
        inner = self._wire.decoder(without_tools)
        return TextToolsDecoder(inner, prompt, self._maker, self._read_tag)

    def _with_text_tools(self, prompt: Prompt) -> Prompt:
        instructions = [prompt.instructions]
        if prompt.tools:
            instructions.append(tools_text(prompt.tools, self._tag))
            instructions += _choice_texts(prompt.tool_choice)
        return replace(
            prompt,
            instructions="\n\n".join(filter(None, instructions)),
            input=self._translated(prompt),
            tools=(),
            tool_choice=ANY_TOOL,
            parallel_tool_calls=True,
        )

    def _translated(self, prompt: Prompt) -> Sequence[EncodedItem]:
        """The history with calls and results as messages. Each item is translated once."""
        is_same, new = self._history.grow(prompt.input)
        if not is_same:
            self._items = []
            self._open = []
        specs = {spec.name: spec for spec in prompt.tools}
        for item in new:
            if b"_call" not in item:
                self._items.append(self._without_tag(item))
                continue
            data: JsonObject = json.loads(item)
            if data.get("type") in CALLS:
                call = call_of(data, {})
                self._open.append((call.call_id, call.name))
                self._items.append(self._call(call, specs.get(call.name)))
            elif data.get("type") in OUTPUTS:
                self._items += self._result(data)
            else:
                self._items.append(self._without_tag(item))
        return list(self._items)

    def _call(self, call: DialogueCall, spec: ToolSpec | None) -> EncodedItem:
        """The message with a call. `spec`: the called tool, if the request offers it."""
        text = call_text(
            call.name,
            call.arguments,
            self._tag,
            is_freeform=call.is_freeform,
            spec=spec,
        )
        part = {"type": "output_text", "text": text}
        said = {"type": "message", "role": "assistant", "content": [part]}
        return EncodedItem(encode_json(said))

    def _without_tag(self, item: EncodedItem) -> EncodedItem:
        """Replace the tag in an item that the model may quote, except in the format reminder.

        A command can compute the tag, because it knows the id of the session.
        """
        if b'"role":"assistant"' in item:
            return item
        text = item.replace(self._tag.encode(), UNTAGGED.encode())
        return EncodedItem(text.replace(_REMINDER, self._reminder))

    def _result(self, data: JsonObject) -> Sequence[EncodedItem]:
        """The message with a result; empty if it answers no open call."""
        call_id = str(data.get("call_id") or data.get("id"))
        output = data.get("output")
        answered = [call for call in self._open if call[0] == call_id]
        if not answered:
            return []
        self._open.remove(answered[0])
        _, name = answered[0]
        parts = objects(output)
        if isinstance(output, str):
            text = output
        else:
            texts = [text_field(part, "text") for part in parts]
            text = "\n".join(filter(None, texts))
        text = text.replace(self._tag, UNTAGGED)
        images = [part for part in parts if part.get("type") == "input_image"]
        told = input_text(result_text(name, call_id, text))
        return [message("user", [told, *images])]


def _choice_texts(choice: ToolChoice) -> list[str]:
    """The sentences that tell the model which tools it may call now."""
    texts: list[str] = []
    if choice.mode in _CHOICE_TEXTS:
        texts.append(_CHOICE_TEXTS[choice.mode])
    if choice.names:
        texts.append(f"Call no other tool than: {', '.join(choice.names)}.")
    return texts
