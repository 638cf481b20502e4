"""Finds the slot of the item that an event belongs to.

Servers leave `output_index` out, give every item the same one, or rename items between their
events. So an event gets the first slot in this table that suits it; in the first two rows, an open
slot is preferred to a closed one.

    event              item added        text         item done        listed at the end
    1 the slot at its  no id differs     of its type  same call        same tool, after row 2
      `output_index`
    2 the slot of its  index not free    of its type  same call        same type
      call id or id
    3 any slot         no index: oldest  index not    index not free:  same tool; if it is
                       not announced     free: newest oldest open one  closed, says the same
    4 a new slot       x                 x            x                x

An index is free if no item has it. Only an open slot takes an event: a closed one means that the
event is late, or that it repeats an item, so that no call runs twice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from codex_py.model.failures import MAX_ITEMS, too_many_items
from codex_py.model.responses.slot import CALLS, Slot, kind_of_item
from codex_py.protocol.json_fields import (
    JsonObject,
    integer_field,
    objects,
    text_field,
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
        if index is None:
            return None
        return self._slots.get(index)

    def for_text(
        self,
        event: JsonObject,
        kinds: tuple[str, ...],
    ) -> Slot:
        """The slot of a text event. Text that was not announced opens an item of the first type."""
        index = integer_field(event, "output_index")
        item_id = text_field(event, "item_id")
        at = self.at(index)
        if at is not None and at.is_open and at.kind in kinds:
            return at
        named = self._named.get(item_id)
        slot = _first((at, named), lambda slot: slot.kind in kinds)
        is_index_free = index is not None and at is None
        if slot is None and not is_index_free:
            slot = self._newest_open(kinds)
        if slot is not None:
            return slot
        slot = self._new(index, kinds[0])
        if item_id:
            slot.announced["id"] = well_formed(item_id)
            self._named[item_id] = slot
        return slot

    def _newest_open(self, kinds: tuple[str, ...]) -> Slot | None:
        for slot in reversed(self._slots.values()):
            if slot.is_open and slot.kind in kinds:
                return slot
        return None

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

        slot = _first((at, named), is_of_same_call)
        if slot is None:
            slot = _first((at, named), can_take)
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
        items = list(enumerate(objects(output)))
        known = [each for each in items if self._by_name(each[1]) is not None]
        unknown = [each for each in items if self._by_name(each[1]) is None]
        for place, item in known + unknown:
            named = self._by_name(item)
            if named is not None and listed.get(named.index) == item:
                continue
            slot = self._listed_slot(place, item, taken=listed)
            if slot is None:
                slot = self._name(self._new(place, kind_of_item(item)), item)
            listed[slot.index] = item
        return listed

    def _listed_slot(
        self, place: int, item: JsonObject, *, taken: Collection[int]
    ) -> Slot | None:
        """The slot of a listed item, but none of those whose indexes are `taken`."""
        at = self.at(place)
        named = self._by_name(item)
        for slot in (named, at, *self):
            if slot is None or slot.index in taken:
                continue
            if slot.kind != kind_of_item(item):
                continue
            is_like = slot.is_open or slot is at or slot.says(item)
            if slot is named or (is_like and not slot.differs(item, "name")):
                return slot
        return None

    def _by_name(self, item: JsonObject) -> Slot | None:
        """The slot with the item's call id, or else with its id."""
        # Servers change item ids within a response more often than call ids.
        for field in ("call_id", "id"):
            name = text_field(item, field)
            if name in self._named:
                return self._named[name]
        return None

    def _name(self, slot: Slot, item: JsonObject) -> Slot:
        """Note the ids of a slot's item. Returns the slot."""
        for field in ("call_id", "id"):
            name = item.get(field)
            if isinstance(name, str) and name:
                self._named[name] = slot
        return slot

    def _new(self, index: int | None, kind: str) -> Slot:
        """A new slot. It gets the next index if its own is taken, or was not sent."""
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


def _first(
    slots: Iterable[Slot | None],
    suits: Callable[[Slot], bool],
) -> Slot | None:
    """The first open slot that suits, or else the first closed one."""
    closed: Slot | None = None
    for slot in slots:
        if slot is None or not suits(slot):
            continue
        if slot.is_open:
            return slot
        closed = closed or slot
    return closed
