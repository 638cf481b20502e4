"""Questions that an MCP server has for the user, and who puts them."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from codex_py.protocol.frozen import frozen


@frozen
class Elicitation:
    """One question. Of `schema` and `url`, one is set."""

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of a form: an object whose properties are plain values."""
    url: str | None = None
    """An address that the user is to visit."""


@frozen
class ElicitationAnswer:
    action: Literal["accept", "decline", "cancel"]
    """`cancel` is to leave the question open."""
    content: Mapping[str, str | int | float | bool | list[str] | None] | None = None
    """The form as filled in; with `accept` alone."""


class Elicitor(Protocol):
    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Put the question. It may wait for the user as long as it takes: the clock of the call stands
        still meanwhile. Cancelled when the server takes the question back."""
        ...


class NobodyToAsk:
    """Declines everything, as a run without a user does."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:  # noqa: ARG002
        return ElicitationAnswer("decline")
