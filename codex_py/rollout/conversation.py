"""Reads a session file for display: the whole thread, with the items that a compaction has removed from the history."""

from pathlib import Path

from codex_py.protocol.messages import EncodedItem
from codex_py.rollout.entries import Entry, by_response, compacted, without_last_turns
from codex_py.rollout.lines import ThreadLines

_FACTS = {"patch_applied", "task_started", "task_complete", "turn_aborted"}
_EVENTS = {*_FACTS, "thread_rolled_back"}


def read_conversation(path: Path, last_bytes: int | None = None) -> list[EncodedItem]:
    """The items of the whole thread, without the turns that were taken back.

    Between them are the diffs of patches and the starts and ends of turns, see `RolloutEvents`, and the last item
    of each compaction.

    Args:
        last_bytes: how much of the end of the file is read, if it is longer.

    Raises:
        SessionError: as `read_session`.
    """
    shown: list[Entry] = []
    lines = ThreadLines(path, _EVENTS)
    start = None if last_bytes is None else lines.near_end(last_bytes)
    for line in lines.since(start):
        if line is None:
            continue
        match line.kind, line.payload:
            case "response_item", payload:
                shown.append(Entry.of(payload, line.encoded, line.place))
            case "event_msg", {"type": kind} as payload if kind in _FACTS:
                # It stays behind the line before it.
                shown.append(Entry.of(payload, None, shown[-1].place if shown else None))
            case "event_msg", {"type": "thread_rolled_back", "num_turns": turns}:
                shown = without_last_turns(shown, turns)
            case "compacted", payload:
                shown += compacted((), payload)[-1:]
            case _:
                pass
    return [
        entry.encoded
        for group in by_response(shown)
        for entry in sorted(group, key=lambda each: each.place or ())
    ]
