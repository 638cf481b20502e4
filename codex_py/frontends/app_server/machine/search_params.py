"""The params of the searches for files: `fuzzyFileSearch` and its sessions."""

from codex_py.frontends.app_server.params import Params
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class Search(Params):
    query: str
    roots: list[str]
    cancellation_token: str | None = None
    """A search ends the earlier one that has the same token."""


@frozen(kw_only=True)
class SearchSession(Params):
    session_id: str


@frozen(kw_only=True)
class StartSearch(SearchSession):
    roots: list[str]


@frozen(kw_only=True)
class UpdateSearch(SearchSession):
    query: str
