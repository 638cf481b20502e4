"""Asks the client's user about calls, and passes on questions of MCP servers and of the model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from codex_py.app.approval_answers import (
    FOR_SESSION,
    NO,
    ONCE,
    STOP,
    WITH_RULE,
    ApprovalAnswer,
    answer_by_id,
    offered_answers,
    rule_words,
)
from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.frontends.acp.updates import Update, Updates
from codex_py.protocol.approval import ApprovalRequest, Review
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

_SPELLINGS: Final = {
    ONCE: ("Allow", "allow_once"),
    FOR_SESSION: ("Allow, and do not ask again in this session", "allow_always"),
    WITH_RULE: ("Always allow what starts with `{words}`", "allow_always"),
    NO: ("Reject", "reject_once"),
}
"""The names and kinds of answers, in ACP's words: clients choose an icon by the kind."""


@frozen
class ClientCapabilities:
    """The capabilities of a client. A value of a wrong type counts as no, as the schema says."""

    has_terminal: bool = False
    """The client can show a terminal for a login."""
    can_run_commands: bool = False
    can_read_files: bool = False
    can_write_files: bool = False
    has_notices: bool = False
    has_forms: bool = False
    has_urls: bool = False

    @classmethod
    def of(cls, params: object) -> "ClientCapabilities":
        """Read the capabilities from the params of `initialize`."""
        can = as_object(as_object(params).get("clientCapabilities"))
        auth = as_object(can.get("auth"))
        files = as_object(can.get("fs"))
        session = as_object(can.get("session"))
        elicitation = as_object(can.get("elicitation"))
        return cls(
            has_terminal=auth.get("terminal") is True,
            can_run_commands=can.get("terminal") is True,
            can_read_files=files.get("readTextFile") is True,
            can_write_files=files.get("writeTextFile") is True,
            has_notices=isinstance(session.get("notices"), dict),
            has_forms=isinstance(elicitation.get("form"), dict),
            has_urls=isinstance(elicitation.get("url"), dict),
        )


class EditorQuestions:
    """The approver and the elicitor of one session. Any answer other than an explicit yes means no.

    Args:
        send: sends updates of the session.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        updates: Updates,
        send: Callable[[Iterable[Update]], None],
        client: ClientCapabilities,
    ) -> None:
        self._rpc = rpc
        self._updates = updates
        self._send = send
        self._client = client
        self.session_id = ""
        """The client's id of the session, set when it is known."""

    async def review(self, request: ApprovalRequest) -> Review:
        before, call = self._updates.question(request)
        self._send(before)
        # A client cancels the turn instead of choosing to stop.
        offered = [each for each in offered_answers(request) if each in _SPELLINGS]
        response = await self._ask(
            "session/request_permission",
            toolCall=call,
            options=[_option(answer, request) for answer in offered],
        )
        answer = _answer(response, offered)
        if request.agent is not None:
            call_id = call["toolCallId"]
            update = self._updates.answered(call_id, is_allowed=answer.allows)
            self._send([update])
        return answer.review()

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        can_show = self._client.has_urls
        if elicitation.url is None:
            can_show = self._client.has_forms
        if not can_show:
            return ElicitationAnswer("decline")
        message = f"{elicitation.server}: {elicitation.message}"
        answer = await self._ask(
            "elicitation/create", message=message, **elicitation.request
        )
        return ElicitationAnswer.of(answer)

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request. Returns the client's answer, empty if it is an error or not an object."""
        try:
            answer = await self._rpc.request(
                method, {"sessionId": self.session_id, **params}
            )
        except RpcError:
            return {}
        return as_object(answer)


def _option(answer: ApprovalAnswer, request: ApprovalRequest) -> dict[str, str]:
    name, kind = _SPELLINGS[answer]
    name = name.format(words=rule_words(request))
    return {"optionId": answer.id, "name": name, "kind": kind}


def _answer(
    response: Mapping[str, Any], offered: Sequence[ApprovalAnswer]
) -> ApprovalAnswer:
    """Read the client's response. An answer that was not offered means no."""
    match response:
        case {"outcome": {"outcome": "selected", "optionId": option}}:
            return answer_by_id(option, offered)
        case {"outcome": {"outcome": "cancelled"}}:
            # A client that answers so cancels the turn.
            return STOP
        case _:
            return NO
