"""Questions of MCP servers to the user."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from codex_py.protocol.frozen import frozen


@frozen
class Elicitation:
    """One question. Either `schema` or `url` is set."""

    server: str
    message: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of a form: an object whose properties are plain values."""
    url: str | None = None
    """An address for the user to visit."""


@frozen
class ElicitationAnswer:
    action: Literal["accept", "decline", "cancel"]
    """`cancel`: the user dismissed the question."""
    content: Mapping[str, str | int | float | bool | list[str] | None] | None = None
    """The values of the form; only with `accept`."""


class Elicitor(Protocol):
    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Ask the user. There is no deadline: the time limit of the call is suspended meanwhile.
        Cancelled when the server withdraws the question."""
        ...


class DecliningElicitor:
    """Declines every question, for runs without a user."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:  # noqa: ARG002
        return ElicitationAnswer("decline")
