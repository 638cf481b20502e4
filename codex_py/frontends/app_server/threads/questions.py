"""Asks the client about calls, and passes on questions of MCP servers and of the model.

An unexpected answer means no.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from codex_py.app.approval_answers import (
    FOR_SESSION,
    NO,
    ONCE,
    STOP,
    WITH_RULE,
    ApprovalAnswer,
    offered_answers,
)
from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.app.views.command_script import script_of
from codex_py.frontends.app_server.turn_items.command_actions import command_actions
from codex_py.frontends.app_server.turn_items.items import (
    Fields,
    Notify,
    TurnFeed,
    milliseconds,
)
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, UserQuestion

_SPELLINGS: Final = {
    ONCE: "accept",
    FOR_SESSION: "acceptForSession",
    NO: "decline",
    STOP: "cancel",
}
_WITH_RULE: Final = "acceptWithExecpolicyAmendment"
_ELICITATION: Final = "mcpServer/elicitation/request"


class Questions:
    """An `Approver` and an `Elicitor` for one thread.

    Args:
        turn: returns the id of the thread, and the running turn, None if no turn runs.
        notify: sends notifications of the thread.
        subscribed: waits until the client wants to hear of the thread.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        turn: Callable[[], tuple[str, TurnFeed | None]],
        notify: Notify,
        subscribed: Callable[[], Awaitable[object]],
    ) -> None:
        self._rpc = rpc
        self._turn = turn
        self._notify = notify
        self._subscribed = subscribed

    async def review(self, request: ApprovalRequest) -> Review:
        _, turn = self._turn()
        if turn is None:
            return Review(ReviewDecision.DENIED)
        if request.kind in {"mcp", "network"}:
            return await self._review_call(request)
        reason = request.reason or ""
        if request.agent:
            reason = f"{request.agent}: {reason}"
        params: Fields = {
            "itemId": turn.asked(request),
            "startedAtMs": milliseconds(),
            "reason": reason or None,
        }
        if request.kind == "patch":
            answer = await self._ask("item/fileChange/requestApproval", params)
            return _review(answer.get("decision"), request)
        return await self._review_command(request, params)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if elicitation.questions:
            return await self._answers(elicitation.questions)
        form = {
            "serverName": elicitation.server,
            "message": elicitation.message,
            **elicitation.request,
        }
        answer = await self._ask(_ELICITATION, form)
        return ElicitationAnswer.of(answer)

    async def _answers(self, questions: Iterable[UserQuestion]) -> ElicitationAnswer:
        """Ask the questions of the model."""
        _, turn = self._turn()
        item_id = turn.new_id() if turn else ""
        shown = [_question(each) for each in questions]
        params = {"itemId": item_id, "isBlocking": True, "questions": shown}
        answer = await self._ask("item/tool/requestUserInput", params)
        content: Fields = {}
        for name, given in as_object(answer.get("answers")).items():
            texts = as_object(given).get("answers")
            if isinstance(texts, list):
                content[name] = [str(each) for each in cast("list[Any]", texts)]
        if content:
            return ElicitationAnswer("accept", content)
        return ElicitationAnswer("decline")

    async def _review_command(self, request: ApprovalRequest, params: Fields) -> Review:
        """Ask about a command. `params`: those that a patch has too."""
        offered = offered_answers(request)
        more = {
            "command": request.summary,
            "cwd": str(request.cwd),
            "commandActions": command_actions(
                script_of(request.summary), str(request.cwd)
            ),
            "proposedExecpolicyAmendment": request.prefix or None,
            "availableDecisions": [_spelled(each, request) for each in offered],
        }
        answer = await self._ask(
            "item/commandExecution/requestApproval", {**params, **more}
        )
        return _review(answer.get("decision"), request)

    async def _review_call(self, request: ApprovalRequest) -> Review:
        """Ask about a call of an MCP server as Codex does: with a form that has no fields."""
        name = request.summary
        arguments: Mapping[str, Any] = {}
        if request.tool is not None:
            name, arguments = request.tool
        server, _, _ = name.removeprefix("mcp__").partition("__")
        params: Fields = {
            "serverName": server,
            "message": request.reason or f"Allow the call of {name}?",
            "mode": "form",
            "requestedSchema": {"type": "object", "properties": {}},
            "_meta": {
                "codex_approval_kind": "mcp_tool_call",
                "tool_params": dict(arguments),
            },
        }
        answer = await self._ask(_ELICITATION, params)
        decision = answer.get("action")
        persist = as_object(answer.get("_meta")).get("persist")
        if decision == "accept" and persist == "session":
            decision = _SPELLINGS[FOR_SESSION]
        return _review(decision, request)

    async def _ask(self, method: str, params: Fields) -> Fields:
        """Send a request. Returns the client's answer.

        The answer is empty if it is an error or not an object, or if the client left. Without a
        turn, only the questions of MCP servers are asked: a call of the client may need one.
        """
        thread_id, turn = self._turn()
        if turn is not None:
            turn_id = turn.turn_id
        elif method == _ELICITATION:
            turn_id = None
        else:
            return {}

        def ended(number: int, _is_answered: bool) -> None:
            resolved = {"threadId": thread_id, "requestId": number}
            self._notify("serverRequest/resolved", resolved)
            self._tell_status(thread_id, [])

        if method.endswith("/requestApproval"):
            self._tell_status(thread_id, ["waitingOnApproval"])
        else:
            self._tell_status(thread_id, ["waitingOnUserInput"])
        place = {"threadId": thread_id, "turnId": turn_id}
        # As in Codex, a question waits for a client that has unsubscribed.
        await self._subscribed()
        try:
            answer = await self._rpc.request(method, {**place, **params}, ended)
        except RpcError:
            return {}
        return as_object(answer)

    def _tell_status(self, thread_id: str, flags: Sequence[str]) -> None:
        status: Fields = {"type": "active", "activeFlags": flags}
        _, turn = self._turn()
        if turn is None and not flags:
            status = {"type": "idle"}
        told = {"threadId": thread_id, "status": status}
        self._notify("thread/status/changed", told)


def _question(question: UserQuestion) -> Fields:
    options = [
        {"label": label, "description": text} for label, text in question.options
    ]
    return {
        "id": question.id,
        "header": question.header,
        "question": question.question,
        "isOther": True,
        "isSecret": False,
        "options": options,
    }


def _spelled(answer: ApprovalAnswer, request: ApprovalRequest) -> Any:
    """The answer as Codex spells it. The one with a rule repeats the rule."""
    if answer is WITH_RULE:
        return {_WITH_RULE: {"execpolicy_amendment": list(request.prefix or ())}}
    return _SPELLINGS[answer]


def _review(decision: Any, request: ApprovalRequest) -> Review:
    """Read the client's decision. An answer that was not offered means no."""
    for answer in offered_answers(request):
        if decision == _spelled(answer, request):
            return answer.review()
    if decision == _SPELLINGS[FOR_SESSION]:
        # The yes cannot last, but it is one.
        return ONCE.review()
    return NO.review()
