"""Requests to the model that an extension sends itself, and the texts and items in them.

`counted_stream` connects to the model of a session, and `model_in_use` names the provider and the model
of its next request, which may be those of a fallback. Each call of the stream sends a `Prompt` and
yields `ResponseEvent`s, of which the last is `Completed`; a stream that ends in another way raises a
`ModelError`. The items of a session's history are JSON in UTF-8, which `decode_json` reads.
"""

from codex_py.app.counted_requests import counted_stream
from codex_py.app.features.recovery import model_in_use
from codex_py.errors import ModelError
from codex_py.instructions import instruction_text
from codex_py.protocol.items import Message
from codex_py.protocol.messages import decode_json, input_text, message
from codex_py.protocol.prompts import user_prompt
from codex_py.protocol.stream import (
    Completed,
    ModelStream,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
)
from codex_py.tools.truncate import truncate_middle

__all__ = [
    "Completed",
    "Message",
    "ModelError",
    "ModelStream",
    "OutputItemDone",
    "Prompt",
    "ResponseEvent",
    "Usage",
    "counted_stream",
    "decode_json",
    "input_text",
    "instruction_text",
    "message",
    "model_in_use",
    "truncate_middle",
    "user_prompt",
]
