"""`codex-py mcp-server`: the agent as an MCP server, over standard input and output.

It serves the protocol versions that begin with a handshake, up to 2025-11-25. In later versions, a
server cannot ask its client anything, so approvals could only be refused. Clients that know these
versions fall back.
"""

import asyncio
import gc
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_connection
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.interruption import Interruption
from codex_py.command_line.serving import served_options
from codex_py.config.config import Config
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, ExitCode, SessionError, UsageError
from codex_py.frontends.mcp_server import tools
from codex_py.frontends.mcp_server.ceiling import Ceiling
from codex_py.frontends.mcp_server.client import Client, ClientCall
from codex_py.frontends.mcp_server.messages import ClientMessages
from codex_py.frontends.mcp_server.threads import Threads
from codex_py.instructions import instruction_text
from codex_py.mcp.stdio import IncomingMessages, OutgoingMessages
from codex_py.rollout.index import find_session
from codex_py.rollout.records import read_meta
from codex_py.streams.messages import standard_pipes
from codex_py.streams.standard import OutputStream
from codex_py.version import __version__

_ORIGINATOR = "codex_mcp_server"
_STDERR_TIMEOUT_S = 0.5


def run_mcp_server(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Serve one client until it leaves. Returns the exit code."""
    if arguments.words[1:]:
        raise UsageError(
            f"unexpected argument {arguments.words[1]!r}: the prompts come with the calls"
        )
    if arguments.worktree is not None:
        raise UsageError(
            "--worktree belongs to `exec` and the terminal: a call names its folder"
        )
    configs = tools.ThreadConfigs(arguments, environment)
    config = configs.config(None, has_user=True)
    config.require_enforced()
    if not arguments.trust_client:
        added = [(config.cwd / name).resolve() for name in arguments.add_dir]
        ceiling = Ceiling(config, (config.cwd, *added))
        configs = replace(configs, ceiling=ceiling)
    gc.freeze()
    gc.enable()
    return asyncio.run(Interruption().run(_serve(configs)))


async def _serve(configs: tools.ThreadConfigs) -> int:
    arguments = configs.arguments
    environment = configs.environment
    originator = environment.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or _ORIGINATOR
    options = replace(served_options(arguments), source="mcp", originator=originator)
    threads = Threads(environment, options)
    async with _messages() as (incoming, outgoing, writer):
        dispatcher = JSONRPCDispatcher(
            incoming, outgoing, inline_methods=frozenset({"initialize"})
        )
        connection = Connection.for_loop(dispatcher)
        agent = _Agent(configs, threads, Client(connection, writer))
        try:
            await serve_connection(
                agent.server(), dispatcher, connection=connection, lifespan_state={}
            )
        finally:
            await threads.aclose()
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class _Agent:
    """Answers the requests of one client."""

    _configs: tools.ThreadConfigs
    _threads: Threads
    _client: Client

    def server(self) -> Server:
        server = Server(
            # Clients know Codex by this name.
            "codex-mcp-server",
            version=__version__,
            title="codex-py",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_level
        )
        return server

    async def _list_tools(self, *_: Any) -> types.ListToolsResult:
        text = instruction_text("mcp_server.json")
        return types.ListToolsResult.model_validate_json(text)

    async def _set_level(
        self, _context: ServerRequestContext[Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._client.log_level = params.level
        return types.EmptyResult()

    async def _call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        assert context.request_id is not None
        meta = context.meta or {}
        progress_token = meta.get("progress_token")
        call = ClientCall(self._client, context.request_id, progress_token)
        try:
            match params.name:
                case "codex":
                    new = tools.arguments_of(tools.NewThread, params.arguments)
                    has_user = self._client.can_be_asked
                    config = new.settings(self._configs, has_user=has_user)
                    return await self._threads.begin(config, new.prompt, call)
                case "codex-reply":
                    reply = tools.arguments_of(tools.CodexReply, params.arguments)
                    load = partial(self._stored_config, reply.id)
                    return await self._threads.go_on(reply.id, reply.prompt, call, load)
                case name:
                    raise CodexError(f"there is no tool {name!r}", code="usage")
        except CodexError as error:
            return tools.tool_result("", str(error), is_error=True)

    def _stored_config(self, thread_id: str) -> Config:
        """The configuration of a stored thread. Raises a `CodexError` if it cannot be used."""
        path = find_session(codex_home(self._configs.environment), thread_id)
        if path is None:
            raise SessionError(f"no thread found with the id {thread_id!r}")
        cwd = read_meta(path).cwd
        return self._configs.config(cwd, has_user=self._client.can_be_asked)


@asynccontextmanager
async def _messages() -> AsyncGenerator[
    tuple[IncomingMessages, OutgoingMessages, asyncio.StreamWriter]
]:
    """Open the messages from the client, the messages to it, and the writer of the latter."""
    async with standard_pipes("mcp-server") as (reader, writer):
        stderr = OutputStream(2, timeout_s=_STDERR_TIMEOUT_S)
        incoming = ClientMessages(
            reader, writer, lambda text: stderr.write_text(f"{text}\n")
        )
        yield incoming, OutgoingMessages(writer, incoming), writer
