"""Call `codex-py mcp-server` with the client of the official SDK."""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client.extension import NotificationBinding
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.message import SessionMessage
from pydantic import BaseModel, ConfigDict

from tests.support.codex_process import start_codex_py
from tests.support.program import Workplace, environment

Message: TypeAlias = SessionMessage | Exception


class CodexEvent(BaseModel):
    """The parameters of `codex/event`."""

    model_config = ConfigDict(extra="allow")

    msg: dict[str, Any]


@dataclass
class Agent:
    """An agent that is served, and what it has told and asked."""

    session: ClientSession
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    progress: list[str | None] = field(default_factory=list[str | None])
    logged: list[Any] = field(default_factory=list[Any])
    asked: list[str] = field(default_factory=list[str])
    event_came: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(
        self, tool: str = "codex", /, **arguments: Any
    ) -> types.CallToolResult:
        """`_` in a name stands for `-`; the prompt is `go`, the sandbox off."""
        given = {name.replace("_", "-"): value for name, value in arguments.items()}
        defaults = {"prompt": "go"}
        if tool == "codex":
            defaults["sandbox"] = "danger-full-access"

        async def on_progress(
            progress: float,
            total: float | None,
            message: str | None,
        ) -> None:
            self.progress.append(message)

        return await self.session.call_tool(
            tool, {**defaults, **given}, progress_callback=on_progress
        )

    async def saw(self, kind: str) -> None:
        """Wait for an event of Codex's."""
        async with asyncio.timeout(120):
            while all(event["type"] != kind for event in self.events):
                self.event_came.clear()
                await self.event_came.wait()


@asynccontextmanager
async def served(
    place: Workplace,
    *args: str,
    sandbox: str | None = "danger-full-access",
    answer: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[Agent]:
    """Start the server in a workplace, and shake hands.

    Args:
        sandbox: what calls may ask for at most; None: as configured.
        answer: the form that every question is answered with; without, the client cannot be asked.
    """

    async def elicited(
        context: ClientRequestContext,
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        agent.asked.append(params.message)
        return types.ElicitResult(action="accept", content=dict(answer or {}))

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        agent.logged.append(params.data)

    async def told(event: CodexEvent) -> None:
        agent.events.append(event.msg)
        agent.event_came.set()

    words = [*(["-s", sandbox] if sandbox else []), *args]
    async with (
        mcp_server(words, place.cwd, environment(place.home, env)) as (read, write),
        ClientSession(
            read,
            write,
            elicitation_callback=None if answer is None else elicited,
            logging_callback=logged,
            notification_bindings=[
                NotificationBinding(
                    method="codex/event", params_type=CodexEvent, handler=told
                )
            ],
        ) as session,
    ):
        agent = Agent(session)
        await session.initialize()
        yield agent


@asynccontextmanager
async def mcp_server(
    args: Sequence[str], cwd: Path, environment: Mapping[str, str]
) -> AsyncGenerator[
    tuple[ObjectReceiveStream[Message], ObjectSendStream[SessionMessage]]
]:
    """Start `codex-py mcp-server ARGS`. Gives the messages from it and to it; it ends when its standard input does."""
    program = start_codex_py(
        ["mcp-server", *args],
        cwd,
        environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    stdin, stdout = program.stdin, program.stdout
    assert stdin is not None
    assert stdout is not None
    came, read = anyio.create_memory_object_stream[Message]()
    write, sent = anyio.create_memory_object_stream[SessionMessage]()

    async def receive() -> None:
        async with came:
            while line := await anyio.to_thread.run_sync(stdout.readline):
                with suppress(anyio.BrokenResourceError):
                    await came.send(
                        SessionMessage(
                            types.jsonrpc_message_adapter.validate_json(
                                line, by_name=False
                            )
                        )
                    )

    async def send() -> None:
        async with sent:
            async for one in sent:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await anyio.to_thread.run_sync(
                    os.write, stdin.fileno(), f"{text}\n".encode()
                )

    with program:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(receive)
                group.start_soon(send)
                try:
                    yield read, write
                finally:
                    write.close()
                    read.close()
                    stdin.close()
            assert program.wait(60) == 0
        finally:
            program.kill()


def text_of(result: types.CallToolResult) -> str:
    """The text of a result that is nothing else."""
    (part,) = result.content
    assert isinstance(part, types.TextContent)
    return part.text


def thread_of(result: types.CallToolResult) -> str:
    return result.structured_content["threadId"]
