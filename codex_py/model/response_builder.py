"""Builds the items and events of a response from its reasoning, text and calls, for APIs that have
no items."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Literal, TypeAlias

from codex_py.errors import ModelError, StreamError
from codex_py.model.failures import MAX_ITEMS, too_many_items
from codex_py.model.freeform import freeform_names, unwrapped_item
from codex_py.model.provider_data import Maker
from codex_py.protocol import stream
from codex_py.protocol.ids import new_call_id
from codex_py.protocol.items import parse_item
from codex_py.protocol.json_fields import JsonObject, well_formed

Kind: TypeAlias = Literal["reasoning", "message", "function_call", "opaque"]


@dataclass(slots=True)
class Piece:
    """Reasoning, text or a call while it arrives."""

    index: int
    kind: Kind
    name: str = ""
    """The name of the tool; empty until the server has sent it."""
    call_id: str = ""
    is_refusal: bool = False
    data: JsonObject = field(default_factory=dict[str, Any])
    """The provider's data, to be sent back with the item."""
    _text: StringIO = field(default_factory=StringIO)
    """The text. A list of deltas, which can be single characters, would take twenty times its
    memory."""
    _last: str = ""
    """The last delta that is not blank."""

    @property
    def text(self) -> str:
        return well_formed(self._text.getvalue())

    @property
    def size(self) -> int:
        """The number of characters in the text."""
        return self._text.tell()

    @property
    def is_nameless(self) -> bool:
        """True for a call whose tool the server has not named."""
        return self.kind == "function_call" and not self.name

    @property
    def may_be_complete(self) -> bool:
        """False if the end of the text shows that it is not a JSON object."""
        return self._last.endswith("}")

    def write(self, delta: str) -> None:
        self._text.write(delta)
        self._last = delta.rstrip() or self._last

    def replace(self, text: str) -> None:
        self._text = StringIO()
        self.write(text)


class ResponseBuilder:
    """Builds the items and events of one response.

    Args:
        deltas: True to emit deltas.
    """

    def __init__(
        self,
        prompt: stream.Prompt,
        maker: Maker,
        *,
        deltas: bool,
    ) -> None:
        self._model = prompt.model
        self._freeform = freeform_names(prompt)
        self._maker = maker
        self._deltas = deltas
        self._is_created = False
        self._events: list[stream.ResponseEvent] = []
        """The events that `take` has not returned yet."""
        self._open: list[Piece] = []
        self._count = 0
        """The number of pieces that have begun."""

    @property
    def pieces(self) -> list[Piece]:
        """The open pieces, in the order in which they began."""
        return self._open

    @property
    def is_empty(self) -> bool:
        """True if the response has no piece yet."""
        return self._count == 0

    def take(self) -> list[stream.ResponseEvent]:
        """The events since the last call."""
        events = self._events
        self._events = []
        return events

    def created(self) -> None:
        """Emit `Created`, once."""
        if not self._is_created:
            self._is_created = True
            self._events.append(stream.Created())

    def begin(
        self,
        kind: Kind,
        *,
        name: str = "",
        call_id: str = "",
    ) -> Piece:
        """Begin a piece. Raises a `ModelError` if there are too many."""
        if self._count >= MAX_ITEMS:
            raise too_many_items()
        piece = Piece(self._count, kind, name, call_id)
        self._count += 1
        self._open.append(piece)
        if kind != "opaque":
            self._events.append(stream.OutputItemAdded())
        return piece

    def write(self, piece: Piece, delta: str) -> None:
        """Append a delta, and emit it if deltas are wanted."""
        piece.write(delta)
        if not delta or not self._deltas:
            return
        if piece.kind == "reasoning":
            self._events.append(stream.ReasoningDelta(piece.index, delta, 0))
        elif piece.kind == "message":
            self._events.append(stream.OutputTextDelta(piece.index, delta))

    def close(
        self,
        piece: Piece,
        *,
        is_cut: bool = False,
    ) -> None:
        """Emit the item of a piece, unless it is empty.

        `is_cut`: the response ended within the piece.
        """
        self._open.remove(piece)
        item = self._item(piece)
        if item is None:
            return
        if is_cut:
            item["status"] = "incomplete"
        item = unwrapped_item(item, self._freeform)
        item = self._maker.marked(item, self._model, **piece.data)
        self._events.append(stream.OutputItemDone(piece.index, parse_item(item)))

    def complete(
        self,
        usage: stream.Usage,
        *,
        end_turn: bool | None = None,
    ) -> None:
        """Close all open pieces, and end the response."""
        for piece in list(self._open):
            self.close(piece)
        self._events.append(stream.Completed(usage, end_turn))

    def cut(self) -> None:
        """Keep the text of a response that ended too early. An incomplete call must not run."""
        for piece in list(self._open):
            if piece.kind == "message":
                self.close(piece, is_cut=True)

    def _item(self, piece: Piece) -> JsonObject | None:
        """The piece as an item; None if it is empty."""
        text = piece.text
        match piece.kind:
            case "message" if text:
                part: JsonObject = {
                    "type": "output_text",
                    "text": text,
                    "annotations": [],
                }
                if piece.is_refusal:
                    part = {"type": "refusal", "refusal": text}
                return {"type": "message", "role": "assistant", "content": [part]}
            case "reasoning" if text:
                part = {"type": "summary_text", "text": text}
                return {"type": "reasoning", "summary": [part]}
            case "reasoning" if piece.data:
                return {"type": "reasoning", "summary": []}
            case "message" | "reasoning":
                return None
            case "function_call":
                return {
                    "type": "function_call",
                    "call_id": piece.call_id or new_call_id(),
                    "name": piece.name,
                    "arguments": text.strip() or "{}",
                }
            case "opaque":
                return {"type": "web_search_call", "status": "completed"}


class BuildingDecoder:
    """A `Decoder` that returns the events of its `ResponseBuilder`.

    Subclasses read the events of their API.
    """

    def __init__(
        self,
        prompt: stream.Prompt,
        maker: Maker,
        *,
        deltas: bool,
    ) -> None:
        self.finished = False
        self._out = ResponseBuilder(prompt, maker, deltas=deltas)
        self._failure: ModelError | None = None

    def feed(
        self,
        data: str,
        name: str = "message",
    ) -> Sequence[stream.ResponseEvent]:
        if self.finished:
            return self.end()
        self._read(data, name)
        events = self._out.take()
        if self._failure is not None and not events:
            raise self._failure
        return events

    def end(self) -> Sequence[stream.ResponseEvent]:
        if not self.finished:
            self._close()
        if self._failure is not None:
            raise self._failure
        return self._out.take()

    def _read(self, data: str, name: str) -> None:
        """Read an event, given by its data and its name."""
        raise NotImplementedError

    def _close(self) -> None:
        """End a response whose stream ended without its last event."""
        raise NotImplementedError

    def _complete(
        self,
        usage: stream.Usage,
        *,
        end_turn: bool | None = None,
    ) -> None:
        """End the response, unless a call in it has no name."""
        if any(piece.is_nameless for piece in self._out.pieces):
            self._fail(StreamError.broke_off("a call came without a name"))
        else:
            self.finished = True
            self._out.complete(usage, end_turn=end_turn)

    def _fail(self, failure: ModelError) -> None:
        """End the response. Its text is kept, unless another attempt will answer from scratch."""
        self.finished = True
        self._failure = failure
        if not failure.retryable:
            self._out.cut()
