"""The types of settings that say more about a value than Python's own types do. LIGHT.

A declaration uses them beside `str`, `bool`, `int`, `Path`, `Literal`, `tuple`, `Mapping`, sections and unions of all
these.
"""

import math
import re
from typing import Annotated, Final, TypeAlias

from codex_py.config.keymap import key_name
from codex_py.protocol.annotations import Plain


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
"""A text that is not shown when the configuration is explained."""
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
