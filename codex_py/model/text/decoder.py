"""Finds the calls in the text of a response, and shows the rest as it streams."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from html import unescape

from codex_py.errors import ModelError
from codex_py.model.provider_data import Maker
from codex_py.model.text.format import TextCall, read_message
from codex_py.protocol import stream
from codex_py.protocol.ids import new_call_id
from codex_py.protocol.items import Message, ResponseItem, parse_item
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.prompts import message_texts

_PLACES = 1_000
"""The number of indexes that are reserved for the calls in one message."""
_SPACING = re.compile(r"\\[nrt]|[\\\s]")
"""Matches white space and escapes, of which JSON in a result has more than the text that quotes
it."""
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_MARKS = ("<tool", "<function", "<invoke", "<|", "<｜", "[TOOL_CALLS]")
"""The beginnings of lines with markup. Nothing after one is shown while it streams; text after it
is shown with the complete item."""


class TextToolsDecoder:
    """A `Decoder` around the decoder of the wire that carries the text."""

    def __init__(
        self,
        inner: stream.Decoder,
        prompt: stream.Prompt,
        maker: Maker,
        tag: str,
    ) -> None:
        """`tag`: see `read_message`."""
        self._inner = inner
        self._tag = tag
        self._history = prompt.input
        self._mistake: str | None = None
        self._specs = {spec.name: spec for spec in prompt.tools}
        self._maker = maker
        self._line = ""
        """The end of the text that is not shown yet: the beginning of a line that may be markup."""
        self._is_hidden = False
        """True after the beginning of markup: the rest of the message is not shown."""
        self._is_in_line = False
        """True if the beginning of the current line was shown."""
        self._held: list[stream.ResponseEvent] = []
        """Messages with calls, held back until the end of the response. Their call ids are
        generated here, so a call would run twice if the response broke off and was repeated."""

    @property
    def finished(self) -> bool:
        return self._inner.finished

    def feed(
        self,
        data: str,
        name: str = "message",
    ) -> Sequence[stream.ResponseEvent]:
        return self._read(self._inner.feed(data, name))

    def end(self) -> Sequence[stream.ResponseEvent]:
        return self._read(self._inner.end())

    def _read(
        self, events: Sequence[stream.ResponseEvent]
    ) -> Sequence[stream.ResponseEvent]:
        """Convert events of the text's decoder."""
        out: list[stream.ResponseEvent] = []
        for event in events:
            match event:
                case stream.OutputTextDelta(index, delta):
                    shown = self._shown(delta)
                    if shown:
                        out.append(stream.OutputTextDelta(index * _PLACES, shown))
                case stream.OutputItemDone(index, Message(role="assistant") as item):
                    out += self._message(index * _PLACES, item)
                case stream.OutputItemDone(index, item):
                    out.append(stream.OutputItemDone(index * _PLACES, item))
                case stream.Completed():
                    out += [*self._held, replace(event, mistake=self._mistake)]
                case _:
                    out.append(event)
        return out

    def _shown(self, delta: str) -> str:
        """The part of the text so far that is certainly not markup."""
        shown = ""
        for piece in delta.splitlines(keepends=True):
            if self._is_hidden:
                break
            self._line += piece
            may_be_markup = any(mark.startswith(self._line) for mark in _MARKS)
            if self._is_in_line:
                shown += self._take_line()
            elif self._line.startswith(_MARKS):
                self._is_hidden = True
            elif not may_be_markup:
                shown += self._take_line()
        return shown

    def _take_line(self) -> str:
        line = self._line
        self._line = ""
        self._is_in_line = not line.endswith("\n")
        return line

    def _message(self, index: int, item: Message) -> list[stream.ResponseEvent]:
        """The events for a complete message; those of one with calls wait for `Completed`."""
        self._line = ""
        self._is_hidden = False
        self._is_in_line = False
        is_complete = item.status != "incomplete" and not item.refusal
        read = None
        if is_complete and self._specs:
            read = read_message(item.text, self._specs, self._tag, self._is_quoted)
            self._mistake = self._mistake or read.problem
        if read is None or not read.calls:
            return [stream.OutputItemDone(index, item)]
        if len(read.calls) >= _PLACES:
            raise ModelError(
                f"the message has more than {_PLACES - 1} calls",
                code="response_too_large",
            )
        items = [self._call_item(call) for call in read.calls]
        if read.text:
            items.insert(0, self._message_item(read.text))
        for number, each in enumerate(items, index):
            self._held.append(stream.OutputItemDone(number, each))
        return []

    def _message_item(self, text: str) -> ResponseItem:
        part: JsonObject = {"type": "output_text", "text": text, "annotations": []}
        fields: JsonObject = {"type": "message", "role": "assistant", "content": [part]}
        return parse_item(self._maker.marked(fields))

    def _call_item(self, call: TextCall) -> ResponseItem:
        kind = "function_call"
        field = "arguments"
        if call.is_freeform:
            kind = "custom_tool_call"
            field = "input"
        fields = {
            "type": kind,
            "call_id": new_call_id(),
            "name": call.name,
            field: call.body,
        }
        return parse_item(self._maker.marked(fields))

    def _is_quoted(self, block: str) -> bool:
        """True if the model has read all lines of the block.

        The lines are looked up one by one, because a result may have line numbers or the signs of
        a diff between them.
        """
        return all(_plain(line) in self._told for line in block.splitlines())

    @cached_property
    def _told(self) -> str:
        """The texts of the history that the model did not write."""
        texts: list[str] = []
        for item in self._history:
            data: JsonObject = json.loads(item)
            if data.get("role") in {"user", "developer", "system"}:
                texts += message_texts(data.get("content"))
            texts += message_texts(data.get("output"))
        return _plain("\n".join(texts))


def _plain(text: str) -> str:
    """A text without white space and the escapes of JSON and HTML, which a quote may leave out."""
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return _SPACING.sub("", unescape(text))
