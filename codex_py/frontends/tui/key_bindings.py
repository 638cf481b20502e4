"""Binds keys by their names in prompt-toolkit."""

from collections.abc import Callable
from typing import Final

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from codex_py.frontends.tui.key_codes import ESCAPE

ESC: Final = ESCAPE.value
PASTE: Final = Keys.BracketedPaste.value


def bind(
    bindings: KeyBindings,
    keys: str,
    action: Callable[[KeyPressEvent], object],
    filter: FilterOrBool = True,
    *,
    eager: bool = False,
) -> None:
    """
    Args:
        keys: names with blanks between them, each of which does the action; `c-x+c-e` is one key after the other.
    """

    def handler(event: KeyPressEvent) -> None:
        action(event)

    for name in keys.split():
        bindings.add(*name.split("+"), filter=filter, eager=eager)(handler)
