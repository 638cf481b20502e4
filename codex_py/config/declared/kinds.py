"""Declares types of settings that restrict Python's own types, such as a number above 0. LIGHT.

Annotations of keys have these types, and `str`, `bool`, `int`, `Path`, `Literal`, `tuple`,
`Mapping`, sections, and unions of all these.
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
    """False for text that is no name of a variable, and for text that looks like an API key.

    An API key is a long mixture of letters and digits.
    """
    if not text:
        return True
    is_name = re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) is not None
    changes = re.findall(r"(?=[A-Za-z]\d|\d[A-Za-z])", text)
    looks_like_key = len(text) >= 20 and len(changes) >= 6
    return is_name and not looks_like_key


_STRING: Final = "a string"
_VARIABLE: Final = "the NAME of an environment variable, not its value"
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
"""The name of an environment variable."""
Count: TypeAlias = Annotated[int, Plain("count", _COUNT, (int,), _is_not_negative)]
Limit: TypeAlias = Annotated[int, Plain("limit", _LIMIT, (int,), _is_limit)]
Price: TypeAlias = Annotated[float, Plain("price", _PRICE, _NUMBERS, _is_not_negative)]
Positive: TypeAlias = Annotated[
    float, Plain("positive", _POSITIVE, _NUMBERS, _is_limit)
]
KeyName: TypeAlias = Annotated[str, Plain("key", _KEY, (str,), _is_key)]
"""A key of the keyboard."""
