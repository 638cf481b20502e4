"""A streaming coding agent for the terminal and for CI, and the library it is made of."""

# Not from `typing`: with `python -m codex_py` the working directory, which may have a `typing.py` of its
# own, is still the first place that is looked in. It would take 5 ms as well, in which Ctrl-C shows a traceback.
TYPE_CHECKING = False

__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    from codex_py.app.options import SessionOptions
    from codex_py.app.session import open_session
    from codex_py.config.config import Config, load_config
    from codex_py.core.session import Session
    from codex_py.core.turn_state import TurnResult
    from codex_py.errors import CodexError
    from codex_py.tools.python.function import tool

__all__ = [
    "CodexError",
    "Config",
    "Session",
    "SessionOptions",
    "TurnResult",
    "__version__",
    "load_config",
    "open_session",
    "tool",
]

_HOMES = {
    "CodexError": "codex_py.errors",
    "Config": "codex_py.config.config",
    "Session": "codex_py.core.session",
    "SessionOptions": "codex_py.app.options",
    "TurnResult": "codex_py.core.turn_state",
    "load_config": "codex_py.config.config",
    "open_session": "codex_py.app.session",
    "tool": "codex_py.tools.python.function",
}


def __getattr__(name: str) -> "Any":
    # `codex-py --version` imports this module and nothing else.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)
