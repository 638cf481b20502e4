"""The methods that are served: a table, from which the schemas follow too."""

import platform
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from codex_py.app.json_rpc import INVALID_REQUEST, METHOD_NOT_FOUND, RpcError, first_mistake
from codex_py.errors import CodexError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.account import Account
from codex_py.frontends.app_server.threads import Threads
from codex_py.version import __version__

CODEX_VERSION: Final = "0.171.0"
"""The version whose protocol this is: the SDK of Codex wants 0.151 or newer."""


_Answer: TypeAlias = Awaitable[dict[str, Any]]

_THREADS: Final[Mapping[str, tuple[type[params.Params], Callable[[Threads, Any], _Answer]]]] = {
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
_ACCOUNT: Final[Mapping[str, tuple[type[params.Params], Callable[[Account, Any], _Answer]]]] = {
    "model/list": (params.ModelList, Account.models),
    "account/read": (params.Nothing, Account.read),
    "account/login/start": (params.Login, Account.login),
    "account/login/cancel": (params.LoginCancel, Account.cancel),
    "account/logout": (params.Nothing, Account.logout),
}
METHODS: Final = {
    "initialize": params.Initialize,
    **{name: kind for name, (kind, _) in (*_THREADS.items(), *_ACCOUNT.items())},
}
"""The params of each method."""


def read_params(kind: type[params.Params], data: Any) -> Any:
    """The params of a request. Raises an `RpcError` that names the first mistake."""
    try:
        return kind.model_validate({} if data is None else data)
    except ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"Invalid request: {first_mistake(error)}") from None


async def answer(threads: Threads, account: Account, method: str, data: Any) -> dict[str, Any]:
    """Raises an `RpcError` if there is no such method, or it cannot do what is asked."""
    try:
        if row := _THREADS.get(method):
            return await row[1](threads, read_params(row[0], data))
        if row := _ACCOUNT.get(method):
            return await row[1](account, read_params(row[0], data))
    except CodexError as error:
        raise RpcError(INVALID_REQUEST, str(error), {"code": error.code}) from error
    known = ", ".join(METHODS)
    raise RpcError(METHOD_NOT_FOUND, f"the method {method!r} is not served; there are: {known}")


def user_agent(client: params.ClientInfo) -> str:
    """As Codex names itself to its client, whose SDK reads the version."""
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    return f"{client.name}/{CODEX_VERSION} ({system}) codex-py/{__version__} ({client.name}; {client.version})"
