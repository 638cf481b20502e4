"""How a request to a server goes on, and how it fails. LIGHT."""

from collections.abc import Callable
from typing import Literal, TypeAlias

OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
"""Takes how far a call is, what the whole comes to, and what the server says of it."""


FailureCode: TypeAlias = Literal["McpError", "ConnectionLost", "SessionLost", "Timeout"]


class RequestFailed(Exception):
    """There is no result, and the message says why.

    Attributes:
        code: `McpError` for an answer that is an error or no answer, `ConnectionLost` where the
            connection ended before one came, `Timeout`; `SessionLost` where it ended because the server
            no longer knew us, and so has done nothing.
    """

    def __init__(self, message: str, code: FailureCode = "McpError") -> None:
        super().__init__(message)
        self.code: FailureCode = code
