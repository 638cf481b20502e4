"""Progress and failure of a request to a server. LIGHT."""

from collections.abc import Callable
from typing import Literal, TypeAlias

OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
"""Gets the progress, the total if known, and the server's message."""


FailureCode: TypeAlias = Literal["McpError", "ConnectionLost", "SessionLost", "Timeout"]


class RequestFailed(Exception):
    """A request has no result; the message says why.

    Attributes:
        code: `McpError` the server answered with an error or not validly, `ConnectionLost` the connection
            ended before an answer, `SessionLost` the server no longer knew the session and so did nothing,
            `Timeout`.
    """

    def __init__(self, message: str, code: FailureCode = "McpError") -> None:
        super().__init__(message)
        self.code: FailureCode = code
