"""The proxy's report of the connections that it did not make. LIGHT."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.frozen import frozen

Reason: TypeAlias = Literal[
    "not_allowed", "denied", "not_allowed_local", "method_not_allowed", "mitm_required"
]
"""Reasons, named as in Codex's proxy."""
REASONS: Final[dict[Reason, str]] = {
    "not_allowed": "it is not on the list of allowed domains",
    "denied": "the list of domains denies it",
    "not_allowed_local": "private and local addresses must be listed themselves",
    "method_not_allowed": "only GET, HEAD and OPTIONS are allowed",
    "mitm_required": "only plain HTTP is allowed",
}
_MAX_REPORTED: Final = 100
"""The most hosts of one call."""


@frozen
class Blocked:
    """A connection that was not made."""

    call_id: str
    """The id of the tool call whose command asked for the connection; empty if there is none."""
    host: str
    port: int
    reason: Reason

    @property
    def pattern(self) -> str | None:
        """The pattern that would allow the connection; None if the user cannot allow it.

        For this machine and its networks, the pattern allows only one port.
        """
        if self.reason == "not_allowed":
            return self.host
        is_address = ":" in self.host or self.host.replace(".", "").isdigit()
        if self.reason != "not_allowed_local" or not (
            is_address or self.host == "localhost"
        ):
            return None
        if ":" in self.host:
            return f"[{self.host}]:{self.port}"
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.host}, port {self.port}: {REASONS[self.reason]}"


class NetworkReport:
    """The blocked connections. Threads share it: each access is one operation on a dictionary."""

    def __init__(self, tell_bug: Callable[[Exception], None] | None = None) -> None:
        self.blocked: dict[Blocked, None] = {}
        """The connections, in order, each only once until it is taken."""
        self.ask: Callable[[Blocked], Any] | None = None
        """Asks the user about a host that is not allowed, from any thread. Returns a
        `concurrent.futures.Future` of a boolean; importing its module takes 8 ms. None: nobody is
        asked."""
        self.tell_bug = tell_bug or _tell_nobody
        """Is given unexpected errors, from any thread."""

    def add(self, blocked: Blocked) -> None:
        if len(self.blocked) < _MAX_REPORTED:
            self.blocked[blocked] = None

    def take(self) -> list[Blocked]:
        found = list(self.blocked)
        for each in found:
            self.blocked.pop(each, None)
        return found


def _tell_nobody(bug: Exception) -> None:
    pass
