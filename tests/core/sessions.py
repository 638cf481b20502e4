"""A session with a scripted model, and all that it says and writes kept."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codex_py.core.retry import RetryBudget
from codex_py.core.session import Session
from codex_py.core.thread_log import ThreadLog, ThreadState
from codex_py.errors import ModelError
from codex_py.protocol.approval import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.events import Event, EventSink, ThreadStarted
from codex_py.protocol.extension import (
    CommandResult,
    Extension,
    Feature,
    Thread,
    TurnStart,
)
from codex_py.protocol.items import FunctionCallOutput
from codex_py.protocol.messages import EncodedItem, decode_json, input_text, message
from codex_py.protocol.response_order import HistoryPlace
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.protocol.stream import Usage
from codex_py.protocol.tools import ToolCall, ToolOutput
from codex_py.tools.router import output_item
from tests.support.model import ScriptedModel
from tests.support.tool_context import router_of

Tool = Callable[[ToolCall], Awaitable[str]]

BASE = message("developer", [input_text("You are an agent.")])
ENVIRONMENT = "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"
SETTINGS = TurnSettings(
    model="m",
    provider="p",
    cwd=Path("/repo"),
    approval_policy=ApprovalPolicy.NEVER,
    sandbox_policy=SandboxPolicy(),
    context_window=112_000,
)


@dataclass
class FakeRecorder:
    lines: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    def response_item(
        self, item: EncodedItem, place: HistoryPlace | None = None
    ) -> None:
        self.lines.append(("response_item", decode_json(item)))

    def turn_context(self, payload: Mapping[str, Any]) -> None:
        self.lines.append(("turn_context", payload))

    def event_msg(
        self, payload: Mapping[str, Any], place: HistoryPlace | None = None
    ) -> None:
        self.lines.append(("event_msg", payload))

    def compacted(
        self, message: str, replacement_history: Sequence[EncodedItem]
    ) -> None:
        self.lines.append(
            ("compacted", (message, [decode_json(i) for i in replacement_history]))
        )

    def rename(self, name: str) -> None:
        self.lines.append(("name", name))

    def of_type(self, kind: str) -> list[Any]:
        return [payload for its_kind, payload in self.lines if its_kind == kind]


class FakeBudget:
    def next(self, error: ModelError) -> None:
        """Nothing is tried again."""

    def renew(self) -> None:
        pass


class FakeTools:
    """Its calls emit no items of their own."""

    def __init__(self, tool: "Tool", output_tokens: int) -> None:
        self.build_tool_call = router_of().build_tool_call
        self._tool = tool
        self._output_tokens = output_tokens

    async def dispatch(
        self, call: ToolCall, emit: EventSink
    ) -> list[FunctionCallOutput]:
        return [self.answer(call, ToolOutput(await self._tool(call)), emit)]

    def answer(
        self, call: ToolCall, output: ToolOutput, emit: EventSink
    ) -> FunctionCallOutput:
        item = output_item(call, output, limit_tokens=self._output_tokens)
        assert isinstance(item, FunctionCallOutput)
        return item


async def echo(call: ToolCall) -> str:
    return f"output of {call.call_id}"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [input_text(text)]}


def context(settings: TurnSettings) -> list[EncodedItem]:
    permissions = f"<permissions instructions>\n{settings.approval_policy}\n"
    return [
        message("developer", [input_text(permissions)]),
        message("user", [input_text(ENVIRONMENT)]),
    ]


def settings_for(choices: Choices) -> TurnSettings:
    return replace(
        SETTINGS,
        model=choices.model,
        reasoning_effort=choices.reasoning_effort,
        approval_policy=choices.approval_policy,
    )


def make_session(
    model: ScriptedModel,
    *,
    settings: TurnSettings = SETTINGS,
    recorder: FakeRecorder | None = None,
    sink: Callable[[Event], None] = lambda _: None,
    tool: Tool = echo,
    end_turn: Callable[[Session], Awaitable[None]] | None = None,
    items: Sequence[EncodedItem] | None = None,
    last_usage: Usage | None = None,
    told_model: str | None = None,
    compact_prompt: str | None = None,
    features: Sequence[Feature] = (),
    output_tokens: int = 1000,
    retries: Callable[[], RetryBudget] = FakeBudget,
) -> Session:
    def feature(_: Thread) -> Extension:
        return Extension(sink=said, around_turn=around_turn)

    def said(event: Event) -> None:
        if not isinstance(event, ThreadStarted):
            sink(event)

    @asynccontextmanager
    async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if end_turn is not None:
                try:
                    await end_turn(session)
                except asyncio.CancelledError:
                    await end_turn(session)
                    raise

    thread = ThreadState(
        id="t",
        instructions="You are an agent.",
        items=context(settings) if items is None else items,
        last_usage=last_usage or Usage(),
        model=told_model,
    )
    session = Session(
        ThreadLog(thread, recorder or FakeRecorder(), context),
        replace(settings, compact_prompt=compact_prompt),
        settings_for=settings_for,
        model=model,
        tools=FakeTools(tool, output_tokens),
        retries=retries,
        features=[*features, feature],
        run_command=_no_command,
        open_child=_no_child,
    )
    session.announce()
    return session


async def _no_command(*_: object, **__: object) -> CommandResult:
    raise AssertionError("the core runs no commands")


def _no_child(*_: object, **__: object) -> Any:
    raise AssertionError("the core opens no children")
