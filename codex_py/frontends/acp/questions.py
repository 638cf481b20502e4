"""Asks the client's user about calls, and passes on questions of MCP servers and of the model."""

import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.frontends.acp.updates import Update, Updates
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer
from codex_py.streams.terminal import printable

_YES: Final = ReviewDecision.APPROVED
_FOR_SESSION: Final = ReviewDecision.APPROVED_FOR_SESSION
_WITH_RULE: Final = ReviewDecision.APPROVED_WITH_RULE
_NO: Final = ReviewDecision.DENIED


@frozen
class ClientCapabilities:
    """The capabilities of a client. A value of a wrong type counts as no, as the schema says."""

    has_terminal: bool = False
    has_notices: bool = False
    has_forms: bool = False
    has_urls: bool = False

    @classmethod
    def of(cls, params: object) -> "ClientCapabilities":
        """Read the capabilities from the params of `initialize`."""
        can = as_object(as_object(params).get("clientCapabilities"))
        elicitation = as_object(can.get("elicitation"))
        return cls(
            has_terminal=as_object(can.get("auth")).get("terminal") is True,
            has_notices=isinstance(as_object(can.get("session")).get("notices"), dict),
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

    async def review(self, request: ApprovalRequest) -> Review:
        before, call = self._updates.question(request)
        self._send(before)
        offered = {
            decision.value: (decision, *row) for decision, *row in _options(request)
        }
        options = [
            {"optionId": option, "name": name, "kind": kind}
            for option, (_, name, kind) in offered.items()
        ]
        match await self._ask(
            "session/request_permission", toolCall=call, options=options
        ):
            case {"outcome": {"outcome": "selected", "optionId": str(option)}}:
                if option in offered:
                    decision = offered[option][0]
                else:
                    decision = _NO
            case {"outcome": {"outcome": "cancelled"}}:
                # A client that answers so cancels the turn.
                decision = ReviewDecision.ABORT
            case _:
                decision = _NO
        if request.agent is not None:
            is_allowed = decision in {_YES, _FOR_SESSION, _WITH_RULE}
            self._send(
                [self._updates.answered(call["toolCallId"], is_allowed=is_allowed)]
            )
        return Review(decision)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        client = self._client
        if not (client.has_forms if elicitation.url is None else client.has_urls):
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


def _options(request: ApprovalRequest) -> list[tuple[ReviewDecision, str, str]]:
    rows = [(_YES, "Allow", "allow_once")]
    if request.can_last:
        rows.append(
            (
                _FOR_SESSION,
                "Allow, and do not ask again in this session",
                "allow_always",
            )
        )
    if request.prefix is not None:
        words = printable(shlex.join(request.prefix))
        rows.append(
            (_WITH_RULE, f"Always allow what starts with `{words}`", "allow_always")
        )
    return [*rows, (_NO, "Reject", "reject_once")]
