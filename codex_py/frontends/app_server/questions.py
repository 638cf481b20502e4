"""Asks the client about a call, and what an MCP server or the model wants to know. A strange answer is a no."""

from collections.abc import Callable
from typing import Any, Final, cast

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.frontends.app_server.items import TurnFeed, milliseconds
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

_DECISIONS: Final = {
    "accept": ReviewDecision.APPROVED,
    "acceptForSession": ReviewDecision.APPROVED_FOR_SESSION,
    "decline": ReviewDecision.DENIED,
    "cancel": ReviewDecision.ABORT,
}
_WITH_RULE: Final = "acceptWithExecpolicyAmendment"
_NO: Final = Review(ReviewDecision.DENIED)


class Questions:
    """An `Approver` and an `Elicitor` for one thread.

    Args:
        place: the id of the thread.
        turn: the running turn; None if there is none.
        notify: sends a notification of the thread.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        place: Callable[[], str],
        turn: Callable[[], TurnFeed | None],
        notify: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._rpc, self._thread_id, self._turn, self._notify = rpc, place, turn, notify

    async def review(self, request: ApprovalRequest) -> Review:
        if (turn := self._turn()) is None:
            return _NO
        if request.kind == "mcp":
            return await self._review_call(turn, request)
        item_id = self._shown(turn, request)
        params: dict[str, Any] = {
            "itemId": item_id,
            "startedAtMs": milliseconds(),
            "reason": request.reason,
        }
        if request.kind == "patch":
            answer = await self._ask("item/fileChange/requestApproval", turn, params)
        else:
            rule = list(request.prefix) if request.prefix else None
            decisions: list[Any] = ["accept", "decline", "cancel"]
            if request.can_last:
                decisions.insert(1, "acceptForSession")
            if rule:
                decisions.insert(1, {_WITH_RULE: {"execpolicy_amendment": rule}})
            params |= {
                "command": request.summary,
                "cwd": str(request.cwd),
                "commandActions": [{"type": "unknown", "command": request.summary}],
                "proposedExecpolicyAmendment": rule,
                "availableDecisions": decisions,
            }
            answer = await self._ask("item/commandExecution/requestApproval", turn, params)
        return _review(answer.get("decision"), request)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if (turn := self._turn()) is None:
            return ElicitationAnswer("decline")
        if elicitation.questions:
            return await self._ask_user(turn, elicitation)
        params: dict[str, Any] = {
            "serverName": elicitation.server,
            "message": elicitation.message,
            "_meta": None,
        }
        if elicitation.url is not None:
            params |= {"mode": "url", "url": elicitation.url, "elicitationId": elicitation.url}
        else:
            params |= {"mode": "form", "requestedSchema": dict(elicitation.schema or {})}
        answer = await self._ask("mcpServer/elicitation/request", turn, params)
        action, content = answer.get("action"), as_object(answer.get("content"))
        if action not in {"accept", "cancel"}:
            return ElicitationAnswer("decline")
        return ElicitationAnswer(action, content if action == "accept" else None)

    async def _review_call(self, turn: TurnFeed, request: ApprovalRequest) -> Review:
        """As Codex asks about a call of an MCP server: with a form that has no fields."""
        name, arguments = request.tool or (request.summary, {})
        meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": dict(arguments)}
        params: dict[str, Any] = {
            "serverName": name.removeprefix("mcp__").partition("__")[0],
            "mode": "form",
            "message": request.reason or f"Allow the call of {name}?",
            "requestedSchema": {"type": "object", "properties": {}},
            "_meta": meta,
        }
        answer = await self._ask("mcpServer/elicitation/request", turn, params)
        match answer.get("action"), answer.get("_meta"):
            case "accept", {"persist": "session"} if request.can_last:
                return Review(ReviewDecision.APPROVED_FOR_SESSION)
            case "accept", _:
                return Review(ReviewDecision.APPROVED)
            case "cancel", _:
                return Review(ReviewDecision.ABORT)
            case _:
                return _NO

    async def _ask_user(self, turn: TurnFeed, asked: Elicitation) -> ElicitationAnswer:
        questions = [
            {
                "id": each.id,
                "header": each.header,
                "question": each.question,
                "isOther": True,
                "isSecret": False,
                "options": [{"label": label, "description": text} for label, text in each.options],
            }
            for each in asked.questions
        ]
        params = {"itemId": turn.new_id(), "questions": questions}
        answer = await self._ask("item/tool/requestUserInput", turn, params)
        given: Any = answer.get("answers")
        content = {
            name: [text for text in cast("list[Any]", each["answers"]) if isinstance(text, str)]
            for name, each in (
                cast("dict[str, Any]", given) if isinstance(given, dict) else {}
            ).items()
            if isinstance(each, dict)
            and isinstance(cast("dict[str, Any]", each).get("answers"), list)
        }
        return ElicitationAnswer("accept", content) if content else ElicitationAnswer("decline")

    def _shown(self, turn: TurnFeed, request: ApprovalRequest) -> str:
        shown = turn.asked(request)
        while True:
            try:
                notice = next(shown)
            except StopIteration as end:
                return end.value
            self._notify(notice.method, notice.params)

    async def _ask(self, method: str, turn: TurnFeed, params: dict[str, Any]) -> dict[str, Any]:
        """The answer; empty if it is no object, if the client answers with an error, and if it leaves."""
        thread_id = self._thread_id()
        place = {"threadId": thread_id, "turnId": turn.turn_id}
        flag = "waitingOnApproval" if "pproval" in method else "waitingOnUserInput"
        self._tell_status(thread_id, [flag])

        def ended(number: int) -> None:
            resolved = {"threadId": thread_id, "requestId": number}
            self._notify("serverRequest/resolved", resolved)
            self._tell_status(thread_id, [])

        try:
            answer: Any = await self._rpc.request(method, {**place, **params}, ended)
        except RpcError:
            return {}
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}

    def _tell_status(self, thread_id: str, flags: list[str]) -> None:
        status = {"type": "active", "activeFlags": flags}
        self._notify("thread/status/changed", {"threadId": thread_id, "status": status})


def _review(decision: Any, request: ApprovalRequest) -> Review:
    match decision:
        case {"acceptWithExecpolicyAmendment": _} if request.prefix:
            return Review(ReviewDecision.APPROVED_WITH_RULE)
        case "acceptForSession" if not request.can_last:
            return Review(ReviewDecision.APPROVED)
        case str():
            return Review(_DECISIONS.get(decision, ReviewDecision.DENIED))
        case _:
            return _NO
