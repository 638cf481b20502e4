"""Reads a session file: either the items of the history, ready to be sent again; or the whole thread
for display, with the items that a compaction removed from the history."""

from dataclasses import dataclass
from pathlib import Path

from codex_py.protocol import response_order
from codex_py.protocol.items import parse_item
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.response_order import OpenCall
from codex_py.protocol.stream import Usage
from codex_py.rollout.entries import (
    RolloutEntry,
    by_response,
    compacted,
    context_of,
    open_call,
    paired,
    without_last_turns,
)
from codex_py.rollout.lines import Line, ThreadLines
from codex_py.rollout.records import SessionMeta, read_token_count

_EVENTS = {"token_count", "thread_rolled_back", response_order.COMPLETED}
"""The events that matter for the history."""
_FACTS = {
    "patch_applied",
    "task_started",
    "task_complete",
    "turn_aborted",
    "items_injected",
    "entered_review_mode",
}
"""The events that are shown among the items."""
_SHOWN = {*_FACTS, "thread_rolled_back"}


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The contents of a session file."""

    path: Path
    meta: SessionMeta
    items: list[EncodedItem]
    """The history. Each call has its output. The base prompt is not an item: it is
    `meta.base_instructions`."""
    usage: Usage
    """The usage of the whole thread."""
    last_usage: Usage
    """The usage of the last response, which shows how full the context window was."""
    model: str | None
    """The model of the last turn."""
    context: dict[str, str]
    """The last text of each kind of context, by its opening (`CONTEXT_OPENINGS`)."""
    damaged_lines: int
    """The number of lines since the last compaction that were skipped because they cannot be read,
    such as one that was cut off when the program was killed."""
    open_call: OpenCall | None = None
    """The only call of the last response without an output, if `read_session` was asked to leave it
    open."""

    @property
    def thread_id(self) -> str:
        return self.meta.id


def read_session(path: Path, *, leaves_open: bool = False) -> StoredSession:
    """Read the part of a session that the model sees: all of it, or everything since its last
    compaction.

    Items keep their bytes from the file. Lines of unknown type are skipped.

    Args:
        leaves_open: if exactly one call of the last response has no output, leave it without one; it
            is the `open_call`.

    Raises:
        SessionError: the file cannot be read, does not begin with session metadata, or continues a
            session whose file is missing.
    """
    lines = ThreadLines(path, _EVENTS)
    compaction = lines.last("compacted", _is_whole)
    entries: list[RolloutEntry] = []
    usages: tuple[Usage, Usage] | None = None
    model: str | None = None
    damaged_lines = 0
    for line in lines.since(compaction and compaction[0]):
        if line is None:
            damaged_lines += 1
            continue
        match line.kind, line.payload:
            case "response_item", payload:
                entries.append(RolloutEntry.of(payload, line.encoded, line.place))
            case "event_msg", {"type": response_order.COMPLETED} as payload:
                entries.append(RolloutEntry.of(payload, None, line.place))
            case "event_msg", {"type": "token_count"}:
                usages = _usages(line) or usages
            case "event_msg", {"type": "thread_rolled_back", "num_turns": turns}:
                entries = without_last_turns(entries, turns)
                # The usage of the last response is unknown until a `token_count` follows.
                usages = _without_last(usages)
            case "turn_context", _:
                model = _model(line) or model
            case "compacted", payload:
                entries = compacted(entries, payload)
                usages = _without_last(usages)
                if _is_whole(line):
                    damaged_lines = 0
            case _:
                pass
    if compaction is not None:
        usages = usages or _earlier_usages(lines)
        model = model or _earlier_model(lines)
    usage, last_usage = usages or (Usage(), Usage())
    items = paired(entries)
    waiting = None
    if leaves_open:
        waiting = _take_open_call(entries, items)
    return StoredSession(
        path=path,
        meta=lines.meta,
        items=items,
        open_call=waiting,
        usage=usage,
        last_usage=last_usage,
        model=model,
        context=context_of(entries),
        damaged_lines=damaged_lines + sum(entry.is_damaged for entry in entries),
    )


def _earlier_usages(lines: ThreadLines) -> tuple[Usage, Usage] | None:
    """Read the usage of the session before its last compaction; see `_without_last`."""
    found = lines.last("token_count", _usages)
    if found is None:
        return None
    _, usages = found
    return _without_last(usages)


def _without_last(usages: tuple[Usage, Usage] | None) -> tuple[Usage, Usage] | None:
    """Forget the usage of the last response: the history is no longer the one that it is about."""
    if usages is None:
        return None
    total, _ = usages
    return total, Usage()


def _earlier_model(lines: ThreadLines) -> str | None:
    """Read the model of the last turn before the last compaction."""
    found = lines.last("turn_context", _model)
    if found is None:
        return None
    _, model = found
    return model


def _take_open_call(
    entries: list[RolloutEntry], items: list[EncodedItem]
) -> OpenCall | None:
    """Remove the output that was made for the only open call of the last response from `items`.

    Returns the call; None if there is no such call.
    """
    found = open_call(entries)
    if found is None:
        return None
    call, output = found
    # The last of several equal items is the one.
    index = len(items) - 1 - items[::-1].index(output.encoded)
    del items[index]
    assert output.place is not None
    return OpenCall(parse_item(decode_json(call.encoded)), output.place, index)


def _is_whole(line: Line) -> bool | None:
    """True for a line that replaces the whole history; None for others, as `ThreadLines.last` wants."""
    match line:
        case Line("compacted", {"replacement_history": list()}):
            return True
        case _:
            return None


def _usages(line: Line) -> tuple[Usage, Usage] | None:
    """Read the usage of the thread and that of its last response; None for other lines."""
    match line:
        case Line("event_msg", {"type": "token_count"} as payload):
            return read_token_count(payload)
        case _:
            return None


def _model(line: Line) -> str | None:
    match line:
        case Line("turn_context", {"model": str(model)}):
            return model
        case _:
            return None


def read_conversation(path: Path, last_bytes: int | None = None) -> list[EncodedItem]:
    """Read the items of the whole thread, without the turns that were taken back.

    Among them are the last item of each compaction, and events: the diffs of patches, the starts
    and ends of turns, the starts of reviews, and the marks before items that a client has injected;
    see `RolloutEvents`.

    Args:
        last_bytes: read about this many bytes at the end of the file; None for all of it.

    Raises:
        SessionError: the same as from `read_session`.
    """
    shown: list[RolloutEntry] = []
    lines = ThreadLines(path, _SHOWN)
    start = None
    if last_bytes is not None:
        start = lines.near_end(last_bytes)
    for line in lines.since(start):
        if line is None:
            continue
        match line.kind, line.payload:
            case "response_item", payload:
                shown.append(RolloutEntry.of(payload, line.encoded, line.place))
            case "event_msg", {"type": str(kind)} as payload if kind in _FACTS:
                # It gets the place of the line before it, to stay behind that.
                place = shown[-1].place if shown else None
                shown.append(RolloutEntry.of(payload, None, place))
            case "event_msg", {"type": "thread_rolled_back", "num_turns": turns}:
                shown = _without_begun_turn(without_last_turns(shown, turns))
            case "compacted", payload:
                shown += compacted((), payload)[-1:]
            case _:
                pass
    items: list[EncodedItem] = []
    for group in by_response(shown):
        in_order = sorted(group, key=lambda each: each.place or ())
        items += [entry.encoded for entry in in_order]
    return items


def _without_begun_turn(entries: list[RolloutEntry]) -> list[RolloutEntry]:
    """Leave out the start of a turn whose prompt was taken back, and what follows it."""
    for index in reversed(range(len(entries))):
        entry = entries[index]
        if entry.type == "task_started":
            return entries[:index]
        if entry.is_prompt or entry.type in _FACTS:
            break
    return entries
