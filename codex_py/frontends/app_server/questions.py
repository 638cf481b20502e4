"""Asks the client about calls, and passes on questions of MCP servers and of the model.

An unexpected answer means no.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.frontends.app_server.items import Notify, TurnFeed, milliseconds
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

_DECISIONS: Final = {
    "accept": ReviewDecision.APPROVED,
    "acceptForSession": ReviewDecision.APPROVED_FOR_SESSION,
    "cancel": ReviewDecision.ABORT,
}
_WITH_RULE: Final = "acceptWithExecpolicyAmendment"


class Questions:
    """An `Approver` and an `Elicitor` for one thread.

    Args:
        turn: the id of the thread, and the running turn.
        notify: sends notifications of the thread.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        turn: Callable[[], tuple[str, TurnFeed | None]],
        notify: Notify,
    ) -> None:
        self._rpc = rpc
        self._turn = turn
        self._notify = notify

    async def review(self, request: ApprovalRequest) -> Review:
        _, turn = self._turn()
        if turn is None:
            return Review(ReviewDecision.DENIED)
        if request.kind in {"mcp", "network"}:
            return await self._review_call(request)
        agent = f"{request.agent}: " if request.agent else ""
        params: dict[str, Any] = {
            "itemId": turn.asked(request),
            "startedAtMs": milliseconds(),
            "reason": f"{agent}{request.reason or ''}" or None,
        }
        if request.kind == "patch":
            answer = await self._ask("item/fileChange/requestApproval", params)
            return _review(answer.get("decision"), request, None)
        rule = None
        if request.prefix:
            rule = {"execpolicy_amendment": list(request.prefix)}
        decisions: list[Any] = ["accept"]
        if request.can_last:
            decisions.append("acceptForSession")
        if rule:
            decisions.append({_WITH_RULE: rule})
        decisions += ["decline", "cancel"]
        params |= {
            "command": request.summary,
            "cwd": str(request.cwd),
            "proposedExecpolicyAmendment": rule and rule["execpolicy_amendment"],
            "availableDecisions": decisions,
        }
        answer = await self._ask("item/commandExecution/requestApproval", params)
        return _review(answer.get("decision"), request, rule)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if not elicitation.questions:
            said = {"serverName": elicitation.server, "message": elicitation.message}
            form = {**said, **elicitation.request}
            return ElicitationAnswer.of(
                await self._ask("mcpServer/elicitation/request", form)
            )
        _, turn = self._turn()
        questions = [
            {
                "id": each.id,
                "header": each.header,
                "question": each.question,
                "isOther": True,
                "isSecret": False,
                "options": [
                    {"label": label, "description": text}
                    for label, text in each.options
                ],
            }
            for each in elicitation.questions
        ]
        params = {"itemId": turn.new_id() if turn else "", "questions": questions}
        answer = await self._ask("item/tool/requestUserInput", params)
        content: dict[str, Any] = {}
        for name, given in as_object(answer.get("answers")).items():
            texts = as_object(given).get("answers")
            if isinstance(texts, list):
                content[name] = list(map(str, cast("list[Any]", texts)))
        if content:
            return ElicitationAnswer("accept", content)
        return ElicitationAnswer("decline")

    async def _review_call(self, request: ApprovalRequest) -> Review:
        """Ask about a call of an MCP server as Codex does: with a form that has no fields."""
        name, arguments = request.tool or (request.summary, {})
        params: dict[str, Any] = {
            "serverName": name.removeprefix("mcp__").partition("__")[0],
            "message": request.reason or f"Allow the call of {name}?",
            "mode": "form",
            "requestedSchema": {"type": "object", "properties": {}},
            "_meta": {
                "codex_approval_kind": "mcp_tool_call",
                "tool_params": dict(arguments),
            },
        }
        answer = await self._ask("mcpServer/elicitation/request", params)
        decision = answer.get("action")
        if (
            decision == "accept"
            and as_object(answer.get("_meta")).get("persist") == "session"
        ):
            decision = "acceptForSession"
        return _review(decision, request, None)

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request. Returns the client's answer.

        The answer is empty if it is an error or not an object, if the client left, or if no turn
        runs.
        """
        thread_id, turn = self._turn()
        if turn is None:
            return {}
        place = {"threadId": thread_id, "turnId": turn.turn_id}

        def tell_status(*flags: str) -> None:
            now = {"type": "active", "activeFlags": list(flags)}
            self._notify(
                "thread/status/changed", {"threadId": thread_id, "status": now}
            )

        def ended(number: int, _is_answered: bool) -> None:
            self._notify(
                "serverRequest/resolved", {"threadId": thread_id, "requestId": number}
            )
            tell_status()

        tell_status(
            "waitingOnApproval" if "Approval" in method else "waitingOnUserInput"
        )
        try:
            return as_object(
                await self._rpc.request(method, {**place, **params}, ended)
            )
        except RpcError:
            return {}


def _review(
    decision: Any,
    request: ApprovalRequest,
    rule: Any,
) -> Review:
    if decision == "acceptForSession" and not request.can_last:
        decision = "accept"
    if rule is not None and decision == {_WITH_RULE: rule}:
        return Review(ReviewDecision.APPROVED_WITH_RULE)
    name = decision if isinstance(decision, str) else ""
    return Review(_DECISIONS.get(name, ReviewDecision.DENIED))
