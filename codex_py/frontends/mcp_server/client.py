"""Sends notices about the work, and questions, to the MCP client that called."""

import asyncio
from typing import Any, Final

import mcp_types as types
from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError

from codex_py.app.approval_answers import (
    FOR_SESSION,
    NO,
    ONCE,
    STOP,
    answer_by_id,
)
from codex_py.frontends.mcp_server.notices import (
    codex_event,
    progress_text,
    warning_text,
)
from codex_py.protocol.approval import ApprovalRequest, Review
from codex_py.protocol.events import Event
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

ANSWER_TIMEOUT_S = 600.0
"""The time that the client's user has for an answer."""
_MAX_UNREAD_BYTES = 4 * 1024 * 1024
"""Notices are dropped if the client has left more than this unread; results never are."""

_WITH_WARNINGS = {"debug", "info", "notice", "warning"}
"""The log levels at which a client gets warnings."""
_TITLES = {
    "command": ("exec-approval", "Allow the agent to run this command"),
    "patch": ("patch-approval", "Allow the agent to make these edits"),
    "mcp": ("mcp-approval", "Allow the agent to call this tool"),
    "network": ("network-approval", "Allow a command to reach this host"),
}
"""The kinds of questions: their names in Codex, and what is asked."""
_SPELLINGS: Final = {
    ONCE: "Yes",
    FOR_SESSION: "Yes, and do not ask again for this",
    NO: "No",
}
"""The answers of the form."""
_DECISION = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "enum": [answer.id for answer in _SPELLINGS],
            "enumNames": list(_SPELLINGS.values()),
        }
    },
    "required": ["decision"],
}
"""The schema of the form with which the user answers."""


class Client:
    """The client at the other end of the connection."""

    def __init__(self, connection: Connection, writer: asyncio.StreamWriter) -> None:
        self._connection = connection
        self._writer = writer
        self.log_level: types.LoggingLevel = "info"

    @property
    def can_be_asked(self) -> bool:
        """True if the client shows forms. This is known after the handshake."""
        offered = self._elicitation
        return offered is not None and (offered.form is not None or offered.url is None)

    @property
    def can_open_urls(self) -> bool:
        return self._elicitation is not None and self._elicitation.url is not None

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification at once, in order with everything else that is written."""
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            return
        message = types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        line = message.model_dump_json(by_alias=True)
        self._writer.write(line.encode() + b"\n")

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """Send `elicitation/create`. If this is cancelled, the client is notified.

        Raises:
            MCPError: no answer came, in time or at all.
        """
        return await self._connection.send_raw_request(
            "elicitation/create", params, {"timeout": ANSWER_TIMEOUT_S}
        )

    @property
    def _elicitation(self) -> types.ElicitationCapability | None:
        offered = self._connection.client_capabilities
        if offered is None:
            return None
        return offered.elicitation


class ClientCall:
    """One call of a tool. The client gets the events and the questions of the call's turn."""

    def __init__(
        self,
        client: Client,
        request_id: types.RequestId,
        progress_token: str | int | None,
    ) -> None:
        self._client = client
        self._id = request_id
        self._progress_token = progress_token
        self._steps = 0

    @property
    def can_be_asked(self) -> bool:
        """True if the client shows forms, or opens addresses."""
        return self._client.can_be_asked or self._client.can_open_urls

    def tell(self, thread_id: str, event: Event) -> None:
        """Send an event of the thread: as Codex does, as progress, and as a warning.

        Most events are only some of these, or none.
        """
        message = codex_event(event)
        if message is not None:
            self.tell_codex(thread_id, message)
        progress = progress_text(event)
        if progress is not None and self._progress_token is not None:
            self._steps += 1
            step = {
                "progressToken": self._progress_token,
                "progress": self._steps,
                "message": progress,
            }
            self._client.notify("notifications/progress", step)
        warning = warning_text(event)
        if warning is not None and self._client.log_level in _WITH_WARNINGS:
            logged = {"level": "warning", "logger": "codex-py", "data": warning}
            self._client.notify("notifications/message", logged)

    def tell_codex(self, thread_id: str, message: dict[str, Any]) -> None:
        """Send a message of `codex/event`."""
        params = {
            "_meta": {"requestId": self._id, "threadId": thread_id},
            "id": str(self._id),
            "msg": message,
        }
        self._client.notify("codex/event", params)

    async def review(self, thread_id: str, request: ApprovalRequest) -> Review:
        """Ask the client's user. No answer counts as no."""
        if not self._client.can_be_asked:
            return NO.review("there is nobody to ask")
        kind, title = _TITLES[request.kind]
        # Put the reason on one line: the model wrote it, and a line could pass for the command.
        said = " ".join((request.reason or "").split())
        reason = f"\n\nReason: {said}" if said else ""
        agent = f"{request.agent}: " if request.agent else ""
        question = f"{agent}{title} in {request.cwd}?{reason}"
        params = {
            "message": f"{question}\n\n{request.summary}",
            "requestedSchema": _DECISION,
            # Clients written for Codex show these parts.
            "threadId": thread_id,
            "codex_elicitation": kind,
            "codex_mcp_tool_call_id": str(self._id),
            "codex_event_id": str(self._id),
            "codex_cwd": str(request.cwd),
        }
        try:
            answer = await self._client.ask(params)
        except MCPError as error:
            return NO.review(f"the user could not be asked: {error.message}")
        # Clients written for Codex answer without a form.
        chosen: Any = answer.get("decision")
        if answer.get("action") == "accept":
            form: dict[str, Any] = answer.get("content") or {}
            chosen = form.get("decision", chosen)
        return answer_by_id(chosen, [*_SPELLINGS, STOP]).review()

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Pass on a question of the thread's MCP server, or of the model, to the user."""
        client = self._client
        can_show = client.can_open_urls
        if elicitation.url is None:
            can_show = client.can_be_asked
        if not can_show:
            return ElicitationAnswer("decline")
        message = f"{elicitation.server}: {elicitation.message}"
        try:
            given = await client.ask({"message": message, **elicitation.request})
            answer = types.ElicitResult.model_validate(given)
        except (MCPError, ValueError):
            return ElicitationAnswer("decline")
        return ElicitationAnswer(answer.action, answer.content)
