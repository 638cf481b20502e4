"""Reads the prompts of a thread, and of the threads that it was copied from, with the times at which
they were sent."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from pathlib import Path

from codex_py.protocol.prompts import is_summary, prompt_of
from codex_py.rollout.index import files_of_thread
from codex_py.rollout.lines import ThreadLines
from codex_py.rollout.records import home_of

_EVENTS = {"task_started", "thread_rolled_back", "token_count"}


@dataclass(frozen=True, slots=True)
class SentPrompt:
    text: str
    time: float
    """The time of sending, in seconds since the epoch."""
    thread_id: str
    """The id of the thread in which it was sent."""
    until: float = inf
    """The time at which that thread was copied, in seconds since the epoch. Its later prompts are not
    in the copy."""
    is_steered: bool = False
    """True if the prompt was sent into a running turn."""
    is_compacted: bool = False
    """True if a summary has replaced the prompt. The model does not see it, and the history cannot be
    rolled back to it."""


def sent_prompts(path: Path, copies: Collection[str] = ()) -> Sequence[SentPrompt]:
    """Read the prompts of a thread that were not taken back, oldest first. Steered ones count too.

    Args:
        copies: the ids of threads that were copied from this one, so that this one is no copy of them.

    Raises:
        SessionError: a file cannot be read.
    """
    found: list[SentPrompt] = []
    lines = ThreadLines(path, _EVENTS)
    meta = lines.meta
    has_begun = False
    origin = None
    if meta.history_base is None:
        origin = meta.forked_from_id
    for line in lines.since():
        match line:
            case None:
                continue
            case ("response_item", payload, *_) if (
                prompt := prompt_of(payload)
            ) is not None:
                time = _seconds(line.timestamp)
                is_steered = not has_begun and origin is None
                found.append(
                    SentPrompt(prompt.text, time, meta.id, is_steered=is_steered)
                )
                has_begun = False
            case ("response_item", *_) if line.encoded and is_summary(line.encoded):
                found = [replace(each, is_compacted=True) for each in found]
            case ("compacted", *_):
                found = [replace(each, is_compacted=True) for each in found]
            case ("event_msg", {"type": "task_started"}, *_):
                has_begun = True
            case (
                "event_msg",
                {"type": "thread_rolled_back", "num_turns": int(turns)},
                *_,
            ):
                del found[max(0, len(found) - turns) :]
            case _:
                pass
        if origin is not None and line.kind != "response_item":
            # The lines before this one were copied, and have the time of the copy.
            threads = {*copies, meta.id}
            file = next(files_of_thread(home_of(path), origin), None)
            if file is not None and origin not in threads:
                originals = sent_prompts(file, threads)
                found = _with_times(found, originals, _seconds(meta.timestamp))
            origin = None
    return found


def _with_times(
    copied: list[SentPrompt],
    originals: Sequence[SentPrompt],
    until: float,
) -> list[SentPrompt]:
    """Replace copied prompts by those of the original thread, which have their own times.

    The original also has the prompts from before its compaction. If its last prompts are not the
    copied ones, these are returned unchanged.

    Args:
        until: the time of the copy.
    """
    before = [each for each in originals if each.time <= until]
    texts = [each.text for each in copied]
    last_texts = [each.text for each in before[-len(texts) :]]
    if not texts or last_texts != texts:
        return copied
    found: list[SentPrompt] = []
    for each in before:
        # A copy of a copy: the first one counts.
        earliest = min(each.until, until)
        found.append(replace(each, until=earliest))
    return found


def _seconds(timestamp: str) -> float:
    """Convert a timestamp to seconds since the epoch; 0 if it is damaged."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
