"""Turns the events of a streamed Anthropic message into `ResponseEvent`s.

Specification: https://docs.anthropic.com/en/docs/build-with-claude/streaming.
"""

from codex_py.errors import ModelError, StreamError
from codex_py.model.error_body import plain_line
from codex_py.model.failures import incomplete
from codex_py.model.provider_data import Maker
from codex_py.model.reported import reported_failure
from codex_py.model.response_builder import BuildingDecoder, Kind, Piece
from codex_py.protocol.json_fields import (
    JsonObject,
    as_object,
    integer_field,
    json_or,
    object_field,
    objects,
    parse_event,
    text_field,
)
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Prompt, Usage

_KINDS: dict[str, Kind] = {
    "text": "message",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "tool_use": "function_call",
}
"""The kinds of known blocks. All other blocks are the server's own: they are sent back as they
came."""
# The field of each delta that has its text.
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class AnthropicDecoder(BuildingDecoder):
    """A `Decoder` for one response.

    A call is emitted when its block ends, with all pieces before it.
    """

    def __init__(
        self,
        prompt: Prompt,
        maker: Maker,
        *,
        deltas: bool,
    ) -> None:
        super().__init__(prompt, maker, deltas=deltas)
        self._pieces: dict[int, Piece] = {}
        """The open pieces by the index of their blocks."""
        self._blocks: dict[int, JsonObject] = {}
        """The open blocks as `content_block_start` had them."""
        self._signatures: dict[int, list[str]] = {}
        self._stop_reason = ""
        self._stop_details: JsonObject = {}
        self._usage: dict[str, int] = {}

    def _read(self, data: str, name: str) -> None:
        event = parse_event(data)
        if event is None:
            return
        # An event without a name gets `message`, the default of SSE. One that is called so has content.
        is_unnamed = name == "message" and not isinstance(event.get("content"), list)
        if not is_unnamed:
            # A type of its own wins.
            event = {"type": name, **event}
        self._take(event)

    def _close(self) -> None:
        if self._stop_reason:
            self._finish()
        else:
            self._fail(StreamError.broke_off("stream closed before message_stop"))

    def _take(self, event: JsonObject) -> None:
        index = integer_field(event, "index") or 0
        match event.get("type"):
            case "message_start":
                message = object_field(event, "message")
                self._out.created()
                self._count(message)
            case "content_block_start":
                self._begin(index, object_field(event, "content_block"))
            case "content_block_delta":
                self._add(index, object_field(event, "delta"))
            case "content_block_stop":
                self._end_block(index)
            case "message_delta":
                self._take_reason(object_field(event, "delta"))
                self._count(event)
            case "message_stop":
                self._finish()
            case "message":
                self._take_whole(event)
            case _:
                failure = reported_failure(event)
                if failure is not None:
                    self._fail(failure)

    def _take_reason(self, delta: JsonObject) -> None:
        """Note why the message stops; a later delta without a reason changes nothing."""
        reason = text_field(delta, "stop_reason")
        if reason:
            self._stop_reason = reason
        details = object_field(delta, "stop_details")
        if details:
            self._stop_details = details

    def _take_whole(self, message: JsonObject) -> None:
        """Take a whole message that came instead of a stream."""
        self._out.created()
        self._count(message)
        for index, block in enumerate(objects(message.get("content"))):
            self._begin(index, block)
            self._end_block(index)
        self._stop_reason = text_field(message, "stop_reason")
        if self._out.is_empty and not self._stop_reason:
            self._fail(StreamError.broke_off("the message came without content"))
        else:
            self._finish()

    def _begin(self, index: int, block: JsonObject) -> None:
        kind = _KINDS.get(text_field(block, "type"), "opaque")
        call_id = text_field(block, "id")
        name = text_field(block, "name")
        piece = self._out.begin(kind, name=name, call_id=call_id)
        self._pieces[index] = piece
        self._blocks[index] = block
        text = text_field(block, "text") or text_field(block, "thinking")
        if text:
            self._out.write(piece, text)
        signature = text_field(block, "signature")
        if signature:
            piece.data["signature"] = signature
        if block.get("type") == "redacted_thinking":
            piece.data["redacted"] = text_field(block, "data")

    def _add(self, index: int, delta: JsonObject) -> None:
        piece = self._pieces.get(index)
        if piece is None:
            return
        field = _DELTAS.get(text_field(delta, "type"))
        if field is not None:
            self._out.write(piece, text_field(delta, field))
            return
        signature = text_field(delta, "signature")
        if signature:
            self._signatures.setdefault(index, []).append(signature)

    def _end_block(self, index: int) -> None:
        """End a block of the message.

        Texts and reasoning stay open until a call or the message ends: if the stream breaks off before
        that, the next attempt answers from the beginning.
        """
        piece = self._pieces.pop(index, None)
        if piece is None:
            return
        block = self._blocks.pop(index)
        signature = "".join(self._signatures.pop(index, ()))
        if signature:
            piece.data["signature"] = piece.data.get("signature", "") + signature
        match piece.kind:
            case "function_call":
                self._end_call(piece, block.get("input"))
            case "opaque":
                streamed = as_object(json_or(piece.text, None))
                if streamed:
                    block = {**block, "input": streamed}
                piece.data["blocks"] = [block]
            case _:
                pass

    def _end_call(self, piece: Piece, given: object) -> None:
        """End a call. `given`: the arguments from the start of its block, which may be empty."""
        if given and not piece.text:
            piece.replace(encode_json(given).decode())
        # Arguments that are missing or unreadable may have been cut by the limit of the output.
        has_arguments = bool(as_object(json_or(piece.text, None)))
        if has_arguments:
            self._close_until(piece)

    def _close_until(self, last: Piece) -> None:
        """Emit the pieces up to this one, unless one of them is a call without a name."""
        ready = [piece for piece in self._out.pieces if piece.index <= last.index]
        if any(piece.is_nameless for piece in ready):
            return
        for piece in ready:
            self._out.close(piece)

    def _count(self, source: JsonObject) -> None:
        usage = object_field(source, "usage")
        for name in _USAGE:
            number = integer_field(usage, name)
            # The numbers are totals; some servers send zeros first, or again.
            if number:
                self._usage[name] = number

    def _finish(self) -> None:
        match self._stop_reason:
            case "max_tokens":
                self._fail(incomplete("max_output_tokens"))
            case "content_filter" | "model_context_window_exceeded" as reason:
                # Servers with Chat Completions behind them send `content_filter`.
                self._fail(incomplete(reason))
            case "refusal":
                explanation = plain_line(text_field(self._stop_details, "explanation"))
                message = explanation or "the model refused to answer"
                self._fail(ModelError(message, code="content_filter"))
            case "pause_turn":
                # A server tool still runs: the next request, with the same history, continues it.
                self._complete(self._total(), end_turn=False)
            case _:
                self._complete(self._total())

    def _total(self) -> Usage:
        fresh = self._usage.get("input_tokens", 0)
        cached = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        return Usage(
            input_tokens=fresh + cached + written,
            cached_input_tokens=cached,
            cache_write_input_tokens=written,
            output_tokens=self._usage.get("output_tokens", 0),
        )
