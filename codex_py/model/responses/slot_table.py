"""Finds the item that an event of a response speaks of.

The place in the output, `output_index`, decides where it is sent and makes sense; servers leave it out,
give every item the same one, or change the ids of an item between its events.
"""

from collections.abc import Iterator, Sequence

from codex_py.model.responses.slots import Slot, kind_of_item
from codex_py.protocol.json_fields import JsonObject, objects, well_formed


class SlotTable:
    """The slots of one response. Each has an index of its own, if need be one that no server gave."""

    def __init__(self) -> None:
        self._slots: dict[int, Slot] = {}
        self._named: dict[str, Slot] = {}
        """By item id and by call id; two items with one name leave it with the later."""

    def __iter__(self) -> Iterator[Slot]:
        """In the order of their indexes."""
        return iter([self._slots[index] for index in sorted(self._slots)])

    def at(self, index: int) -> Slot | None:
        return self._slots.get(index)

    def for_delta(self, event: JsonObject, kinds: tuple[str, ...]) -> Slot | None:
        """The open item of one of these types that a delta belongs to; None for one that comes late.

        A delta that was not announced opens an item of the first type.
        """
        index = _index(event)
        at = self._slots.get(index) if index is not None else None
        if at is not None and at.item is None and at.kind in kinds:
            return at
        name = event.get("item_id")
        named = self._named.get(name) if isinstance(name, str) else None
        if named is not None and named.item is None and named.kind in kinds:
            return named
        if any(slot is not None and slot.kind in kinds for slot in (at, named)):
            return None
        if index is None or at is not None:
            for slot in reversed(self._slots.values()):
                if slot.is_open and slot.kind in kinds:
                    return slot
        slot = self._new(index, kinds[0])
        if isinstance(name, str) and name:
            slot.announced["id"] = well_formed(name)
            self._named[name] = slot
        return slot

    def for_added(self, event: JsonObject, item: JsonObject) -> Slot | None:
        """The slot of an item that is announced: a new one, unless its deltas came first.

        None where the item is announced again after its end.
        """
        index = _index(event)
        at = self._slots.get(index) if index is not None else self._by_name(item)
        if at is None or at.contradicts(item, "call_id", "id"):
            slot = self._new(index, kind_of_item(item))
        elif at.is_open:
            slot = at
        else:
            return None
        self._name(slot, item)
        return slot

    def for_done(self, event: JsonObject, item: JsonObject) -> Slot | None:
        """The open slot that an item closes; None where the item repeats one that was given out."""
        index = _index(event)
        at = self._slots.get(index) if index is not None else None
        named = self._by_name(item)
        if at is not None and at.is_open and not at.contradicts(item, "call_id"):
            slot = at
        elif named is not None and named.is_open:
            slot = named
        elif _is_repeat(item, at, named):
            return None
        elif at is not None and at.is_open:
            # Nothing else fits: the item knows better than its announcement.
            slot = at
        else:
            slot = self._first_open(item) if index is None else None
            slot = slot or self._new(index, kind_of_item(item))
        self._name(slot, item)
        return slot

    def match(self, output: object) -> dict[int, JsonObject]:
        """The items of a terminal response that no `output_item.done` brought, by the index of their slot.

        Slots are made for those that no event spoke of. Ids are compared first, the place counts less.
        """
        items = objects(output)
        slots = self._named_counterparts(items)
        for place, item in enumerate(items):
            if place not in slots:
                claimed = {slot.index for slot in slots.values()}
                slot = self._counterpart(item, place, claimed)
                if slot is None:
                    slot = self._new(place, kind_of_item(item))
                    self._name(slot, item)
                slots[place] = slot
        return {slot.index: items[place] for place, slot in slots.items() if slot.is_open}

    def _named_counterparts(self, items: Sequence[JsonObject]) -> dict[int, Slot]:
        slots: dict[int, Slot] = {}
        for place, item in enumerate(items):
            slot = self._by_name(item)
            if slot is not None and slot.kind == kind_of_item(item) and slot not in slots.values():
                slots[place] = slot
        return slots

    def _counterpart(self, item: JsonObject, place: int, claimed: set[int]) -> Slot | None:
        """The slot of an item whose ids are not known: one that is open, says the same, or is in its place.

        A call that was given out must not come again because the terminal response renames it.
        """
        at = self._slots.get(place)
        others = [slot for slot in self if slot is not at]
        for slot in others if at is None else (at, *others):
            if slot.index in claimed or slot.contradicts(item, "name"):
                continue
            if slot.is_open or slot is at or slot.repeats(item):
                return slot
        return None

    def _first_open(self, item: JsonObject) -> Slot | None:
        for slot in self._slots.values():
            if slot.is_open and not slot.contradicts(item, "call_id"):
                return slot
        return None

    def _by_name(self, item: JsonObject) -> Slot | None:
        # Servers change item ids within a response more often than call ids.
        for field in ("call_id", "id"):
            if isinstance(name := item.get(field), str) and (slot := self._named.get(name)):
                return slot
        return None

    def _name(self, slot: Slot, item: JsonObject) -> None:
        for field in ("call_id", "id"):
            if isinstance(name := item.get(field), str) and name:
                self._named[name] = slot

    def _new(self, index: int | None, kind: str) -> Slot:
        if index is None or index in self._slots:
            index = max(self._slots, default=-1) + 1
        slot = self._slots[index] = Slot(index, kind)
        return slot


def _index(event: JsonObject) -> int | None:
    index = event.get("output_index")
    return index if isinstance(index, int) else None


def _is_repeat(item: JsonObject, at: Slot | None, named: Slot | None) -> bool:
    """Whether the slot in its place, or under its name, has given out the item.

    A name alone is not enough: some servers give all calls of one tool the same.
    """
    if at is not None:
        same_id = at.has_id_of(item)
        if same_id or (same_id is None and at.repeats(item)):
            return True
    return named is not None and named.repeats(item)
