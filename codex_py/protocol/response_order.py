"""The order of a response's items in the history. LIGHT.

An item is written to the session file as soon as it is known, so that a kill loses nothing that was
shown. An output may therefore come before later calls of its response. A `HistoryPlace` in the line
gives the item's place in the history.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from codex_py.protocol.items import ResponseItem


class HistoryPlace(NamedTuple):
    """The place of an item in the history. Places sort in the order of the history."""

    response: int
    """A number that differs from the numbers of the responses before and after."""
    is_output: bool
    """True for the output of a call and the notes before it.

    They come after all items of the model.
    """
    position: int
    """The index of the item in the response; for an output, the index of its call."""
    arrival: int
    """The number of the model's items before this one, omitted ones included; for an output, its
    call's number."""


class OpenCall(NamedTuple):
    """A call that an earlier session left without an output."""

    item: ResponseItem
    place: HistoryPlace
    """The place of the output."""
    output_index: int
    """The index of the output in the history without the base prompt."""


COMPLETED = "response_completed"
"""The type of the mark after the last item of a complete response, if that item is reasoning."""


T = TypeVar("T")


def in_order(items: Iterable[tuple[HistoryPlace, str, T]]) -> list[T]:
    """Sort the items of one response in the order of the history.

    Reasoning without the item that followed it is dropped, because providers refuse it. That item
    may be missing because the stream broke, or because it was a call of an earlier attempt, which
    the history already has.

    Args:
        items: the place, the type and the item.
    """
    placed = sorted(items, key=lambda each: each[0])
    arrivals = {place.arrival for place, _, _ in placed if not place.is_output}
    kept_backwards: list[T] = []
    has_follower = False
    for place, kind, item in reversed(placed):
        if not place.is_output:
            is_followed = has_follower and place.arrival + 1 in arrivals
            if kind == "reasoning" and not is_followed:
                continue
            has_follower = True
        if kind != COMPLETED:
            kept_backwards.append(item)
    return kept_backwards[::-1]
