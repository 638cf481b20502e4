"""Loads the client half of the official SDK without its server half. LIGHT.

The `__init__` modules of its packages import everything, a web framework included. That takes 130
of 370 ms, while the first request waits. So they run only when one of their names is used.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.mcp.connection import McpSession, ServerConnection

_PACKAGES: Final = ("mcp", "mcp.client")
"""The packages whose `__init__` is deferred, outer ones first."""
_PARTS: Final = (
    "pydantic",
    "mcp_types._types",
    "mcp_types._v2025_11_25",
    "mcp_types._v2026_07_28",
    "codex_py.mcp.session",
)
"""The modules to import one by one; none takes more than 100 ms."""

Connect: TypeAlias = Callable[
    [str, Any, ServerConnection], AbstractAsyncContextManager[McpSession]
]
"""Opens a session. The arguments are the server's name, its transport or process, and the
connection that records what happens.

Raises `RequestFailed` if the handshake fails, and an `ExceptionGroup` if an HTTP exchange fails,
then or later.
"""


async def load_client(transport: Literal["stdio", "http"] = "stdio") -> Connect:
    """Load the SDK in parts, so that other tasks run in between."""
    if _PACKAGES[0] not in sys.modules:
        for name in _PACKAGES:
            _defer(name)
    for part in _PARTS:
        import_module(part)
        await asyncio.sleep(0)
    silence_sdk()
    if transport == "http":
        from codex_py.mcp.http import connect  # 150 ms, most of it of httpx2
    else:
        from codex_py.mcp.stdio import connect  # 10 ms
    return connect


def _defer(name: str) -> None:
    """Make the modules of a package importable without running its `__init__`."""
    spec = find_spec(name)
    assert spec is not None
    package = module_from_spec(spec)
    sys.modules[name] = package
    package.__class__ = _Deferred
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


def silence_sdk() -> None:
    """Silence the SDK's loggers.

    Errors reach us as exceptions, and the lines of its log may contain secrets.
    """
    # The SDK's transport over standard input logs as `client`.
    for name in ("client", "mcp"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.propagate = False


class _Deferred(ModuleType):
    """A package whose `__init__` runs on the first access to a name that it would define.

    It has to run then: other code in this process may use all of the SDK.
    """

    def __getattr__(self, name: str) -> Any:
        loader = None
        if self.__spec__ is not None:
            loader = self.__spec__.loader
        if loader is None or name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # From here on it is a module like any other.
        cast("ModuleType", self).__class__ = ModuleType
        loader.exec_module(self)
        return getattr(self, name)
