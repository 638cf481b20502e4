"""The tools for subagents: their arguments, their outputs, and the thread items of their calls.

Source of names, arguments, outputs, texts and items: the tools of Codex 0.171 (`multi_agent_v1`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, get_args

from codex_py.protocol.calls import PastCall, PastItems
from codex_py.protocol.checked import guess
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import (
    AgentState,
    AgentWord,
    CollabToolCall,
    ErrorItem,
    ThreadItem,
)
from codex_py.protocol.events import ItemCompleted, ItemStarted
from codex_py.protocol.frozen import frozen
from codex_py.protocol.ids import is_thread_id
from codex_py.protocol.json_fields import as_object, json_object, text_field
from codex_py.protocol.messages import encode_json
from codex_py.protocol.prompts import UserPrompt
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ChangesNothing, ToolParams

NOT_FOUND: Final = AgentState("not_found")
_LINKS = {"skill": "$", "mention": "@"}


class CallRefused(Exception):
    """A call that cannot be carried out. The text is its whole output, in the words of Codex."""


@frozen(kw_only=True)
class Item(ToolParams):
    type: Annotated[str, "`text`, `local_image`, `skill` or `mention`."] = "text"
    text: Annotated[str | None, "Of a `text`."] = None
    name: Annotated[str | None, "Of a `skill` or `mention`."] = None
    path: Annotated[
        str | None, "File of a `local_image` or `skill`, or target of a `mention`."
    ] = None
    image_url: Annotated[str | None, "Not supported: use `local_image`."] = None
    audio_url: Annotated[str | None, "Not supported."] = None


@frozen(kw_only=True)
class MessageParams(ToolParams):
    message: Annotated[
        str | None, "The message as plain text. Either this or `items`."
    ] = None
    items: Annotated[list[Item] | None, "The message in parts."] = None


@frozen(kw_only=True)
class SpawnParams(MessageParams):
    agent_type: Annotated[str | None, "What kind of agent to start."] = None
    fork_context: Annotated[
        bool, "True: it is told what the user has said so far. Default: false."
    ] = False
    model: Annotated[str | None, "Another model than yours."] = None
    reasoning_effort: Annotated[str | None, "Another effort than yours."] = None


@frozen(kw_only=True)
class WaitParams(ToolParams):
    targets: Annotated[list[str], "Ids of the agents to wait for."]
    timeout_ms: Annotated[
        float,
        "Default: 30000, at least 10000, at most 3600000. Prefer minutes to polling.",
    ] = 30_000


@frozen(kw_only=True)
class SendParams(MessageParams):
    target: Annotated[str, "Id of the agent."]
    interrupt: Annotated[
        bool, "True: stop what it is doing and take up the message now. Default: false."
    ] = False


@frozen(kw_only=True)
class CloseParams(ToolParams):
    target: Annotated[str, "Id of the agent."]


@frozen(kw_only=True)
class ResumeParams(ToolParams):
    id: Annotated[str, "Id of the closed agent."]


_CALLS: Final[Mapping[str, tuple[type[Any], Any]]] = {
    "spawn_agent": (SpawnParams, "spawn_agent"),
    "send_input": (SendParams, "send_input"),
    "resume_agent": (ResumeParams, "wait"),
    "wait_agent": (WaitParams, "wait"),
    "close_agent": (CloseParams, "close_agent"),
}
"""The parameters of each tool, and the tool that the items of its calls name."""


class Agents(Protocol):
    """The subagents that one thread can reach. Ids are thread ids."""

    thread_id: str
    names: Mapping[str, str]
    """Nicknames by id, including closed subagents."""

    async def answer(
        self, params: Any, ids: Sequence[str], prompt: UserPrompt | None
    ) -> tuple[Mapping[str, Any], Mapping[str, AgentState]]:
        """Carry out a call. Returns its output, and the states of its agents for display.

        Args:
            ids: the ids of the agents that the call names.
            prompt: the message of the call; None for calls of tools without one.

        Raises:
            CallRefused: the call cannot be carried out.
        """
        ...


class AgentTool(ChangesNothing):
    """One of the tools in `_CALLS`."""

    parallel = True

    def __init__(self, name: str, agents: Agents) -> None:
        self.name = name
        self.params: type[Any]
        self._shown_as: Any
        self.params, self._shown_as = _CALLS[name]
        self._agents = agents

    async def run(self, params: Any, context: ToolContext) -> ToolOutput:
        """Carry out a call. A refused one has an output too, and an error item once it started."""
        agents = self._agents
        try:
            ids = _checked_ids(params)
            prompt = _prompt(params, context.cwd)
        except CallRefused as error:
            return ToolOutput(str(error), success=False)
        started = CollabToolCall(
            id=context.next_item_id(),
            tool=self._shown_as,
            sender_thread_id=agents.thread_id,
            receiver_thread_ids=ids,
            prompt=prompt and prompt.text,
            names=dict(agents.names),
        )
        context.emit(ItemStarted(started))
        ended = replace(started, status="failed")
        try:
            output, states = await agents.answer(params, ids, prompt)
            reached = replace(started, receiver_thread_ids=ids or [*states])
            ended = _ended(reached, states)
            return ToolOutput(encode_json(output).decode())
        except CallRefused as error:
            ended = replace(ended, agents_states=dict.fromkeys(ids, NOT_FOUND))
            message = f"{self.name} failed: {error}"
            error_item = ErrorItem(id=context.next_item_id(), message=message)
            context.emit(ItemCompleted(error_item))
            return ToolOutput(str(error), success=False)
        finally:
            ended = replace(ended, names=dict(agents.names))
            context.emit(ItemCompleted(ended))

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        output = json_object(call.output)
        if not output:
            return None
        if "agent_id" in output:
            ids = [str(output["agent_id"])]
        else:
            ids = _targets(call.arguments)
        item = CollabToolCall(
            id=past.next_id(),
            tool=self._shown_as,
            sender_thread_id="",
            receiver_thread_ids=ids,
            prompt=text_field(call.arguments, "message") or None,
            names=_past_names(ids, output, past),
        )
        statuses = as_object(output.get("status"))
        states = {agent_id: _state(status) for agent_id, status in statuses.items()}
        return _ended(item, states)


def _past_names(
    ids: Sequence[str], output: Mapping[str, Any], past: PastItems
) -> Mapping[str, str]:
    """Nicknames by id: that of the output of a call, and those of all earlier calls."""
    names: dict[str, str] = {}
    if ids and "nickname" in output:
        names[ids[0]] = text_field(output, "nickname")
    for earlier in past.items.values():
        if isinstance(earlier, CollabToolCall):
            names |= earlier.names
    return names


def _checked_ids(params: Any) -> list[str]:
    """The ids that a call names. Raises a `CallRefused` if one is invalid or a wait has none."""
    ids = [_checked(target) for target in _targets(asdict(params))]
    if not ids and isinstance(params, WaitParams):
        raise CallRefused("agent ids must be non-empty")
    return ids


def _prompt(params: Any, cwd: Path) -> UserPrompt | None:
    """The message of a call; None if its tool sends none.

    Args:
        cwd: the absolute folder of relative paths of images.

    Raises:
        CallRefused: the message is missing, or cannot be sent to an agent.
    """
    if not isinstance(params, MessageParams):
        return None
    message = params.message
    items = params.items
    if message is not None and items is not None:
        raise CallRefused("Provide either message or items, but not both")
    if message is None and items is None:
        raise CallRefused("Provide one of: message or items")
    if items is None:
        items = [Item(text=message)]
    if not items:
        raise CallRefused("Items can't be empty")
    texts: list[str] = []
    images: list[str] = []
    for item in items:
        if item.type == "local_image":
            images.append(str(cwd / (item.path or "")))
        else:
            texts.append(_text(item))
    text = "\n".join([each for each in texts if each])
    if not text.strip() and not images:
        raise CallRefused("Empty message can't be sent to an agent")
    return UserPrompt(text, tuple(images))


def _text(item: Item) -> str:
    """The text of an item that is no image. Raises a `CallRefused` for an unknown type."""
    sign = _LINKS.get(item.type)
    if sign is not None:
        return f"[{sign}{item.name or ''}]({item.path or ''})"
    if item.type != "text":
        known = ["text", "local_image", *_LINKS]
        raise CallRefused(
            f"Items of the type {item.type!r} cannot be sent to an agent here;"
            f" there are {', '.join(known)}{guess(known, item.type)}"
        )
    return item.text or ""


def _targets(arguments: Mapping[str, Any]) -> list[str]:
    """The ids in the arguments of any of the tools, unchecked."""
    target = arguments.get("target", arguments.get("id"))
    if target is not None:
        return [str(target)]
    return [str(each) for each in arguments.get("targets") or ()]


def _checked(agent_id: str) -> str:
    if not is_thread_id(agent_id):
        raise CallRefused(f"invalid agent id {agent_id}: it is no UUID")
    return agent_id.lower()


def _ended(item: CollabToolCall, states: Mapping[str, AgentState]) -> CollabToolCall:
    """The item of a call that has an output, with the states and the status from it."""
    failing = {"not_found"}
    if item.tool == "wait":
        failing.add("errored")
    failed = any(state.status in failing for state in states.values())
    status = "failed" if failed else "completed"
    return replace(item, agents_states=states, status=status)


def data_of(state: AgentState) -> Any:
    """The JSON value of a state for the model."""
    if state.status in {"completed", "errored"}:
        return {state.status: state.message}
    return state.status


def _state(data: Any) -> AgentState:
    """The inverse of `data_of`, for any JSON value."""
    fields = as_object(data) or {str(data): None}
    status: Any
    status, message = next(iter(fields.items()))
    if status not in get_args(AgentWord):
        status = "not_found"
    return AgentState(status, None if message is None else str(message))
