"""Turns the chunks of a streamed chat completion, as real servers send them, into `ResponseEvent`s.

Specification: https://platform.openai.com/docs/api-reference/chat-streaming. Servers repeat names
and ids, leave out the index of a call, send arguments whole or in pieces, and use finish reasons of
their own.
"""

from collections.abc import Collection
from typing import cast

from codex_py.errors import ModelError, StreamError
from codex_py.model.failures import incomplete, stream_failure
from codex_py.model.freeform import function_specs
from codex_py.model.provider_data import Maker
from codex_py.model.reported import reported_failure
from codex_py.model.response_builder import BuildingDecoder, Piece, ResponseBuilder
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

_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_FAILURES = {
    "model_context_window_exceeded": "context_length_exceeded",
    "model_length": "context_length_exceeded",
    "insufficient_system_resource": "server_error",
    "network_error": "server_error",
    "error": "server_error",
}
"""The finish reasons that are failures, and their error codes."""
_FILTERED = frozenset({"content_filter", "sensitive"})
_FAILED = {"length", *_FAILURES, *_FILTERED}
THINK_TAG = "think"
"""The `field` of reasoning that came between `<think>` tags in the text."""
_OPENING = "<think>"
_CLOSING = "</think>"
_MAX_BLANK = 100
"""The most characters of white space before a `<think>` tag."""


class ChatDecoder(BuildingDecoder):
    """A `Decoder` for one response.

    Calls are emitted at the end of the response: before it, none is known to be complete.
    """

    def __init__(
        self,
        prompt: Prompt,
        maker: Maker,
        *,
        deltas: bool,
    ) -> None:
        super().__init__(prompt, maker, deltas=deltas)
        self._thought: Piece | None = None
        self._message: Piece | None = None
        offered = {spec.name for spec in function_specs(prompt.tools)}
        self._calls = _Calls(self._out, offered)
        self._head: str | None = ""
        """Text that is held back because it may be a part of a tag; None once no tag is
        expected."""
        self._is_in_tag = False
        """True after the opening tag, until the closing one."""
        self._seeks_closing = True
        """True while a closing tag without an opening one may come: some templates put the opening tag
        into the prompt."""
        self._end = ""
        """The last characters of the text: the beginning of a closing tag, or a whole one that waits for
        the text behind it."""
        self._reason: str | None = None
        """The finish reason, once it has come."""
        self._usage: JsonObject = {}
        self._lacks_choice = False
        """True after chunks with empty `choices`, until one has a choice."""
        self._ends_with_usage = False
        """True if the last chunk had only the usage. Servers send such a chunk only after a
        complete answer."""

    def _read(self, data: str, name: str) -> None:  # noqa: ARG002 - its events have no names
        if data.strip() == "[DONE]":
            self._finish("[DONE] came before the end of the answer")
            return
        chunk = parse_event(data)
        if chunk is not None:
            self._take(chunk)

    def _close(self) -> None:
        self._finish("stream closed before the end of the answer")

    def _take(self, chunk: JsonObject) -> None:
        choices = objects(chunk.get("choices"))
        if chunk.get("error") or not choices:
            failure = reported_failure(chunk)
            if failure is not None:
                self._fail(failure)
                return
        firsts = (choice for choice in choices if not integer_field(choice, "index"))
        choice = next(firsts, JsonObject())
        if "choices" in chunk:
            self._lacks_choice = not choice and self._out.is_empty
            self._out.created()
        self._take_usage(chunk, choice)
        if choice.get("error"):
            self._fail(stream_failure(choice))
            return
        delta = object_field(choice, "delta") or object_field(choice, "message")
        self._take_delta(delta)
        # Some servers send an empty reason until the end.
        self._reason = text_field(choice, "finish_reason") or self._reason
        is_whole = "choices" in chunk and chunk.get("object") == "chat.completion"
        is_failed = self._reason in _FAILED
        # After a usual reason the usage follows.
        has_all = self._reason is not None and bool(self._usage)
        if is_whole or is_failed or has_all:
            self._finish("")

    def _take_usage(self, chunk: JsonObject, choice: JsonObject) -> None:
        usage = object_field(chunk, "usage") or object_field(choice, "usage")
        self._ends_with_usage = bool(usage) and chunk.get("choices") == []
        # That of Groq comes with the finish reason.
        usage = usage or object_field(object_field(chunk, "x_groq"), "usage")
        if usage:
            self._usage = usage

    def _take_delta(self, delta: JsonObject) -> None:
        self._take_reasoning(delta)
        content = delta.get("content")
        if isinstance(content, str):
            text = content
        else:
            text = "".join(text_field(part, "text") for part in objects(content))
        if text:
            self._take_text(text)
        refusal = text_field(delta, "refusal")
        if refusal:
            piece = self._message_piece()
            piece.is_refusal = True
            self._out.write(piece, refusal)
        for call in objects(delta.get("tool_calls")):
            self._calls.take(call)
        legacy = object_field(delta, "function_call")
        if legacy:
            self._calls.take({"index": 0, "function": legacy})

    def _take_reasoning(self, delta: JsonObject) -> None:
        for name in _REASONING_FIELDS:
            # Some servers send an object with the text.
            fields = as_object(delta.get(name))
            text = text_field(fields, "text") or text_field(fields, "content")
            thought = text or text_field(delta, name)
            if thought:
                self._write_reasoning(thought, name)
                # Some relays send the same text under two names.
                break
        details = objects(delta.get("reasoning_details"))
        if details:
            data = self._reasoning_piece("reasoning_details").data
            # There can be a detail for each token: do not copy those before.
            known: list[JsonObject] = data.setdefault("details", [])
            known += details

    def _write_reasoning(self, text: str, name: str) -> None:
        self._out.write(self._reasoning_piece(name), text)

    def _reasoning_piece(self, name: str) -> Piece:
        """The reasoning of the response. `name`: the field that it comes in, if it begins now."""
        if self._thought is None:
            self._thought = self._out.begin("reasoning")
            self._thought.data["field"] = name
        return self._thought

    def _message_piece(self) -> Piece:
        """The message of the response, which may begin now."""
        if self._message is None:
            self._message = self._out.begin("message")
        return self._message

    def _take_text(self, text: str) -> None:
        """Take text. Text between `<think>` tags at the beginning of the answer is reasoning."""
        if self._head is None:
            self._write_text(text)
            return
        self._head += text
        if not self._is_in_tag:
            head = self._head.lstrip()
            if not head.startswith(_OPENING):
                if not _OPENING.startswith(head) or len(self._head) > _MAX_BLANK:
                    self._flush_head()
                return
            self._is_in_tag = True
            self._head = head.removeprefix(_OPENING)
        thought, closing, rest = self._head.partition(_CLOSING)
        if not closing:
            thought = _before_tag(thought)
            self._head = self._head[len(thought) :]
            self._write_tagged_reasoning(thought)
            return
        self._head = None
        self._write_tagged_reasoning(thought.rstrip())
        rest = rest.lstrip()
        if rest:
            self._write_text(rest)

    def _write_text(self, text: str) -> None:
        """Take text that is not in a tag at the beginning of the answer."""
        if self._message is None and not self._seeks_closing:
            # The answer begins after the closing tag.
            text = text.lstrip()
            if not text:
                return
        self._out.write(self._message_piece(), text)
        if self._seeks_closing:
            self._end += text
            if _CLOSING in self._end:
                self._split_at_closing(is_end=False)
            self._end = self._end[-len(_CLOSING) :]

    def _split_at_closing(self, *, is_end: bool) -> None:
        """Turn the text before a closing tag without an opening one into reasoning.

        `is_end`: no more text comes. Otherwise wait for the text after the tag, since an answer may
        mention the tag.
        """
        piece = self._message
        if piece is None or not self._seeks_closing:
            return
        before, closing, rest = piece.text.partition(_CLOSING)
        if not closing or (not rest and not is_end):
            return
        self._seeks_closing = False
        if self._thought is not None or _is_mention_of_tag(before, rest):
            return
        piece.kind = "reasoning"
        piece.data["field"] = THINK_TAG
        piece.replace(before.strip())
        self._thought = piece
        self._message = None
        rest = rest.lstrip()
        if rest:
            self._out.write(self._message_piece(), rest)

    def _write_tagged_reasoning(self, text: str) -> None:
        """Take text from between the tags."""
        if self._thought is None:
            text = text.lstrip()
        if text:
            self._write_reasoning(text, THINK_TAG)

    def _flush_head(self) -> None:
        """Take the text that was held back: no tag can follow."""
        head = self._head
        self._head = None
        if head and self._is_in_tag:
            self._write_tagged_reasoning(head)
        elif head:
            self._write_text(head)
        self._split_at_closing(is_end=True)

    def _finish(self, cause: str) -> None:
        """End the response. `cause`: the error if the server did not announce the end."""
        reason = self._reason
        self._flush_head()
        usage = _usage(self._usage)
        is_end_told = self._ends_with_usage and not self._calls.is_cut
        is_cut = cause.startswith("stream") and not is_end_told
        if reason is None and (is_cut or self._out.is_empty):
            if self._lacks_choice:
                cause = "the answer came without a choice"
            self._fail(StreamError.broke_off(cause))
        elif reason in _FILTERED:
            self._fail(incomplete("content_filter"))
        elif reason == "length":
            # MiMo sends this reason for a request that fills the window.
            is_too_long = self._out.is_empty and not usage.output_tokens
            limit = "context_length_exceeded" if is_too_long else "max_output_tokens"
            self._fail(incomplete(limit))
        elif reason in _FAILURES:
            message = f"the server ended the answer with finish_reason {reason!r}"
            self._fail(stream_failure({"code": _FAILURES[reason], "message": message}))
        else:
            self._complete(usage)

    def _fail(self, failure: ModelError) -> None:
        self._flush_head()
        super()._fail(failure)


def _is_mention_of_tag(before: str, rest: str) -> bool:
    """True if the closing tag between these texts is part of the answer.

    That is so if there is other text on both sides of it in its line, if an opening tag comes before
    it, or if it is in code.
    """
    follows_line = before.endswith("\n")
    ends_line = not rest or rest.startswith(("\n", "\r"))
    if not follows_line and not ends_line:
        return True
    return _OPENING in before or _is_in_code(before)


def _is_in_code(before: str) -> bool:
    """True if the place after this text is in a fenced block or between backticks."""
    if before.count("```") % 2 == 1:
        return True
    _, _, last_line = before.rpartition("\n")
    return last_line.count("`") % 2 == 1


def _before_tag(text: str) -> str:
    """The text without an end that may be the beginning of the closing tag."""
    place = text.rfind("<")
    if place >= 0 and _CLOSING.startswith(text[place:]):
        return text[:place]
    return text


class _Calls:
    """Assembles calls from their pieces: by index, by id, or by the order in which the pieces come.

    Args:
        offered: the names of the functions in the request.
    """

    def __init__(
        self,
        out: ResponseBuilder,
        offered: Collection[str],
    ) -> None:
        self._out = out
        self._offered = offered
        self._by_index: dict[int, Piece] = {}
        self._by_id: dict[str, Piece] = {}
        self._last: Piece | None = None

    @property
    def is_cut(self) -> bool:
        """True if the arguments of the last call have begun, and are incomplete."""
        last = self._last
        return last is not None and last.size > 0 and not _is_complete(last)

    def take(self, delta: JsonObject) -> None:
        """Take an entry of `tool_calls`."""
        function = object_field(delta, "function")
        index = integer_field(delta, "index")
        call_id = text_field(delta, "id")
        name = text_field(function, "name")
        piece = self._find(index, call_id, function)
        if piece is None:
            piece = self._out.begin("function_call")
            self._last = piece
        if index is not None:
            self._by_index[index] = piece
        # An id that another call has already is ignored: the call gets a new one later.
        if call_id and not piece.call_id and call_id not in self._by_id:
            piece.call_id = call_id
            self._by_id[call_id] = piece
        if self._continues_name(piece, index, name):
            piece.name += name
        else:
            # Many servers repeat the name in every chunk.
            piece.name = piece.name or name
        extra = delta.get("extra_content")
        if extra is not None:
            piece.data["extra_content"] = extra
        self._take_arguments(piece, function.get("arguments"))

    def _take_arguments(self, piece: Piece, arguments: object) -> None:
        if isinstance(arguments, dict):
            # Some servers send decoded arguments.
            piece.replace(encode_json(cast("JsonObject", arguments)).decode())
        elif isinstance(arguments, str) and not _repeats(piece, arguments):
            self._out.write(piece, arguments)

    def _candidate(
        self,
        index: int | None,
        call_id: str,
    ) -> Piece | None:
        """The call that a piece with this index or id may belong to."""
        if index is not None:
            return self._by_index.get(index)
        last = self._last
        if not call_id:
            return last
        if call_id in self._by_id:
            return self._by_id[call_id]
        if last is not None and not last.call_id:
            return last
        return None

    def _find(
        self, index: int | None, call_id: str, function: JsonObject
    ) -> Piece | None:
        """The call that a piece belongs to; None for a new one."""
        known = self._candidate(index, call_id)
        if known is None:
            return None
        if call_id and known.call_id and call_id != known.call_id:
            return None
        name = text_field(function, "name")
        if self._continues_name(known, index, name):
            return known
        if not name:
            return known
        if known.name and name != known.name:
            return None
        # The same name again may begin another call: some servers give every call the same index, or
        # none. Others only repeat the name, in an empty chunk at the end.
        if call_id or not _is_complete(known):
            return known
        only_repeats = index is not None and not function.get("arguments")
        if only_repeats:
            return known
        return None

    def _continues_name(
        self,
        piece: Piece,
        index: int | None,
        name: str,
    ) -> bool:
        """True if `name` continues the name of this call, which some servers send in pieces.

        The piece has the same index, no arguments have come yet, and the joined name is an offered
        function's, or the beginning of one. A `name` that was offered itself belongs to another
        call.
        """
        if index is None or not name or not piece.name:
            return False
        if piece.size > 0 or name in self._offered:
            return False
        joined = piece.name + name
        return any(offered.startswith(joined) for offered in self._offered)


def _repeats(piece: Piece, arguments: str) -> bool:
    """True if `arguments` repeats all arguments, as some servers do in the last chunk."""
    if len(arguments) != piece.size or not _is_complete(piece):
        return False
    return arguments == piece.text


def _is_complete(piece: Piece) -> bool:
    """True if the arguments are a whole JSON object."""
    return piece.may_be_complete and isinstance(json_or(piece.text, None), dict)


def _usage(usage: JsonObject) -> Usage:
    inputs = object_field(usage, "prompt_tokens_details")
    outputs = object_field(usage, "completion_tokens_details")
    prompt = integer_field(usage, "prompt_tokens") or 0
    total = integer_field(usage, "total_tokens") or 0
    completion = integer_field(usage, "completion_tokens") or 0
    # xAI does not include reasoning in the completion.
    completion = max(completion, total - prompt)
    cached = integer_field(inputs, "cached_tokens")
    # DeepSeek's name for them.
    cached = cached or integer_field(usage, "prompt_cache_hit_tokens")
    return Usage(
        input_tokens=prompt,
        cached_input_tokens=cached or 0,
        cache_write_input_tokens=integer_field(inputs, "cache_write_tokens") or 0,
        output_tokens=completion,
        reasoning_output_tokens=integer_field(outputs, "reasoning_tokens") or 0,
    )
