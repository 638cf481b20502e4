"""The prompts of a thread with the times at which they were sent, also of the threads that it was copied from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from pathlib import Path

from codex_py.protocol.prompts import is_summary, prompt_of
from codex_py.rollout.index import files_of_thread
from codex_py.rollout.lines import Line, ThreadLines
from codex_py.rollout.records import home_of

_EVENTS = {"task_started", "thread_rolled_back", "token_count"}


@dataclass(frozen=True, slots=True)
class SentPrompt:
    text: str
    time: float
    """Seconds since the epoch."""
    thread_id: str
    """The thread in which it was sent."""
    until: float = inf
    """When that thread was copied; it went on by itself."""
    is_steered: bool = False
    """It was sent into a running turn."""
    is_compacted: bool = False
    """A summary stands in its place: the model does not see it, and the history cannot go back to it."""


def sent_prompts(path: Path) -> Sequence[SentPrompt]:
    """The prompts of a thread that were not taken back, oldest first, a steered one as any other.

    Raises:
        SessionError: a file cannot be read.
    """
    found: list[SentPrompt] = []
    lines = ThreadLines(path, _EVENTS)
    meta = lines.meta
    has_begun = False
    is_copy = meta.forked_from_id is not None and meta.history_base is None
    for line in lines.since():
        match line:
            case None:
                continue
            case ("response_item", payload, *_) if (prompt := prompt_of(payload)) is not None:
                time, is_steered = _seconds(line.timestamp), not has_begun and not is_copy
                found.append(SentPrompt(prompt.text, time, meta.id, is_steered=is_steered))
                has_begun = False
            case ("response_item", {"role": "user"}, *_) if not _has_summary(line):
                pass
            case ("response_item", {"role": "user"}, *_) | ("compacted", *_):
                found = [replace(each, is_compacted=True) for each in found]
            case ("event_msg", {"type": "task_started"}, *_):
                has_begun = True
            case ("event_msg", {"type": "thread_rolled_back", "num_turns": int(turns)}, *_):
                del found[max(0, len(found) - turns) :]
            case _:
                pass
        if is_copy and line.kind != "response_item":
            # What stands before it was copied, and has the time of the copy.
            is_copy = False
            found = _original(path, str(meta.forked_from_id), _seconds(meta.timestamp), found)
    return found


def _original(
    path: Path, thread_id: str, until: float, copied: list[SentPrompt]
) -> list[SentPrompt]:
    """The prompts as they stand in the thread that they were copied from, with those before its compaction."""
    file = next(iter(files_of_thread(home_of(path), thread_id)), None)
    before = [] if file is None else [each for each in sent_prompts(file) if each.time <= until]
    count = len(copied)
    if not count or [each.text for each in before[-count:]] != [each.text for each in copied]:
        return copied
    return [replace(each, until=min(each.until, until)) for each in before]


def _has_summary(line: Line) -> bool:
    return line.encoded is not None and is_summary(line.encoded)


def _seconds(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
