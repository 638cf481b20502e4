"""`codex-py app-server`: the protocol of Codex's app server, over standard input and output.

Source: the app server of Codex 0.171, its schemas (`generate-json-schema`), and Codex's Python SDK.
"""

import json
import platform
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.json_rpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpc,
    RpcError,
)
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import folder_config
from codex_py.command_line.serving import run_server
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.account import Account
from codex_py.frontends.app_server.items import Fields
from codex_py.frontends.app_server.threads import Threads
from codex_py.protocol.checked import WrongValue
from codex_py.protocol.json_schema import schema_of_class
from codex_py.version import __version__

_CODEX_VERSION: Final = "0.171.0"
"""The version of Codex whose protocol is served. Codex's SDK requires 0.151 or newer."""
_SCHEMAS: Final = "generate-json-schema"
_SYSTEMS: Final = {"Linux": "linux", "Darwin": "macos"}
"""Codex's names of systems."""
_Params: TypeAlias = type[params.Params]
_Answer: TypeAlias = Awaitable[Fields]
_ThreadMethod: TypeAlias = Callable[[Threads, Any], _Answer]
_AccountMethod: TypeAlias = Callable[[Account, Any], _Answer]
_THREADS: Final[Mapping[str, tuple[_Params, _ThreadMethod]]] = {
    "thread/start": (params.ThreadStart, Threads.start),
    "thread/resume": (params.ThreadResume, Threads.resume),
    "thread/fork": (params.ThreadResume, Threads.fork),
    "thread/list": (params.ThreadList, Threads.list),
    "thread/read": (params.ThreadRead, Threads.read),
    "thread/name/set": (params.ThreadName, Threads.rename),
    "thread/archive": (params.OneThread, Threads.archive),
    "thread/unarchive": (params.OneThread, Threads.unarchive),
    "thread/compact/start": (params.OneThread, Threads.compact),
    "thread/goal/get": (params.OneThread, Threads.goal),
    "thread/goal/set": (params.GoalSet, Threads.set_goal),
    "thread/goal/clear": (params.OneThread, Threads.clear_goal),
    "turn/start": (params.TurnStart, Threads.start_turn),
    "turn/steer": (params.TurnSteer, Threads.steer),
    "turn/interrupt": (params.TurnInterrupt, Threads.interrupt),
}
_ACCOUNT: Final[Mapping[str, tuple[_Params, _AccountMethod]]] = {
    "model/list": (params.ModelList, Account.models),
    "account/read": (params.AccountRead, Account.read),
    "account/login/start": (params.Login, Account.login),
    "account/login/cancel": (params.LoginCancel, Account.cancel),
    "account/logout": (params.Nothing, Account.logout),
    "account/rateLimits/read": (params.Nothing, Account.limits),
}
_METHODS: Final = {
    "initialize": params.Initialize,
    **{name: kind for name, (kind, _) in _THREADS.items()},
    **{name: kind for name, (kind, _) in _ACCOUNT.items()},
}
"""The params of each method."""


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
        self._environment = environment
        self._is_initialized = False
        self._threads = Threads(rpc, arguments, environment)
        self._account = Account(
            lambda: folder_config(arguments, environment, None),
            environment,
            self._threads.later,
        )

    async def aclose(self) -> None:
        await self._account.aclose()
        await self._threads.aclose()

    def notified(self, method: str, params: Any) -> None:
        """Ignore a notification: clients only report that they are ready."""

    async def requested(self, method: str, data: Any) -> Fields:
        """Answer a request. Raises an `RpcError` if it is wrong, or fails."""
        if method == "initialize":
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
        self._threads.name_client(client.name)
        system = platform.system()
        return {
            "userAgent": _user_agent(client),
            "codexHome": str(codex_home(self._environment)),
            "platformFamily": "unix",
            "platformOs": _SYSTEMS.get(system, system),
        }

    async def _answer(self, method: str, data: Any) -> Fields:
        if method in _THREADS:
            kind, answer = _THREADS[method]
            return await answer(self._threads, _read(kind, data))
        if method in _ACCOUNT:
            kind, answer = _ACCOUNT[method]
            return await answer(self._account, _read(kind, data))
        known = ", ".join(_METHODS)
        raise RpcError(
            METHOD_NOT_FOUND, f"the method {method!r} is not served; there are: {known}"
        )


def _read(kind: _Params, data: Any) -> Any:
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
        for method, kind in _METHODS.items():
            words = [part.capitalize() for part in method.split("/")]
            name = f"{''.join(words)}Params"
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


def _write(path: Path, schema: object) -> None:
    text = json.dumps(schema, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")
