"""The params of the methods about MCP servers, with the names of Codex 0.171."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from codex_py.frontends.app_server.params import Params, ThreadId
from codex_py.protocol.annotations import Aliases
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class StatusList(Params):
    cursor: str | None = None
    detail: Literal["full", "toolsAndAuthOnly"] | None = None
    limit: int | None = None
    server_name: str | None = None
    thread_id: ThreadId | None = None


@frozen(kw_only=True)
class ToolCall(Params):
    thread_id: ThreadId
    server: str
    tool: str
    arguments: Any = None
    meta: Annotated[Mapping[str, Any] | None, Aliases(["_meta"])] = None


@frozen(kw_only=True)
class ResourceRead(Params):
    server: str
    uri: str
    thread_id: ThreadId | None = None
    origin_call_id: str | None = None
    """The call whose result names the resource. It selects among the apps of Codex, which we lack."""
    meta: Annotated[Mapping[str, Any] | None, Aliases(["_meta"])] = None


@frozen(kw_only=True)
class OAuthLogin(Params):
    name: str
    client_registration: Literal["auto", "dcr"] | None = None
    scopes: list[str] = field(default_factory=list[str])
    thread_id: ThreadId | None = None
    timeout_secs: int | None = None
