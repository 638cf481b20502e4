"""Groups of methods of the app server: a class for each subject, with a function for each method.

To serve another method, write its params as a class, and a function that `serves` decorates, in the
group of its subject. A new group is a module with a subclass of `MethodGroup`, and a line in
`app_server_command`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

from codex_py.frontends.app_server.params import Params
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.frozen import frozen

_GroupT = TypeVar("_GroupT", bound="MethodGroup")
_ParamsT = TypeVar("_ParamsT", bound=Params)
_Answer: TypeAlias = Callable[[_GroupT, _ParamsT], Awaitable[Fields]]
_MARK = "_served_method"
"""The attribute of a function that answers requests."""


@frozen
class Method:
    """A method of the protocol.

    Attributes:
        name: such as `thread/start`.
        params: the class of its params.
        answer: answers a request, given the group and the params.
    """

    name: str
    params: type[Params]
    answer: Callable[[Any, Any], Awaitable[Fields]]


def serves(
    name: str, params: type[_ParamsT]
) -> Callable[
    [_Answer[_GroupT, _ParamsT]],
    _Answer[_GroupT, _ParamsT],
]:
    """Declare that a function of a `MethodGroup` answers the requests of this method."""

    def declare(answer: _Answer[_GroupT, _ParamsT]) -> _Answer[_GroupT, _ParamsT]:
        setattr(answer, _MARK, Method(name, params, answer))
        return answer

    return declare


class MethodGroup:
    """Answers the methods about one subject, for one client.

    Every function that answers raises an `RpcError` or a `CodexError` if the request is wrong, or
    fails.
    """

    methods: ClassVar[Mapping[str, Method]] = {}
    """The methods by their names."""

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        self.server = server
        self.threads = threads

    def __init_subclass__(cls) -> None:
        found: dict[str, Method] = {}
        for value in vars(cls).values():
            method = getattr(value, _MARK, None)
            if method is not None:
                found[method.name] = method
        cls.methods = found

    async def aclose(self) -> None:
        """End what the methods have begun. The open threads are closed later."""
