"""A wire for servers with an API of their own: `wire_api = "plain"`.

A request has `messages` with the fields `role` and `text`, `call` or `result`. The answer is a stream
of server-sent events: `{"text": …}`, `{"call": {"id": …, "name": …, "arguments": …}}`, and at the end
`{"tokens": [INPUT, OUTPUT]}`, or `{"refused": REASON}`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from codex_py.api.wires import (
    Completed,
    Dialogue,
    DialogueCall,
    DialogueText,
    DialogueTurn,
    FunctionCall,
    InputMessage,
    Message,
    ModelError,
    OutputItemDone,
    ProfiledWire,
    Prompt,
    ResponseEvent,
    StreamError,
    Usage,
    encode_json,
    function_specs,
)


class PlainWire(ProfiledWire):
    path = "/plain"

    @cached_property
    def _dialogue(self) -> Dialogue:
        return Dialogue(self.maker)

    def body(self, prompt: Prompt) -> bytes:
        turns = self._dialogue.of(prompt.input, prompt.model, images=False)
        system = {"role": "system", "text": prompt.instructions}
        messages = [message for turn in turns for message in told(turn)]
        request = {
            "model": prompt.model,
            "tools": [spec.described() for spec in function_specs(prompt.tools)],
            "messages": [system, *messages],
        }
        return encode_json(request)

    def decoder(self, prompt: Prompt) -> "PlainDecoder":
        return PlainDecoder()


def told(turn: DialogueTurn) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of a turn."""
    if isinstance(turn, InputMessage):
        yield {"role": turn.role, "text": turn.text}
        return
    for block in turn.blocks:
        match block:
            case DialogueText(text):
                yield {"role": "model", "text": text}
            case DialogueCall(call_id, name, arguments):
                call = {"id": call_id, "name": name, "arguments": arguments}
                yield {"role": "model", "call": call}
            case _:
                pass
    for result in turn.complete_results():
        answer = {"id": result.call.call_id, "text": result.text}
        yield {"role": "tool", "result": answer}


class PlainDecoder:
    """Decodes one answer."""

    finished = False

    def __init__(self) -> None:
        self._items = 0

    def feed(self, data: str, name: str = "message") -> Sequence[ResponseEvent]:
        match event_of(data):
            case {"text": str(text)}:
                item = Message(role="assistant", content=text)
            case {
                "call": {"id": str(call), "name": str(tool), "arguments": str(given)}
            }:
                item = FunctionCall(call_id=call, name=tool, arguments=given)
            case {"tokens": [int(tokens_in), int(tokens_out)]}:
                self.finished = True
                return [Completed(Usage(tokens_in, output_tokens=tokens_out))]
            case {"refused": reason}:
                raise ModelError(f"the server refused: {reason}", code="refused")
            case _:
                raise StreamError(f"the server sent {data!r}", code="bad_event")
        self._items += 1
        return [OutputItemDone(self._items - 1, item)]

    def end(self) -> Sequence[ResponseEvent]:
        if self.finished:
            return ()
        raise StreamError("the answer did not end", code="disconnected")


def event_of(data: str) -> Any:
    """Parse the data of an event. None if it is no JSON."""
    try:
        return json.loads(data)
    except ValueError:
        return None
