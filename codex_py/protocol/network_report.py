"""Reports the connections that the proxy did not make. LIGHT."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.frozen import frozen

Reason: TypeAlias = Literal[
    "not_allowed", "denied", "not_allowed_local", "method_not_allowed", "mitm_required"
]
"""The reasons why a connection is blocked, named as in Codex's proxy."""
REASONS: Final[dict[Reason, str]] = {
    "not_allowed": "it is not on the list of allowed domains",
    "denied": "the list of domains denies it",
    "not_allowed_local": "private and local addresses must be listed themselves",
    "method_not_allowed": "only GET, HEAD and OPTIONS are allowed",
    "mitm_required": "only plain HTTP is allowed",
}
"""The reasons in words, to be read after a colon."""
_MAX_REPORTED: Final = 100
"""The most connections that are kept until `take`."""


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
        if self.reason != "not_allowed_local":
            return None
        if ":" in self.host:
            # An IPv6 address.
            return f"[{self.host}]:{self.port}"
        is_ipv4 = self.host.replace(".", "").isdigit()
        if is_ipv4 or self.host == "localhost":
            return f"{self.host}:{self.port}"
        return None

    def __str__(self) -> str:
        return f"{self.host}, port {self.port}: {REASONS[self.reason]}"


class NetworkReport:
    """Collects the blocked connections.

    Threads may share it: each access is one operation on a dictionary.
    """

    def __init__(self, tell_bug: Callable[[Exception], None] | None = None) -> None:
        self.blocked: dict[Blocked, None] = {}
        """The connections, in order, each only once until it is taken."""
        self.ask: Callable[[Blocked], Any] | None = None
        """Asks the user about a host that is not allowed. May be called from any thread. Returns a
        `concurrent.futures.Future` of a boolean, whose module takes 8 ms to import. If None, nobody
        is asked."""
        self.tell_bug = tell_bug or _tell_nobody
        """Called with unexpected errors, from any thread."""

    def add(self, blocked: Blocked) -> None:
        """Keep a connection, unless there are too many already."""
        if len(self.blocked) < _MAX_REPORTED:
            self.blocked[blocked] = None

    def take(self) -> list[Blocked]:
        """Remove and return the connections, in order."""
        found = list(self.blocked)
        for each in found:
            self.blocked.pop(each, None)
        return found


def _tell_nobody(bug: Exception) -> None:
    pass
