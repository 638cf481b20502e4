"""The prompts of a thread, and of the threads that it was copied from, with the times at which they
were sent."""

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
    """The thread in which it was sent."""
    until: float = inf
    """The time at which that thread was copied. Its later prompts are not in the copy."""
    is_steered: bool = False
    """True: the prompt was sent into a running turn."""
    is_compacted: bool = False
    """True: a summary replaced the prompt. The model does not see it, and the history cannot be
    rolled back to it."""


def sent_prompts(path: Path, copies: Collection[str] = ()) -> Sequence[SentPrompt]:
    """The prompts of a thread that were not taken back, oldest first, steered ones included.

    Args:
        copies: the threads that were copied from this one. It cannot be a copy of any of them.

    Raises:
        SessionError: a file cannot be read.
    """
    found: list[SentPrompt] = []
    lines = ThreadLines(path, _EVENTS)
    meta = lines.meta
    has_begun = False
    if meta.history_base is None:
        origin = meta.forked_from_id
    else:
        origin = None
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
            until = _seconds(meta.timestamp)
            threads = {*copies, meta.id}
            file = next(files_of_thread(home_of(path), origin), None)
            if file is not None and origin not in threads:
                # The original also has the prompts from before its compaction.
                before = [
                    each for each in sent_prompts(file, threads) if each.time <= until
                ]
                texts = [each.text for each in found]
                if texts and [each.text for each in before[-len(texts) :]] == texts:
                    found = [
                        replace(each, until=min(each.until, until)) for each in before
                    ]
            origin = None
    return found


def _seconds(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
