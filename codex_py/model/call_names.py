"""The names and ids of calls, as the providers accept them in a history."""

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
"""The ids of calls that a provider accepts, by its policy."""


def legal_name(name: str) -> str:
    """The name of a tool as every provider takes it: a model may have made one up."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_MAX_NAME] or "unknown"


class CallIds:
    """The ids of the calls of one dialogue, in its order. Each is sent once: servers match results by them."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._used: set[str] = set()
        self._numbers: Counter[str] = Counter()
        """How many ids were made from an id: some servers give all their calls the same one."""

    def fitting(self, call_id: str) -> str:
        """The id to send for the next call: its own if the provider accepts it and no call before has it, else one made
        from it."""
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
