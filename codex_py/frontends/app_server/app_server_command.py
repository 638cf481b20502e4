"""`codex-py app-server`: the protocol of Codex's app server, over standard input and output.

Source: the app server of Codex 0.171, its schemas (`generate-json-schema`), and Codex's Python SDK.
"""

import json
import platform
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from codex_py.app.json_rpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpc,
    RpcError,
)
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import folder_config
from codex_py.command_line.serving import run_server
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.account.account_methods import AccountMethods
from codex_py.frontends.app_server.configuration.config_lists import ListMethods
from codex_py.frontends.app_server.configuration.config_methods import ConfigMethods
from codex_py.frontends.app_server.configuration.providers import ProviderMethods
from codex_py.frontends.app_server.machine.commands import CommandMethods
from codex_py.frontends.app_server.machine.file_search import FileSearchMethods
from codex_py.frontends.app_server.machine.files import FileMethods
from codex_py.frontends.app_server.mcp.mcp_servers import McpMethods
from codex_py.frontends.app_server.methods import MethodGroup
from codex_py.frontends.app_server.params import ParamsT
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.background_terminals import (
    BackgroundTerminalMethods,
)
from codex_py.frontends.app_server.threads.goals import GoalMethods
from codex_py.frontends.app_server.threads.history_changes import HistoryChangeMethods
from codex_py.frontends.app_server.threads.history_pages import HistoryPageMethods
from codex_py.frontends.app_server.threads.loaded_threads import LoadedThreadMethods
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.threads.reviews import ReviewMethods
from codex_py.frontends.app_server.threads.threads import ThreadMethods
from codex_py.frontends.app_server.threads.turns import TurnMethods
from codex_py.frontends.app_server.threads.user_commands import UserCommandMethods
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.checked import WrongValue
from codex_py.protocol.json_schema import schema_of_class
from codex_py.version import __version__

_CODEX_VERSION: Final = "0.171.0"
"""The version of Codex whose protocol is served. Codex's SDK requires 0.151 or newer."""
_INITIALIZE: Final = "initialize"
_SCHEMAS: Final = "generate-json-schema"
_NAMES_OF_CODEX: Final = {
    "account/login/cancel": "CancelLoginAccount",
    "account/login/start": "LoginAccount",
    "account/rateLimits/read": "GetAccountRateLimits",
    "account/read": "GetAccount",
    "mcpServer/resource/read": "McpResourceRead",
    "mcpServerStatus/list": "ListMcpServerStatus",
    "thread/name/set": "ThreadSetName",
}
"""The names of params that do not follow from the method."""
_SYSTEMS: Final = {"Linux": "linux", "Darwin": "macos"}
"""Codex's names of systems."""
_GROUPS: Final[tuple[type[MethodGroup], ...]] = (
    ThreadMethods,
    LoadedThreadMethods,
    HistoryPageMethods,
    HistoryChangeMethods,
    TurnMethods,
    UserCommandMethods,
    ReviewMethods,
    GoalMethods,
    ConfigMethods,
    ListMethods,
    ProviderMethods,
    BackgroundTerminalMethods,
    AccountMethods,
    FileMethods,
    FileSearchMethods,
    McpMethods,
    CommandMethods,
)
"""The groups of methods. Each has an instance for each client."""


def run_app_server(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Serve one client until it leaves. Returns the exit code."""
    words = arguments.words[1:]
    if words == (_SCHEMAS,):
        if arguments.out is None:
            raise UsageError(f"{_SCHEMAS} needs --out DIR")
        _write_schemas(Path(arguments.out))
        return ExitCode.DONE
    if words:
        raise UsageError(
            f"unexpected argument {words[0]!r}: the prompts come with the turns"
        )
    if arguments.listen != "stdio://":
        raise UsageError(
            f"--listen: {arguments.listen!r} is not supported; it is stdio://"
        )
    # Report mistakes in the configuration now rather than at the first thread.
    folder_config(arguments, environment, None).require_enforced()
    return run_server(
        "app-server", lambda rpc: _Connection(rpc, arguments, environment)
    )


class _Connection:
    """Answers the handshake, and then the methods."""

    def __init__(
        self,
        rpc: JsonRpc,
        arguments: Arguments,
        environment: Mapping[str, str],
    ) -> None:
        self._is_initialized = False
        self._server = Server(rpc, arguments, environment)
        self._threads = OpenThreads(self._server)
        self._groups = [make(self._server, self._threads) for make in _GROUPS]

    async def aclose(self) -> None:
        async with AsyncExitStack() as stack:
            for group in self._groups:
                stack.push_async_callback(group.aclose)
            # Turns end before what their methods need is closed.
            stack.push_async_callback(self._threads.aclose)

    def notified(self, method: str, params: Any) -> None:
        """Ignore a notification: clients only report that they are ready."""

    async def requested(self, method: str, data: Any) -> Fields:
        """Answer a request. Raises an `RpcError` if it is wrong, or fails."""
        if method == _INITIALIZE:
            return self._initialize(data)
        if not self._is_initialized:
            raise RpcError(INVALID_REQUEST, "Not initialized")
        try:
            return await self._answer(method, data)
        except CodexError as error:
            raise RpcError(INVALID_REQUEST, str(error), {"code": error.code}) from error

    def _initialize(self, data: Any) -> Fields:
        if self._is_initialized:
            raise RpcError(INVALID_REQUEST, "Already initialized")
        client = _read(params.Initialize, data).client_info
        self._is_initialized = True
        self._server.name_client(client.name)
        system = platform.system()
        return {
            "userAgent": _user_agent(client),
            "codexHome": str(self._server.home),
            "platformFamily": "unix",
            "platformOs": _SYSTEMS.get(system, system),
        }

    async def _answer(self, method: str, data: Any) -> Fields:
        for group in self._groups:
            served = group.methods.get(method)
            if served is not None:
                return await served.answer(group, _read(served.params, data))
        known = ", ".join(_params_of_methods())
        raise RpcError(
            METHOD_NOT_FOUND, f"the method {method!r} is not served; there are: {known}"
        )


def _params_of_methods() -> dict[str, type[params.Params]]:
    """The params of each method that is served."""
    found: dict[str, type[params.Params]] = {_INITIALIZE: params.Initialize}
    for group in _GROUPS:
        for method in group.methods.values():
            found[method.name] = method.params
    return found


def _read(kind: type[ParamsT], data: Any) -> ParamsT:
    """Read the params of a request. Raises an `RpcError` that names the first mistake."""
    try:
        return params.read_params(kind, data)
    except WrongValue as error:
        place = ".".join(error.path) or "params"
        raise RpcError(
            INVALID_REQUEST, f"Invalid request: `{place}`: {error.reason}"
        ) from None


def _user_agent(client: params.ClientInfo) -> str:
    """Make the user agent in Codex's form: the SDK reads the version from it."""
    name = client.name
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    server = f"{name}/{_CODEX_VERSION} ({system}) codex-py/{__version__}"
    return f"{server} ({name}; {client.version})"


def _write_schemas(folder: Path) -> None:
    """Write JSON Schemas of the requests that are served, in the layout of Codex.

    These are `ClientRequest.json`, and one file for the params of each method.
    """
    requests: list[dict[str, object]] = []
    try:
        (folder / "v2").mkdir(parents=True, exist_ok=True)
        for method, kind in _params_of_methods().items():
            name = _params_name(method)
            schema = schema_of_class(kind)
            _write(folder / "v2" / f"{name}.json", {"title": name, **schema})
            fields = {"method": {"const": method}, "params": schema}
            requests.append({"properties": fields, "required": ["id", "method"]})
        either = {"title": "ClientRequest", "oneOf": requests}
        _write(folder / "ClientRequest.json", either)
    except OSError as error:
        raise CodexError(
            f"cannot write {error.filename}: {error.strerror}", code="out"
        ) from error


def _params_name(method: str) -> str:
    """The name that Codex gives to the params of a method: `FsReadFileParams`."""
    words = re.split("[/_]", method)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{_NAMES_OF_CODEX.get(method, name)}Params"


def _write(path: Path, schema: object) -> None:
    text = json.dumps(schema, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")
