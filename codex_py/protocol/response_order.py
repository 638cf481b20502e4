"""The order of a response's items in the history. LIGHT.

An item is written to the session file as soon as it is known, so that a kill loses nothing that was shown. So an output
may stand before later calls of its response. A `Place` in the line says where the item belongs in the history.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from codex_py.protocol.items import ResponseItem


class Place(NamedTuple):
    """The place of an item in the history. Items are in the order of their places."""

    response: int
    """A number that differs from those of the responses before and after."""
    is_output: bool
    """True for the output of a call and the notes before it. They come after all items of the model."""
    position: int
    """The index of the item in the response; for an output, that of its call."""
    arrival: int
    """How many items of the model came before it, those left out included; for an output, that of its call."""


class OpenCall(NamedTuple):
    """A call that an earlier session left without an output."""

    item: ResponseItem
    place: Place
    """Of the output."""
    output_index: int
    """In the history without base prompt."""


COMPLETED = "response_completed"
"""The type of a mark behind the last item of a complete response, if that item is reasoning."""


T = TypeVar("T")


def in_order(items: Iterable[tuple[Place, str, T]]) -> list[T]:
    """The items of one response in the order of the history, without those that must not be sent.

    Providers refuse reasoning without the item that followed it, as after a broken stream. That item is missing too if
    it was a call of an earlier attempt, which the history already has.

    Args:
        items: each behind its place and its type.
    """
    placed = sorted(items, key=lambda each: each[0])
    arrivals = {place.arrival for place, _, _ in placed if not place.is_output}
    kept: list[T] = []
    is_followed = False
    for place, kind, item in reversed(placed):
        if not place.is_output:
            if kind == "reasoning" and not (
                is_followed and place.arrival + 1 in arrivals
            ):
                continue
            is_followed = True
        if kind != COMPLETED:
            kept.append(item)
    return kept[::-1]
