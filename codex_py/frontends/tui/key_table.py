"""Tables of keys as prompt-toolkit's bindings."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

KeyTable: TypeAlias = Mapping[tuple[str | tuple[str, ...], ...], Callable[[KeyPressEvent], object]]
"""What each key does. A tuple inside of a tuple is keys that are pressed one after the other."""


def bind(
    table: KeyTable,
    *,
    filter: FilterOrBool = True,
    eager: bool = False,
    to: KeyBindings | None = None,
) -> KeyBindings:
    """Bindings for the keys of a table, added to those of `to`; the last that were added come first."""
    bindings = KeyBindings() if to is None else to
    for keys, action in table.items():

        def handler(
            event: KeyPressEvent, action: Callable[[KeyPressEvent], object] = action
        ) -> None:
            action(event)

        for key in keys:
            sequence = (key,) if isinstance(key, str) else key
            bindings.add(*sequence, filter=filter, eager=eager)(handler)
    return bindings
