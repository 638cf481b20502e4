"""The stored items of a session, and what makes a history of them: later lines that change them, and
the pairing of calls with outputs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

from codex_py.protocol.json_fields import lenient_integer, objects
from codex_py.protocol.messages import (
    EncodedItem,
    encode_json,
    input_text,
    message,
    replace_surrogates,
)
from codex_py.protocol.prompts import (
    CONTEXT_OPENINGS,
    SUMMARY_OPENING,
    is_context,
    message_texts,
)
from codex_py.protocol.response_order import HistoryPlace, in_order

_ABORTED: dict[str, dict[str, Any]] = {
    "function_call": {"type": "function_call_output", "output": "aborted"},
    "local_shell_call": {"type": "function_call_output", "output": "aborted"},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": "aborted"},
    "tool_search_call": {
        "type": "tool_search_output",
        "status": "completed",
        "execution": "client",
        "tools": [],
    },
}
"""The output of a call that was never answered, by the type of the call, as in Codex."""
_PRIVATE = "internal_chat_message_metadata_passthrough"
"""A field that Codex stores in items and sends only to its own service. Other providers may refuse an
item that has it."""
_SURROGATE = re.compile(rb"\\u[dD]")
"""Matches what may be half of a surrogate pair. JSON can contain it, but UTF-8 cannot encode it, and
providers refuse it."""
_OUTPUT_TYPES = {aborted["type"] for aborted in _ABORTED.values()}
# A search for tools that the service ran has no id.
_WITH_ID = {*_ABORTED, *_OUTPUT_TYPES} - {"tool_search_call", "tool_search_output"}

# Fields without which a provider refuses the whole request, with their types.
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "message": {"role": (str,), "content": (str, list)},
    "function_call": {"name": (str,), "arguments": (str,)},
    "custom_tool_call": {"name": (str,), "input": (str,)},
    "function_call_output": {"output": (str, list)},
    "custom_tool_call_output": {"output": (str, list)},
}
_KEPT_PROMPTS_CHARACTERS = 80_000
"""Limit on the prompts that are kept after a compaction: some 20,000 tokens, as in Codex."""


@dataclass(frozen=True, slots=True)
class RolloutEntry:
    encoded: EncodedItem
    type: str
    call_id: str | None
    """The id of a call or an output."""
    role: str | None
    texts: tuple[str, ...]
    """The text parts of a message of any other role than the model's."""
    place: HistoryPlace | None = None
    """The item's place. If None, its place is that of its line, as in the files of other programs."""
    is_damaged: bool = False
    """True if a provider would refuse the item, so that it cannot be a part of the history."""

    @classmethod
    def of(
        cls,
        payload: Mapping[str, Any],
        encoded: EncodedItem | None = None,
        place: HistoryPlace | None = None,
    ) -> "RolloutEntry":
        """Make an entry of a stored item; `encoded` is its JSON if the bytes can be kept."""
        if _PRIVATE in payload:
            payload = {key: value for key, value in payload.items() if key != _PRIVATE}
            encoded = None
        elif encoded is not None and _SURROGATE.search(encoded):
            payload = replace_surrogates(payload)
            encoded = None
        written = payload.get("type", "message")
        role = payload.get("role")
        kind = str(written)
        call_id = payload.get("call_id")
        if kind == "local_shell_call":
            # The oldest form has no `call_id` and is answered under its `id`.
            call_id = call_id or payload.get("id")
        has_id = isinstance(call_id, str) and call_id != ""
        is_damaged = not isinstance(written, str)
        if kind in _WITH_ID and not has_id:
            is_damaged = True
        for name, types in _FIELDS.get(kind, {}).items():
            if not isinstance(payload.get(name), types):
                is_damaged = True
        texts = ()
        if kind == "message" and role != "assistant":
            texts = tuple(message_texts(payload.get("content")))
        return cls(
            encoded=encoded or EncodedItem(encode_json(payload)),
            type=kind,
            call_id=call_id if isinstance(call_id, str) else None,
            role=role if isinstance(role, str) else None,
            texts=texts,
            place=place,
            is_damaged=is_damaged,
        )

    @property
    def is_context(self) -> bool:
        """True if a program wrote the message to describe the environment to the model."""
        return self.role in {"developer", "system"} or is_context(self.texts)

    @property
    def is_prompt(self) -> bool:
        return self.type == "message" and self.role == "user" and not self.is_context


def context_of(entries: Iterable[RolloutEntry]) -> dict[str, str]:
    """Find the last text that begins with each of `CONTEXT_OPENINGS`, by opening."""
    context: dict[str, str] = {}
    for entry in entries:
        for text in entry.texts:
            for opening in CONTEXT_OPENINGS:
                if text.startswith(opening):
                    context[opening] = text
    return context


def open_call(
    entries: Sequence[RolloutEntry],
) -> tuple[RolloutEntry, RolloutEntry] | None:
    """Find the only call of the last response that has no output.

    Returns the call and the output that `paired` gives it; None unless there is exactly one such call.
    """
    places = [entry.place for entry in entries if entry.place is not None]
    if not places:
        return None
    last = places[-1].response
    response = [
        entry
        for entry in entries
        if entry.place is not None and entry.place.response == last
    ]
    found = list(_aborted(response))
    if len(found) == 1:
        return found[0]
    return None


def paired(entries: Sequence[RolloutEntry]) -> list[EncodedItem]:
    """Put the items in the order of the history, so that every call has one output, and every output its call.

    An output without a call is left out, and so is a repeated call. A call without an output gets
    the output `aborted`, after the other outputs of its response: some providers want all calls of
    a response together, and all outputs after them.
    """
    entries = list(_in_order([entry for entry in entries if not entry.is_damaged]))
    unanswered, stray = _unpaired(entries)
    items: list[EncodedItem] = []
    waiting: list[EncodedItem] = []
    after_output = False
    for index, entry in enumerate(entries):
        if index in stray:
            continue
        is_output = entry.type in _OUTPUT_TYPES
        # A prompt, or anything that comes after outputs, belongs to the next response.
        is_of_next = after_output or entry.role in {"user", "developer"}
        if waiting and not is_output and is_of_next:
            items += waiting
            waiting = []
        items.append(entry.encoded)
        if index in unanswered:
            aborted = {"call_id": entry.call_id, **_ABORTED[entry.type]}
            waiting.append(EncodedItem(encode_json(aborted)))
        after_output = is_output
    return items + waiting


def _unpaired(entries: Sequence[RolloutEntry]) -> tuple[set[int], set[int]]:
    """Find what has no counterpart: the indices of calls without an output; and those of outputs
    without a call, and of repeated calls."""
    open_calls: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    stray: set[int] = set()
    for index, entry in enumerate(entries):
        if entry.call_id is None:
            continue
        if entry.type in _ABORTED:
            output_type = _ABORTED[entry.type]["type"]
            open_calls[output_type, entry.call_id].append(index)
        elif entry.type in _OUTPUT_TYPES:
            # Ids may be repeated: the output belongs to the nearest call before it.
            calls = open_calls[entry.type, entry.call_id]
            if calls:
                calls.pop()
            else:
                stray.add(index)
    unanswered = {index for calls in open_calls.values() for index in calls}
    for index in unanswered:
        is_repeated = entries[index] in entries[index + 1 : index + 2]
        if is_repeated:
            stray.add(index)
    return unanswered, stray


def by_response(entries: Iterable[RolloutEntry]) -> Iterator[list[RolloutEntry]]:
    """Group the entries by their response. Entries without a place form groups between these.

    If such an entry is inside a response, because of a damaged line, it is moved after the response.
    A group may be empty.
    """
    response: list[RolloutEntry] = []
    others: list[RolloutEntry] = []
    number = 0
    for entry in entries:
        if entry.place is None:
            others.append(entry)
            continue
        if not response or number != entry.place.response:
            yield from (response, others)
            response = []
            others = []
        number = entry.place.response
        response.append(entry)
    yield from (response, others)


def _in_order(entries: Sequence[RolloutEntry]) -> Iterator[RolloutEntry]:
    """Put the items of each response in the order of the history. Its calls without an output get
    the output `aborted`."""
    for group in by_response(entries):
        whole = [*group, *(output for _, output in _aborted(group))]
        placed = [
            (each.place, each.type, each) for each in whole if each.place is not None
        ]
        if placed:
            yield from in_order(placed)
        else:
            yield from group


def _aborted(
    response: Sequence[RolloutEntry],
) -> Iterator[tuple[RolloutEntry, RolloutEntry]]:
    """The calls of a response without an output, each with its output `aborted`."""
    answered = {each.place for each in response if each.type in _OUTPUT_TYPES}
    for each in response:
        if each.place is None or each.call_id is None:
            continue
        if each.type not in _ABORTED:
            continue
        place = each.place._replace(is_output=True)
        if place not in answered:
            output = {"call_id": each.call_id, **_ABORTED[each.type]}
            yield each, RolloutEntry.of(output, None, place)


def compacted(
    entries: Sequence[RolloutEntry], payload: Mapping[str, Any]
) -> list[RolloutEntry]:
    """Return the items that a line of type `compacted` makes of those before it.

    Older programs stored only the summary. It becomes the last message, after the first context and
    the latest prompts that fit.
    """
    replacement = payload.get("replacement_history")
    if isinstance(replacement, list):
        items = objects(cast("list[Any]", replacement))
        return [RolloutEntry.of(item) for item in items]
    context = takewhile(lambda entry: entry.is_context, entries)
    prompts: list[RolloutEntry] = []
    room = _KEPT_PROMPTS_CHARACTERS
    for entry in reversed(entries):
        text = "".join(entry.texts)
        if not entry.is_prompt or text.startswith(SUMMARY_OPENING):
            continue
        if len(text) > room:
            break
        room -= len(text)
        prompts.append(entry)
    summary = str(payload.get("message", ""))
    item = message("user", [input_text(summary)])
    return [
        *context,
        *reversed(prompts),
        RolloutEntry(item, "message", None, "user", (summary,)),
    ]


def without_last_turns(
    entries: Sequence[RolloutEntry], turns: Any
) -> list[RolloutEntry]:
    """Return the items before the last `turns` turns. A turn begins with its prompt.

    If there are fewer turns, all are taken back. `turns` may be any JSON value.
    """
    starts = [index for index, entry in enumerate(entries) if entry.is_prompt]
    count = lenient_integer(turns) or 0
    if count <= 0 or not starts:
        return list(entries)
    taken_back = min(count, len(starts))
    return list(entries[: starts[-taken_back]])
