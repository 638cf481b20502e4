"""Hides the credentials in settings that are shown, and puts them back into settings that return."""

import math
import re
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, dotted, kind_of
from codex_py.config.declared.kinds import Secret
from codex_py.errors import ConfigError
from codex_py.protocol.addresses import shown_url
from codex_py.protocol.json_fields import as_object

HIDDEN: Final = "***"
"""The text that stands for a credential."""
_ADDRESS: Final = re.compile(r"\w+://")


def hidden(value: Any, key: KeyPath = ()) -> Any:
    """Return the value of a setting as JSON, without its credentials.

    A credential becomes `***`, and an address loses its credentials. A date becomes a text, and a
    number that JSON does not have becomes None.
    """
    match value:
        case str():
            return hidden_text(value, key)
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: hidden(part, (*key, name)) for name, part in table.items()}
        case list() | tuple():
            return [hidden(part, key) for part in cast("list[Any]", value)]
        case float() if not math.isfinite(value):
            return None
        case bool() | int() | float() | None:
            return value
        case _:
            return str(value)


def hidden_text(text: str, key: KeyPath) -> str:
    """Return a text without its credentials."""
    if kind_of(key) is Secret:
        return HIDDEN
    if _ADDRESS.match(text):
        return shown_url(text)
    return text


def restored(value: Any, old: Any, key: KeyPath) -> Any:
    """Return the new value of a setting, with the credentials that `hidden` has left out.

    A text that `hidden` makes of the old text in its place becomes the old text again.

    Args:
        old: the present value of the setting; None if it is not set.

    Raises:
        ConfigError: a credential is `***`, and there is no old one.
    """
    match value:
        case str():
            return _restored_text(value, old, key)
        case dict():
            table = cast("dict[str, Any]", value)
            olds = as_object(old)
            return {
                name: restored(part, olds.get(name), (*key, name))
                for name, part in table.items()
            }
        case list():
            return _restored_parts(cast("list[Any]", value), old, key)
        case _:
            return value


def _restored_parts(parts: list[Any], old: Any, key: KeyPath) -> list[Any]:
    """Restore the parts of an array. Texts may have another place in it than before."""
    olds: list[Any] = []
    if isinstance(old, list):
        olds = cast("list[Any]", old)
    texts: dict[str, Any] = {}
    for each in olds:
        if isinstance(each, str):
            texts[hidden_text(each, key)] = each
    found: list[Any] = []
    for number, part in enumerate(parts):
        before = None
        if isinstance(part, str):
            before = texts.get(part)
        elif number < len(olds):
            before = olds[number]
        found.append(restored(part, before, key))
    return found


def _restored_text(text: str, old: Any, key: KeyPath) -> str:
    if isinstance(old, str) and hidden_text(old, key) == text:
        return old
    if text == HIDDEN and kind_of(key) is Secret:
        raise ConfigError(
            f"`{dotted(key)}`: {HIDDEN!r} stands for a hidden value, and there is none"
        )
    return text
