"""Asks the client's user about calls, and passes on questions of MCP servers and of the model."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

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


class _Offer(NamedTuple):
    """An answer that the user can choose."""

    decision: ReviewDecision
    name: str
    kind: str
    """The kind of answer, in ACP's words: clients choose an icon by it."""


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
        auth = as_object(can.get("auth"))
        session = as_object(can.get("session"))
        elicitation = as_object(can.get("elicitation"))
        return cls(
            has_terminal=auth.get("terminal") is True,
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
        offers = _offers(request)
        options = [
            {"optionId": offer.decision.value, "name": offer.name, "kind": offer.kind}
            for offer in offers
        ]
        answer = await self._ask(
            "session/request_permission", toolCall=call, options=options
        )
        decision = _decision(answer, offers)
        if request.agent is not None:
            is_allowed = decision in {_YES, _FOR_SESSION, _WITH_RULE}
            update = self._updates.answered(call["toolCallId"], is_allowed=is_allowed)
            self._send([update])
        return Review(decision)

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


def _offers(request: ApprovalRequest) -> list[_Offer]:
    """The answers to a question, in the order in which they are shown."""
    offers = [_Offer(_YES, "Allow", "allow_once")]
    if request.can_last:
        name = "Allow, and do not ask again in this session"
        offers.append(_Offer(_FOR_SESSION, name, "allow_always"))
    if request.prefix is not None:
        words = printable(shlex.join(request.prefix))
        name = f"Always allow what starts with `{words}`"
        offers.append(_Offer(_WITH_RULE, name, "allow_always"))
    offers.append(_Offer(_NO, "Reject", "reject_once"))
    return offers


def _decision(answer: Mapping[str, Any], offers: Iterable[_Offer]) -> ReviewDecision:
    """Read the client's answer. An answer that was not offered means no."""
    match answer:
        case {"outcome": {"outcome": "selected", "optionId": option}}:
            for offer in offers:
                if offer.decision.value == option:
                    return offer.decision
            return _NO
        case {"outcome": {"outcome": "cancelled"}}:
            # A client that answers so cancels the turn.
            return ReviewDecision.ABORT
        case _:
            return _NO
