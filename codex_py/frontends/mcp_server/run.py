"""`codex-py mcp-server`: the agent as an MCP server, over standard input and output.

It serves the protocol versions that begin with a handshake, up to 2025-11-25. In later ones a server cannot ask its
client anything, so approvals could only be refused; clients that know these versions fall back.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from codex_py.app.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpc,
    RpcError,
)
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.serving import run_server, served_options
from codex_py.config.config import Config
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, SessionError, UsageError
from codex_py.frontends.mcp_server import tools
from codex_py.frontends.mcp_server.ceiling import Ceiling
from codex_py.frontends.mcp_server.client import LOG_LEVELS, Call, Client
from codex_py.frontends.mcp_server.threads import Threads
from codex_py.protocol.json_fields import as_object
from codex_py.rollout.index import find_session
from codex_py.rollout.records import read_meta
from codex_py.version import __version__

_ORIGINATOR: Final = "codex_mcp_server"
_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_SERVER: Final = {
    "capabilities": {"logging": {}, "tools": {"listChanged": False}},
    # The name by which clients know Codex.
    "serverInfo": {"name": "codex-mcp-server", "title": "codex-py", "version": __version__},
}


def run_mcp_server(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Serve one client until it leaves; the exit code."""
    if arguments.words[1:]:
        raise UsageError(
            f"unexpected argument {arguments.words[1]!r}: the prompts come with the calls"
        )
    if arguments.worktree is not None:
        raise UsageError("--worktree belongs to `exec` and the terminal: a call names its folder")
    configs = tools.ThreadConfigs(arguments, environment)
    config = configs.config(None, has_user=True)
    config.require_enforced()
    if not arguments.trust_client:
        folders = (config.cwd, *((config.cwd / name).resolve() for name in arguments.add_dir))
        configs = replace(configs, ceiling=Ceiling(config, folders))
    return run_server("mcp-server", lambda rpc: _Server(rpc, configs), jsonrpc="2.0")


class _Server:
    def __init__(self, rpc: JsonRpc, configs: tools.ThreadConfigs) -> None:
        self._rpc, self._configs = rpc, configs
        self._client = Client(rpc)
        name = configs.environment.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or _ORIGINATOR
        options = replace(served_options(configs.arguments), source="mcp", originator=name)
        self._threads = Threads(configs.environment, options)

    async def requested(self, method: str, params: Any) -> dict[str, Any]:
        """Source: https://modelcontextprotocol.io/specification/2025-11-25"""
        match method, params:
            case "initialize", {"protocolVersion": str(version), "capabilities": {**capabilities}}:
                self._client.capabilities = capabilities
                known = version if version in _VERSIONS else _VERSIONS[-1]
                return {**_SERVER, "protocolVersion": known}
            case "ping", _:
                return {}
            case _ if self._client.capabilities is None and method != "initialize":
                raise RpcError(INVALID_REQUEST, "the first request is `initialize`")
            case "tools/list", _:
                return {"tools": tools.TOOLS}
            case "tools/call", {"name": str(name)}:
                token = as_object(params.get("_meta")).get("progressToken")
                call = Call(self._client, self._rpc.request_id, token)
                return await self._call_tool(name, params.get("arguments"), call)
            case "logging/setLevel", {"level": str(level)} if level in LOG_LEVELS:
                self._client.log_level = level
                return {}
            case (("initialize" | "tools/call" | "logging/setLevel"), _):
                raise RpcError(INVALID_PARAMS, f"wrong params of {method!r}")
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"there is no method {method!r}")

    def notified(self, method: str, params: Any) -> None:
        """Cancel a call whose result the client does not want any more."""
        if method == "notifications/cancelled" and "requestId" in as_object(params):
            self._rpc.cancel(params["requestId"])

    async def aclose(self) -> None:
        await self._threads.aclose()

    async def _call_tool(self, name: str, arguments: Any, call: Call) -> dict[str, Any]:
        configs, has_user = self._configs, self._client.can_be_asked
        try:
            if name == "codex":
                new = tools.arguments_of(tools.NewThread, arguments)
                config = new.settings(configs, has_user=has_user)
                return await self._threads.begin(config, new.prompt, call)
            if name == "codex-reply":
                reply = tools.arguments_of(tools.Reply, arguments)

                def load() -> Config:
                    path = find_session(codex_home(configs.environment), reply.id)
                    if path is None:
                        raise SessionError(f"no thread found with the id {reply.id!r}")
                    return configs.config(read_meta(path).cwd, has_user=has_user)

                return await self._threads.go_on(reply.id, reply.prompt, call, load)
            raise CodexError(f"there is no tool {name!r}", code="usage")
        except CodexError as error:
            return tools.tool_result(None, str(error), is_error=True)
