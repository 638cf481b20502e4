"""How far a test searches: a third of the way in `scripts/test`, all of it where THOROUGH is set, as in `.ci/run`."""

import os
from collections.abc import Sequence
from typing import Final, TypeVar

_Case = TypeVar("_Case")
_EVERY: Final = 1 if "THOROUGH" in os.environ else 3


def share(cases: int) -> int:
    """How many of so many random cases to try."""
    return cases // _EVERY


def sample(cases: Sequence[_Case]) -> Sequence[_Case]:
    """The cases to try, from the first one on."""
    return cases[::_EVERY]
