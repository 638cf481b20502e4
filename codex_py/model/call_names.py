"""Names and ids of calls that providers accept in a history."""

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

_MAX_NAME: Final = 64
_LEGAL: Final[Mapping[str, str]] = {
    "verbatim": r"(?s).+",
    "openai": r"[A-Za-z0-9_-]{1,40}",
    "mistral": r"[A-Za-z0-9]{9}",
    "anthropic": r"[A-Za-z0-9_-]{1,64}",
}
"""Patterns for the call ids that a provider accepts, by its policy."""


def legal_name(name: str) -> str:
    """Change a tool's name, which a model may have invented, so that every provider accepts it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_MAX_NAME] or "unknown"


class CallIds:
    """Assigns the ids of the calls of one dialogue, in order.

    Each is unique, because servers match results by it.
    """

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._used: set[str] = set()
        self._numbers: Counter[str] = Counter()
        """The number of ids made from each id: some servers give all their calls the same one."""

    def fitting(self, call_id: str) -> str:
        """The id to send for the next call.

        It is the call's own id if the provider accepts that and no earlier call has it, else an id
        made from it.
        """
        is_legal = re.fullmatch(_LEGAL[self._policy], call_id) is not None
        if is_legal and call_id not in self._used:
            made = call_id
        else:
            made = self._made(call_id)
        self._used.add(made)
        return made

    def _made(self, call_id: str) -> str:
        while True:
            digest = sha256(f"{call_id} {self._numbers[call_id]}".encode()).hexdigest()
            self._numbers[call_id] += 1
            if self._policy == "mistral":
                made = digest[:9]
            else:
                made = f"call_{digest[:24]}"
            if made not in self._used:
                return made
