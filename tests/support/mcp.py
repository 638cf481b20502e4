"""Start MCP servers as a session does, without one."""

import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codex_py.mcp.connection import OnProgress
from codex_py.mcp.server import McpServer
from codex_py.mcp.servers import McpServers
from codex_py.mcp.settings import ServerSettings, StdioTransport
from codex_py.process.guardian import Guardian
from codex_py.process.piped import PipedProcess
from codex_py.protocol.mcp import (
    DecliningElicitor,
    Elicitation,
    ElicitationAnswer,
    Elicitor,
)

ODD_SERVER = Path(__file__).parents[1] / "mcp" / "servers" / "odd.py"


@dataclass
class ScriptedElicitor:
    answer: ElicitationAnswer
    asked: list[Elicitation] = field(default_factory=list[Elicitation])

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        self.asked.append(elicitation)
        return self.answer


@dataclass
class Started:
    """Servers that are up, or have failed to be."""

    servers: McpServers
    warnings: list[str]
    log: Path
    """What the odd servers were sent, a message a line."""

    def get(self, name: str) -> McpServer:
        return self.servers.by_name[name]

    async def call(
        self,
        server: str,
        tool: str,
        on_progress: OnProgress | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        return await self.get(server).request("tools/call", params, on_progress)

    def sent(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all messages of a method, of all servers."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        messages = [json.loads(line) for line in lines]
        return [m.get("params", {}) for m in messages if m.get("method") == method]


def odd_command(behaviour: str, log: Path) -> tuple[str, ...]:
    # Without site-packages it is up in 20 ms.
    return (sys.executable, "-ES", str(ODD_SERVER), behaviour, str(log))


def odd_server(tmp_path: Path, behaviour: str, **settings: Any) -> ServerSettings:
    """An odd server, named for its behaviour, which notes its messages in the folder."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = odd_command(behaviour, tmp_path / "messages")
    settings.setdefault("startup_timeout_s", 120.0)
    return ServerSettings(
        name=behaviour,
        transport=StdioTransport(command, tmp_path, environment),
        **settings,
    )


def peer_program(name: str) -> str:
    """The path of a server that others have written; the test is skipped where it is not installed."""
    peers = Path(os.environ.get("MCP_PEERS", ""))
    folders = (peers / "node_modules" / ".bin", peers / "venv" / "bin")
    path = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    if path is None:
        pytest.skip(f"{name} is not installed below MCP_PEERS")
    return path


@asynccontextmanager
async def started(
    tmp_path: Path,
    *behaviours: str,
    elicitor: Elicitor | None = None,
    others: Sequence[ServerSettings] = (),
    settle: bool = True,
    **settings: Any,
) -> AsyncGenerator[Started]:
    """Odd servers, each named for its behaviour, and any others."""
    guardian = Guardian()
    warnings: list[str] = []

    def spawn(transport: StdioTransport) -> PipedProcess:
        argv, environment = transport.argv, transport.environment
        return PipedProcess(guardian, argv, cwd=transport.cwd, environment=environment)

    def server(settings: ServerSettings) -> McpServer:
        return McpServer(
            settings,
            spawn=spawn,
            elicitor=elicitor or DecliningElicitor(),
            warn=warnings.append,
        )

    odd = [odd_server(tmp_path, behaviour, **settings) for behaviour in behaviours]
    servers = McpServers([server(one) for one in (*odd, *others)])
    servers.start()
    try:
        if settle:
            await servers.settled()
        yield Started(servers, warnings, tmp_path / "messages")
    finally:
        await servers.aclose()
        guardian.close()
