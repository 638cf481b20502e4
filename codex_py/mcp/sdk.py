"""Loads the client half of the official SDK, and nothing of its server half. LIGHT.

The `__init__` of its packages imports all of it, a web framework among it: 130 of 370 ms, while the first
request waits. What is loaded here leaves out those `__init__`, until somebody asks for a name of theirs.
"""

import asyncio
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final, cast

_PACKAGES: Final = ("mcp", "mcp.client")
_PARTS: Final = (
    "pydantic",
    "mcp_types._types",
    "mcp_types._v2025_11_25",
    "mcp_types._v2026_07_28",
    "codex_py.mcp.connection",
)
"""None takes more than 100 ms."""


async def load_client() -> None:
    """Load what `codex_py.mcp.connection` needs, and let others run in between."""
    if _PACKAGES[0] not in sys.modules:
        for name in _PACKAGES:
            _defer(name)
    for part in _PARTS:
        import_module(part)
        await asyncio.sleep(0)


def _defer(name: str) -> None:
    """Put a package where its modules are looked for, without running its `__init__`."""
    spec = find_spec(name)
    assert spec is not None
    package = module_from_spec(spec)
    package.__class__ = _Deferred
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


class _Deferred(ModuleType):
    """A package whose `__init__` runs when a name is asked for that is not there yet.

    Other code of this process may use the SDK too, and is to find it whole.
    """

    def __getattr__(self, name: str) -> Any:
        loader = None if self.__spec__ is None else self.__spec__.loader
        if loader is None or name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        cast("ModuleType", self).__class__ = ModuleType
        loader.exec_module(self)
        return getattr(self, name)
