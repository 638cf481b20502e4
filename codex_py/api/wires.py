"""API formats of models that a package adds, and what they are made of.

The package names each wire in its `pyproject.toml`:

    [project.entry-points."codex_py.wires"]
    plain = "codex_py_plain:PlainWire"

It is used where a provider of the configuration has `wire_api = "plain"`. The value is called with
the keywords `deltas`, `maker` and `profile`, as the constructor of `ProfiledWire` is, and returns a
`Wire`. A wire does no I/O: it makes the body of a request, and decodes the answer, which is a stream
of server-sent events. The history is items of the Responses API, as JSON in UTF-8.

A decoder raises a `StreamError` if another attempt may succeed, and a `ModelError` if not. Any other
exception is a bug of the wire, and so is a field of a wrong type in what it returns: the turn ends
with an error that names the wire, and the wrong event is dropped.

A `Dialogue` reads the history for wires that group it in another way. It is a sequence of
`DialogueTurn`s: an `InputMessage` to the model, or a `ModelTurn` with the blocks that the model wrote
and with one result for each call. `function_specs` are the tools for a server that knows functions
alone.
"""

from codex_py.errors import ModelError, StreamError
from codex_py.model.dialogue import (
    Dialogue,
    DialogueCall,
    DialogueResult,
    DialogueText,
    InputMessage,
    ModelTurn,
)
from codex_py.model.dialogue import Turn as DialogueTurn
from codex_py.model.freeform import function_specs
from codex_py.model.profile import ProfiledWire
from codex_py.protocol.items import (
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    ResponseItem,
)
from codex_py.protocol.messages import encode_json
from codex_py.protocol.prompts import user_prompt
from codex_py.protocol.stream import (
    Completed,
    Decoder,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    Usage,
    Wire,
)

__all__ = [
    "Completed",
    "Decoder",
    "Dialogue",
    "DialogueCall",
    "DialogueResult",
    "DialogueText",
    "DialogueTurn",
    "FunctionCall",
    "FunctionCallOutput",
    "InputMessage",
    "Message",
    "ModelError",
    "ModelTurn",
    "OutputItemAdded",
    "OutputItemDone",
    "OutputTextDelta",
    "ProfiledWire",
    "Prompt",
    "Reasoning",
    "ResponseEvent",
    "ResponseItem",
    "StreamError",
    "Usage",
    "Wire",
    "encode_json",
    "function_specs",
    "user_prompt",
]
