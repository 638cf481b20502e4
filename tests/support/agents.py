"""A session that starts subagents, against a scripted server that tells parent and children apart."""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from codex_py.testing import RecordedRequest, ev_completed, ev_function_call, ev_message
from tests.support.server import ScriptedServer

Script: TypeAlias = Any
Step: TypeAlias = Any
"""A reply, or a function of the request and the ids of the children, in the order of their start."""

NAMESPACE = "multi_agent_v1"


def says(text: str, *, tokens: int = 10) -> list[dict[str, Any]]:
    return [*ev_message(text), ev_completed(input_tokens=tokens, output_tokens=1)]


def calls(
    name: str, call_id: str = "c1", *, index: int = 0, **arguments: Any
) -> list[dict[str, Any]]:
    extra: dict[str, Any] = (
        {"namespace": NAMESPACE} if name.endswith(("_agent", "_input")) else {}
    )
    call = ev_function_call(call_id, name, arguments, index=index, **extra)
    return [*call, ev_completed(input_tokens=10, output_tokens=1)]


def is_child(request: RecordedRequest) -> bool:
    return "x-openai-subagent" in request.headers


class AgentServer(ScriptedServer):
    """Plays `parent` for the session at the top, and `child` for every child, each from its beginning.

    Attributes:
        ids: thread ids of the children, in the order of their start.
    """

    def __init__(
        self, parent: Sequence[Step], child: Sequence[Step] = (), **options: Any
    ) -> None:
        self.ids: list[str] = []
        self.is_running = False
        self._steps = {"": list(parent)}
        self._child = child
        super().__init__([self._reply_to] * 200, **options)

    def _reply_to(self, request: RecordedRequest) -> Script:
        thread = request.headers["thread-id"] if is_child(request) else ""
        if not thread:
            self._note_ids(request)
        steps = self._steps.setdefault(thread, list(self._child))
        step: Step = steps.pop(0) if steps else says("there is nothing left to say")
        return step(request, self.ids) if callable(step) else step

    def _note_ids(self, request: RecordedRequest) -> None:
        for item in request.input:
            if item["type"] == "function_call_output" and '"agent_id"' in str(
                item["output"]
            ):
                agent_id = json.loads(item["output"])["agent_id"]
                if agent_id not in self.ids:
                    self.ids.append(agent_id)

    def then(self, *steps: Step) -> None:
        """Lengthen the script of the session at the top."""
        self._steps[""] += steps

    def start(self) -> None:
        self.is_running = True
        super().start()

    def of_children(self) -> list[RecordedRequest]:
        return [request for request in self.requests if is_child(request)]

    def of_parent(self) -> list[RecordedRequest]:
        return [request for request in self.requests if not is_child(request)]


def waits(call_id: str = "w1", timeout_ms: int = 20_000) -> Step:
    """Wait for all children."""

    def step(_: RecordedRequest, ids: Sequence[str]) -> list[dict[str, Any]]:
        return calls("wait_agent", call_id, targets=list(ids), timeout_ms=timeout_ms)

    return step


def to_first(name: str, call_id: str, *, key: str = "target", **arguments: Any) -> Step:
    """A call about the first child. `key`: the argument that has its id."""

    def step(_: RecordedRequest, ids: Sequence[str]) -> list[dict[str, Any]]:
        given: dict[str, Any] = {key: ids[0], **arguments}
        return calls(name, call_id, **given)

    return step


def texts(request: RecordedRequest) -> list[tuple[str, str]]:
    """Role and first text of each message."""
    return [
        (item["role"], item["content"][0]["text"])
        for item in request.input
        if item["type"] == "message"
    ]
