"""The order of a response's items in the history. LIGHT.

The session file has each item from the moment on in which it is known, so that a kill loses nothing that was shown: outputs
stand there before later calls of their response. A `Place` in the line says where the item belongs.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar


class Place(NamedTuple):
    """The place of an item in the history. In order, places compare as the items stand."""

    response: int
    """Tells a response from the ones beside it."""
    is_output: bool
    """True for the output of a call, and for the notes before it: they stand behind all items of the model."""
    position: int
    """Of the item in the response, from 0; of the call, for an output."""
    arrival: int
    """The number of the item in the order in which the model's items came, left out ones counted; of the call, for an output."""


COMPLETED = "response_completed"
"""The type of a mark, which is no item: it stands behind the last item of a complete response if that is reasoning."""


class Placed(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def place(self) -> Place | None: ...


PlacedT = TypeVar("PlacedT", bound=Placed)


def in_order(items: Iterable[PlacedT]) -> list[PlacedT]:
    """The items of one response in the order of the history, without those that must not be sent.

    Providers refuse reasoning without the item that followed it, as after a broken stream. That item is missing too if it was
    a call of an earlier attempt, which the history already has.
    """
    placed = sorted(
        ((place, item) for item in items if (place := item.place) is not None),
        key=lambda each: each[0],
    )
    arrivals = {place.arrival for place, _ in placed if not place.is_output}
    kept: list[PlacedT] = []
    is_followed = False
    for place, item in reversed(placed):
        if not place.is_output:
            if item.type == "reasoning" and not (is_followed and place.arrival + 1 in arrivals):
                continue
            is_followed = True
        if item.type != COMPLETED:
            kept.append(item)
    return kept[::-1]
