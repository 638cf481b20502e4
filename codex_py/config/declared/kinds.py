"""The types of settings that say more about a value than Python's own types do. LIGHT.

A declaration uses them beside `str`, `bool`, `int`, `Path`, `Literal`, `tuple`, `Mapping`, sections and unions of all
these.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

from codex_py.config.keymap import key_name

Kind: TypeAlias = Any
"""The annotation of a setting."""


class Plain(NamedTuple):
    """What there is to say about a value that is no table, no array and no choice."""

    name: str
    words: str
    """What the value must be: `a string`."""
    types: tuple[type, ...]
    """What TOML gives for it."""
    holds: Callable[[Any], bool] = lambda _: True

    def fits(self, value: Any) -> bool:
        if isinstance(value, bool) and bool not in self.types:
            # Python takes a boolean for an integer.
            return object in self.types
        return isinstance(value, self.types) and self.holds(value)


def _is_limit(value: float) -> bool:
    return 0 < value < math.inf


def _is_not_negative(value: float) -> bool:
    return 0 <= value < math.inf


def _is_key(text: str) -> bool:
    return key_name(text) is not None


def _may_be_variable(text: str) -> bool:
    """False for text that no variable is called, and for a key: a long mixture of letters and digits."""
    if not text:
        return True
    changes = re.findall(r"(?=[A-Za-z]\d|\d[A-Za-z])", text)
    is_name = re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) is not None
    return is_name and (len(text) < 20 or len(changes) < 6)


_STRING: Final = "a string"
_VARIABLE: Final = "the NAME of an environment variable, not what it holds"
_COUNT: Final = "an integer of 0 or more"
_LIMIT: Final = "an integer of more than 0"
_PRICE: Final = "a finite number of 0 or more"
_POSITIVE: Final = "a finite number of more than 0"
_KEY: Final = "a key such as `ctrl-t` or `page-down`"
_NUMBERS: Final = (int, float)

Secret: TypeAlias = Annotated[str, Plain("secret", _STRING, (str,))]
"""It is not shown when the configuration is explained."""
Variable: TypeAlias = Annotated[
    str, Plain("variable", _VARIABLE, (str,), _may_be_variable)
]
Count: TypeAlias = Annotated[int, Plain("count", _COUNT, (int,), _is_not_negative)]
Limit: TypeAlias = Annotated[int, Plain("limit", _LIMIT, (int,), _is_limit)]
Price: TypeAlias = Annotated[float, Plain("price", _PRICE, _NUMBERS, _is_not_negative)]
Positive: TypeAlias = Annotated[
    float, Plain("positive", _POSITIVE, _NUMBERS, _is_limit)
]
KeyName: TypeAlias = Annotated[str, Plain("key", _KEY, (str,), _is_key)]
"""A key of the keyboard."""

_PYTHON: Final[dict[Any, Plain]] = {
    str: Plain("string", _STRING, (str,)),
    bool: Plain("boolean", "a boolean", (bool,)),
    int: Plain("integer", "an integer", (int,)),
    float: Plain("number", "a number", _NUMBERS),
    # Relative to the folder of the file that sets it.
    Path: Plain("path", "a path", (str,)),
    Any: Plain("any", "anything", (object,)),
}


def plain(kind: Kind) -> Plain:
    """What there is to say of a type that is no table, no array and no choice."""
    found = _PYTHON.get(kind)
    if found is None:
        (found,) = kind.__metadata__
    return found


def alternatives(kind: Kind) -> tuple[Kind, ...]:
    """The types of a union but None; any other type alone."""
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return tuple(each for each in get_args(kind) if each is not NoneType)
    return (kind,)
