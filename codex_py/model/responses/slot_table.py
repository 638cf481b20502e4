"""Finds the slot of the item that an event belongs to.

Servers leave `output_index` out, give every item the same one, or rename items between their
events. So an event gets the first slot in this table that suits it; in the first two rows, an open
slot is preferred to a closed one.

    event                             item added       text           item done            listed at the end
    1 the slot at its `output_index`  no id differs    of its type    same call            same tool, after row 2
    2 the slot of its call id or id   index not free   of its type    same call            same type
    3 any slot                        no index: oldest index not      index not free:      same tool; if it is
                                      not announced    free: newest   oldest open one      closed, says the same
    4 a new slot                      x                x              x                    x

An index is free if no item has it. Only an open slot takes an event: a closed one means that the
event is late, or that it repeats an item, so that no call runs twice.
"""

from collections.abc import Callable, Iterable, Iterator

from codex_py.model.failures import MAX_ITEMS, too_many_items
from codex_py.model.responses.slot import CALLS, Slot, kind_of_item
from codex_py.protocol.json_fields import (
    JsonObject,
    integer_field,
    objects,
    well_formed,
)


class SlotTable:
    """The slots of one response.

    Each has a unique index, if necessary one that the server did not send.
    """

    def __init__(self) -> None:
        self._slots: dict[int, Slot] = {}
        self._named: dict[str, Slot] = {}
        """The slots by item id and by call id; an id of two items belongs to the later one."""

    def __iter__(self) -> Iterator[Slot]:
        """Iterate over the slots in the order of their indexes."""
        return iter([self._slots[index] for index in sorted(self._slots)])

    def at(self, index: int | None) -> Slot | None:
        if index is not None:
            return self._slots.get(index)
        return None

    def for_text(self, event: JsonObject, kinds: tuple[str, ...]) -> Slot:
        """The slot of a text event. Text that was not announced opens an item of the first type."""
        index = integer_field(event, "output_index")
        name = event.get("item_id")
        at = self.at(index)
        if at is not None and at.is_open and at.kind in kinds:
            return at
        if isinstance(name, str):
            named = self._named.get(name)
        else:
            named = None
        slot = _first((at, named), lambda slot: slot.kind in kinds)
        if slot is None and (index is None or at is not None):
            newest = reversed(self._slots.values())
            slot = next(
                (slot for slot in newest if slot.is_open and slot.kind in kinds), None
            )
        if slot is None:
            slot = self._new(index, kinds[0])
            if isinstance(name, str) and name:
                slot.announced["id"] = well_formed(name)
                self._named[name] = slot
        return slot

    def for_added(self, event: JsonObject, item: JsonObject) -> Slot:
        """The slot of an announced item.

        It is a new slot, unless texts of the item came first or it was announced before.
        """
        index = integer_field(event, "output_index")
        kind = kind_of_item(item)
        at = self.at(index)
        is_index_free = index is not None and at is None
        named = None
        if not is_index_free:
            named = self._by_name(item)
        slot = _first(
            (at, named),
            lambda slot: slot.kind == kind and not slot.differs(item, "call_id", "id"),
        )
        if slot is None and index is None:
            slot = self._opened_by_text(kind)
        return self._name(slot or self._new(index, kind), item)

    def _opened_by_text(self, kind: str) -> Slot | None:
        """The oldest slot whose texts came before any announcement of an item."""
        for slot in self._slots.values():
            if slot.is_open and not slot.announced and _may_be(slot, kind):
                slot.kind = kind
                return slot
        return None

    def for_done(self, event: JsonObject, item: JsonObject) -> Slot:
        """The slot of a complete item.

        The item's fields, also its call id, count more than the announcement's.
        """
        index = integer_field(event, "output_index")
        kind = kind_of_item(item)
        at = self.at(index)
        named = self._by_name(item)

        def can_take(slot: Slot) -> bool:
            return slot.is_open and (slot is named or _may_be(slot, kind))

        def is_repeated(slot: Slot) -> bool:
            """True if the item of a closed slot comes again."""
            has_same_id = slot.has_id_of(item)
            if slot is at and has_same_id:
                return True
            if not slot.says(item):
                return False
            # An id alone does not make a repetition: some servers give all calls of one tool the
            # same.
            return slot is named or has_same_id is None

        def is_of_same_call(slot: Slot) -> bool:
            if slot.is_open:
                return can_take(slot) and not slot.differs(item, "call_id")
            return is_repeated(slot)

        slot = _first((at, named), is_of_same_call) or _first((at, named), can_take)
        if slot is None and (index is None or at is not None):
            still_open = [slot for slot in self._slots.values() if slot.is_open]
            slot = _first(still_open, is_of_same_call)
        return self._name(slot or self._new(index, kind), item)

    def for_listed(self, output: object) -> dict[int, JsonObject]:
        """The items of a terminal response, by the index of their slot.

        An item without events gets a new slot.
        """
        listed: dict[int, JsonObject] = {}
        # Items with known ids go first, so that no other item takes their slots.
        items = sorted(
            enumerate(objects(output)), key=lambda each: self._by_name(each[1]) is None
        )
        for place, item in items:
            kind = kind_of_item(item)
            at = self.at(place)
            named = self._by_name(item)
            if named is not None and listed.get(named.index) == item:
                continue
            for slot in (named, at, *self):
                if slot is None or slot.index in listed or slot.kind != kind:
                    continue
                is_like = slot.is_open or slot is at or slot.says(item)
                if slot is named or (is_like and not slot.differs(item, "name")):
                    break
            else:
                slot = self._name(self._new(place, kind), item)
            listed[slot.index] = item
        return listed

    def _by_name(self, item: JsonObject) -> Slot | None:
        # Servers change item ids within a response more often than call ids.
        for field in ("call_id", "id"):
            name = item.get(field)
            if isinstance(name, str) and (slot := self._named.get(name)):
                return slot
        return None

    def _name(self, slot: Slot, item: JsonObject) -> Slot:
        for field in ("call_id", "id"):
            name = item.get(field)
            if isinstance(name, str) and name:
                self._named[name] = slot
        return slot

    def _new(self, index: int | None, kind: str) -> Slot:
        if len(self._slots) >= MAX_ITEMS:
            raise too_many_items()
        if index is None or index in self._slots:
            index = max(self._slots, default=-1) + 1
        slot = Slot(index, kind)
        self._slots[index] = slot
        return slot


def _may_be(slot: Slot, kind: str) -> bool:
    """True if the slot can hold an item of this type; a call's arguments may name either type."""
    return slot.kind == kind or {slot.kind, kind} <= CALLS


def _first(slots: Iterable[Slot | None], suits: Callable[[Slot], bool]) -> Slot | None:
    """The first open slot that suits, or else the first closed one."""
    fitting = [slot for slot in slots if slot is not None and suits(slot)]
    return min(fitting, key=lambda slot: not slot.is_open, default=None)
