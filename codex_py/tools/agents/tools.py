"""The tools for subagents: `spawn_agent`, `wait_agent`, `send_input`, `close_agent`, `resume_agent`.

Source of names, arguments, outputs, texts and items: the tools of Codex 0.169 (`multi_agent_v1`).
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Final, Protocol, get_args

from codex_py.protocol.calls import PastCall, PastItems, json_object
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.events import (
    AgentState,
    AgentWord,
    CollabToolCall,
    ItemCompleted,
    ItemStarted,
    ThreadItem,
)
from codex_py.protocol.ids import is_thread_id
from codex_py.protocol.json_fields import as_object, text_field
from codex_py.protocol.messages import encode_json
from codex_py.protocol.prompts import UserPrompt
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.agents.params import (
    CloseParams,
    Refused,
    ResumeParams,
    SendParams,
    SpawnParams,
    WaitParams,
    prompt_of,
)
from codex_py.tools.base import ChangesNothing

NOT_FOUND: Final = AgentState("not_found")
_MIN_WAIT_S, _MAX_WAIT_S = 10.0, 3600.0


class Agents(Protocol):
    """The subagents that one thread can reach. Ids are thread ids."""

    @property
    def thread_id(self) -> str: ...

    def state(self, agent_id: str) -> AgentState:
        """`not_found` for a closed or an unknown one."""
        ...

    def names(self) -> Mapping[str, str]:
        """Nicknames by id, also of closed ones."""
        ...

    async def spawn(self, prompt: UserPrompt, params: SpawnParams) -> str:
        """Start an agent and return its id. A `Refused` says why none can be started."""
        ...

    async def wait(self, ids: Sequence[str], timeout_s: float) -> Mapping[str, AgentState]:
        """Wait until one of them has nothing to do. Returns those; none, if the time is over."""
        ...

    async def send(self, agent_id: str, prompt: UserPrompt, *, interrupt: bool) -> str:
        """Returns an id of the message."""
        ...

    async def close(self, agent_id: str) -> None: ...

    async def resume(self, agent_id: str) -> None:
        """Open it again, if it is closed. A `Refused` says why that is not possible."""
        ...


class AgentTool(ChangesNothing):
    name: ClassVar[str]
    params: ClassVar[type[Any]]
    parallel = True
    shown_as: ClassVar[Any]

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    async def run(self, params: Any, context: ToolContext) -> ToolOutput:
        try:
            return ToolOutput(encode_json(await self._answer(params, context)).decode())
        except Refused as error:
            return ToolOutput(str(error), success=False)

    async def _answer(self, params: Any, context: ToolContext) -> dict[str, Any]:
        raise NotImplementedError

    @contextmanager
    def _item(
        self, context: ToolContext, ids: Sequence[str], prompt: str | None = None
    ) -> Generator["_RunningItem"]:
        """Start the item of a call. It is completed when the context is left, on every path."""
        item = CollabToolCall(
            id=context.next_item_id(),
            tool=self.shown_as,
            sender_thread_id=self._agents.thread_id,
            receiver_thread_ids=ids,
            prompt=prompt,
            names=dict(self._agents.names()),
        )
        context.emit(ItemStarted(item))
        running = _RunningItem(item)
        try:
            yield running
        finally:
            ended = replace(running.item, names=dict(self._agents.names()))
            context.emit(ItemCompleted(ended))

    def _known(self, agent_id: str, item: "_RunningItem") -> AgentState:
        if (state := self._agents.state(agent_id)) is NOT_FOUND:
            item.end({agent_id: state})
            raise Refused(f"agent with id {agent_id} not found")
        return state

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        output = json_object(call.output)
        if not output:
            return None
        named = output.get("agent_id") or call.arguments.get("target") or call.arguments.get("id")
        ids = [str(named)] if named else [str(each) for each in call.arguments.get("targets") or ()]
        names = {ids[0]: text_field(output, "nickname")} if "nickname" in output else {}
        for earlier in past.items.values():
            names |= earlier.names if isinstance(earlier, CollabToolCall) else {}
        item = CollabToolCall(
            id=past.next_id(),
            tool=self.shown_as,
            sender_thread_id="",
            receiver_thread_ids=ids,
            prompt=text_field(call.arguments, "message") or None,
            names=names,
        )
        return ended(item, {id_: _read(s) for id_, s in as_object(output.get("status")).items()})


class _RunningItem:
    def __init__(self, item: CollabToolCall) -> None:
        self.item = replace(item, status="failed")

    def end(self, states: Mapping[str, AgentState], receivers: Sequence[str] | None = None) -> None:
        self.item = ended(self.item, states)
        if receivers is not None:
            self.item = replace(self.item, receiver_thread_ids=receivers)


def ended(item: CollabToolCall, states: Mapping[str, AgentState]) -> CollabToolCall:
    failing = {"errored", "not_found"} if item.tool == "wait" else {"not_found"}
    failed = any(state.status in failing for state in states.values())
    return replace(item, agents_states=states, status="failed" if failed else "completed")


class SpawnAgent(AgentTool):
    name = "spawn_agent"
    params = SpawnParams
    shown_as = "spawn_agent"

    async def _answer(self, params: SpawnParams, context: ToolContext) -> dict[str, Any]:
        prompt = prompt_of(params, context.cwd)
        with self._item(context, (), prompt.text) as item:
            agent_id = await self._agents.spawn(prompt, params)
            item.end({agent_id: AgentState("pending_init")}, [agent_id])
        return {"agent_id": agent_id, "nickname": self._agents.names()[agent_id]}


class WaitAgent(AgentTool):
    name = "wait_agent"
    params = WaitParams
    shown_as = "wait"

    async def _answer(self, params: WaitParams, context: ToolContext) -> dict[str, Any]:
        if not params.targets:
            raise Refused("agent ids must be non-empty")
        ids = [_checked(agent_id) for agent_id in params.targets]
        with self._item(context, ids) as item:
            timeout_s = min(max(params.timeout_ms / 1000, _MIN_WAIT_S), _MAX_WAIT_S)
            states = await self._agents.wait(ids, timeout_s)
            item.end(states)
        status = {agent_id: data_of(state) for agent_id, state in states.items()}
        return {"status": status, "timed_out": not status}


class SendInput(AgentTool):
    name = "send_input"
    params = SendParams
    shown_as = "send_input"

    async def _answer(self, params: SendParams, context: ToolContext) -> dict[str, Any]:
        target, prompt = _checked(params.target), prompt_of(params, context.cwd)
        with self._item(context, [target], prompt.text) as item:
            state = self._known(target, item)
            sent = await self._agents.send(target, prompt, interrupt=params.interrupt)
            item.end({target: state})
        return {"submission_id": sent}


class CloseAgent(AgentTool):
    name = "close_agent"
    params = CloseParams
    shown_as = "close_agent"

    async def _answer(self, params: CloseParams, context: ToolContext) -> dict[str, Any]:
        target = _checked(params.target)
        with self._item(context, [target]) as item:
            previous = self._known(target, item)
            await self._agents.close(target)
            item.end({target: previous})
        return {"previous_status": data_of(previous)}


class ResumeAgent(AgentTool):
    name = "resume_agent"
    params = ResumeParams
    shown_as = "wait"

    async def _answer(self, params: ResumeParams, context: ToolContext) -> dict[str, Any]:
        target = _checked(params.id)
        with self._item(context, [target]) as item:
            try:
                await self._agents.resume(target)
            except Refused:
                item.end({target: NOT_FOUND})
                raise
            state = self._agents.state(target)
            item.end({target: state})
        return {"status": data_of(state)}


AGENT_TOOLS: Final = (SpawnAgent, SendInput, ResumeAgent, WaitAgent, CloseAgent)


def _checked(agent_id: str) -> str:
    if not is_thread_id(agent_id):
        raise Refused(f"invalid agent id {agent_id}: it is no UUID")
    return agent_id.lower()


def data_of(state: AgentState) -> Any:
    """The state as a model reads it."""
    if state.status in {"completed", "errored"}:
        return {state.status: state.message}
    return state.status


def _read(data: Any) -> AgentState:
    """The inverse of `data_of`, for any JSON value."""
    fields = as_object(data) or {str(data): None}
    word, message = next(iter(fields.items()))
    status: Any = word if word in get_args(AgentWord) else "not_found"
    return AgentState(status, None if message is None else str(message))
