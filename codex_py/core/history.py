"""The prompts in a history, and its end."""

from collections.abc import Sequence
from typing import Any

from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import PastPrompt, is_summary, prompt_of, user_prompt


def past_prompts(items: Sequence[EncodedItem]) -> list[PastPrompt]:
    """The prompts that a rollback can drop: all since the last compaction, oldest first."""
    return [prompt for _, prompt in reversed(_from_the_end(items))]


def without_turns(
    items: Sequence[EncodedItem],
    turns: int,
) -> list[EncodedItem]:
    """The history before the last `turns` prompts.

    Raises a `ValueError` if there are fewer prompts.
    """
    prompts = _from_the_end(items)
    if not 1 <= turns <= len(prompts):
        raise ValueError(f"{len(prompts)} turns can be taken back, not {turns}")
    index, _ = prompts[turns - 1]
    return list(items[:index])


def is_cut_off(items: Sequence[EncodedItem]) -> bool:
    """True if the last turn did not complete: no answer follows the last prompt or call."""
    for item in reversed(items):
        data: Any = decode_json(item)
        match data:
            case {"role": "assistant"}:
                return False
            case {"role": "user"} if is_summary(item):
                return False
            case {"role": "user"} if prompt_of(data) is not None:
                return True
            case {"type": str(kind)} if kind.endswith(("_call", "_call_output")):
                return True
            case _:
                pass
    return False


def _from_the_end(items: Sequence[EncodedItem]) -> list[tuple[int, PastPrompt]]:
    """The prompts since the last compaction with their indexes, the last first."""
    found: list[tuple[int, PastPrompt]] = []
    for index in reversed(range(len(items))):
        item = items[index]
        if is_summary(item):
            break
        prompt = user_prompt(item)
        if prompt is not None:
            found.append((index, PastPrompt(prompt, len(found) + 1)))
    return found
