"""The params of the methods about threads that are loaded, and about their histories."""

from codex_py.frontends.app_server.params import Count, Params
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class LoadedList(Params):
    cursor: str | None = None
    limit: Count | None = None
