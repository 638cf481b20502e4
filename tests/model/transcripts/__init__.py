"""Exchanges with servers that others have written, as they were on the wire: a file for each server and API.

`WIRE_PEERS=FOLDER python -m tests.model.transcripts.record` writes them anew; read the difference before you commit it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codex_py.model.anthropic.wire import AnthropicWire
from codex_py.model.chat.wire import ChatWire
from codex_py.model.provider_data import Maker
from codex_py.model.responses.wire import ResponsesWire
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.stream import OutputTextDelta as OutputTextDelta
from codex_py.protocol.stream import Prompt, Wire
from codex_py.protocol.stream import ReasoningDelta as ReasoningDelta
from codex_py.protocol.tools import FreeformSpec, FunctionSpec

FOLDER = Path(__file__).parent
WIRES = {"responses": ResponsesWire, "chat": ChatWire, "anthropic": AnthropicWire}
_TEXT: dict[str, Any] = {"type": "string"}
_TOOLS = (
    FunctionSpec(
        "shell", "Run a command.", {"type": "object", "properties": {"cmd": _TEXT}}
    ),
    FreeformSpec("apply_patch", "Change files.", "start: /(.|\\n)+/"),
)


@dataclass(frozen=True)
class Exchange:
    request: dict[str, Any]
    status: int
    content_type: str
    body: list[str]
    """Its lines."""


def prompt(case: str) -> Prompt:
    told = message("user", [input_text(f"case {case}")])
    return Prompt(
        model="m", input=[told], cache_key="t", instructions="Be brief.", tools=_TOOLS
    )


def make_wire(name: str) -> Wire:
    return WIRES[name](maker=Maker("p", "p"))


def read_exchanges(peer: str, wire: str) -> dict[str, Exchange]:
    text = _path(peer, wire).read_text(encoding="utf-8")
    return {case: Exchange(**fields) for case, fields in json.loads(text).items()}


def write_exchanges(peer: str, wire: str, exchanges: dict[str, Exchange]) -> None:
    fields = {case: asdict(exchange) for case, exchange in exchanges.items()}
    text = json.dumps(fields, ensure_ascii=False, indent=1)
    _path(peer, wire).write_text(f"{text}\n", encoding="utf-8")


def _path(peer: str, wire: str) -> Path:
    return FOLDER / f"{peer}-{wire}.json"
