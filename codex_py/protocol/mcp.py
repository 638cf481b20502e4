"""The MCP servers of a session, as the user sees them, and questions to the user. LIGHT.

Servers ask such questions, and so does the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, cast, runtime_checkable

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object

McpFailure: TypeAlias = Literal[
    "not_started", "exited", "timed_out", "refused", "unreachable", "protocol"
]
"""The reason why a server is not available.

`not_started` and `exited` are about its program; `timed_out` is about its start; `refused` is an
answer with an HTTP error; `unreachable`: nothing listens at its address; `protocol`: it broke the
rules of MCP.
"""
WantedLogin: TypeAlias = Literal["first", "again"]
"""A login that a server demands: the first one, or another one because it refuses ours."""
FailureCode: TypeAlias = Literal["McpError", "ConnectionLost", "SessionLost", "Timeout"]


class RequestFailed(Exception):
    """A request has no result; the message says why.

    Attributes:
        code: `McpError` if the server's answer is an error or invalid; `ConnectionLost` if the
            connection ended before an answer; `SessionLost` if the server no longer knew the
            session, and so did nothing; or `Timeout`.
        answer: the code and the message of the server's error, if it answered with one.
    """

    def __init__(self, message: str, code: FailureCode = "McpError") -> None:
        super().__init__(message)
        self.code: FailureCode = code
        self.answer: tuple[int, str] | None = None


@frozen
class McpToolSummary:
    """A tool of a server, as the user sees it."""

    name: str
    """The server's own name for the tool."""
    description: str


@frozen
class ServerAbout:
    """A server's description of itself, as the specification names the fields.

    Source: `InitializeResult` of MCP 2025-11-25.
    """

    info: Mapping[str, Any]
    """Its `serverInfo`."""
    capabilities: Mapping[str, Any]


@frozen
class McpServerStatus:
    """A snapshot of one server's state."""

    name: str
    state: Literal["starting", "ready", "failed"]
    tools: tuple[McpToolSummary, ...] = ()
    """The tools that the configuration allows."""
    software: str | None = None
    """The name and version that the server gives; None before the handshake."""
    protocol_version: str | None = None
    connect_s: float | None = None
    """The seconds from its start to the end of the handshake; None before that."""
    list_s: float | None = None
    """The seconds that listing its tools took."""
    about: ServerAbout | None = None
    """None before the handshake."""
    failure: McpFailure | None = None
    wanted_login: WantedLogin | None = None
    """The login that it demands, if it refused us for the want of one."""
    error: str | None = None
    """A sentence that names the server, and the end of its stderr."""


@runtime_checkable
class McpServers(Protocol):
    """The servers of a session, for a frontend: `session.feature(McpServers)`."""

    def statuses(self) -> Sequence[McpServerStatus]:
        """The servers' states, sorted by name, without disabled servers."""
        ...


@frozen
class UserQuestion:
    """A question of the model. The user may always answer with a text of their own."""

    id: str
    header: str
    """A word or two; may be empty."""
    question: str
    options: tuple[tuple[str, str], ...]
    """The labels and descriptions of the options, at least one."""


@frozen
class Elicitation:
    """A question to the user: a form or an address. Either `schema` or `url` is set."""

    server: str
    """The asker: an MCP server; for `questions` the nickname of a child session, or `codex-py`."""
    message: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of a form: an object whose properties are plain values."""
    url: str | None = None
    """An address for the user to visit."""
    questions: tuple[UserQuestion, ...] = ()
    """Questions of the model; `schema` is a form with the same questions.

    Answer each by its id, with the label of an option or any other text. A list may have
    `user_note: TEXT` besides the label. In the form, `ID_other` takes other text.
    """

    @property
    def request(self) -> dict[str, Any]:
        """The params of `elicitation/create` for a client, without the message."""
        if self.url is not None:
            return {"mode": "url", "url": self.url, "elicitationId": self.url}
        return {"mode": "form", "requestedSchema": dict(self.schema or {})}


@frozen
class ElicitationAnswer:
    """The answer of the user to an `Elicitation`."""

    action: Literal["accept", "decline", "cancel"]
    """`cancel`: the user dismissed the question."""
    content: Mapping[str, str | int | float | bool | list[str] | None] | None = None
    """The values of the form; only with `accept`."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Read a client's answer to `elicitation/create`.

        Any answer other than an explicit yes, with values that a form can have, means no.
        """
        action = answer.get("action")
        if action == "cancel":
            return cls("cancel")
        content = as_object(answer.get("content"))
        is_valid = all(_is_plain(value) for value in content.values())
        if action == "accept" and is_valid:
            return cls("accept", content)
        return cls("decline")


def _is_plain(value: object) -> bool:
    """True if a form can have this value."""
    if isinstance(value, list):
        return all(isinstance(each, str) for each in cast("list[object]", value))
    return value is None or isinstance(value, str | int | float)


class Elicitor(Protocol):
    """Asks the user the questions of MCP servers and of the model."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Ask the user, without a deadline: the time limit of the call is suspended meanwhile.

        It is cancelled when the server withdraws the question.
        """
        ...


class DecliningElicitor:
    """Declines every question, for runs without a user."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:  # noqa: ARG002
        return ElicitationAnswer("decline")
