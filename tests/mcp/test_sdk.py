"""What of the SDK is loaded, in a process that has loaded nothing yet."""

import subprocess
import sys

LOAD = "import asyncio, sys; from codex_py.mcp.sdk import load_client; asyncio.run(load_client())"


def told(*lines: str) -> list[str]:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", "\n".join(lines)],
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    return done.stdout.split()


def test_a_client_loads_neither_the_server_half_nor_a_web_framework() -> None:
    unneeded = ["mcp.server", "starlette", "uvicorn", "mcp.client.auth", "httpx2"]
    assert told(LOAD, f"print(*(set({unneeded}) & sys.modules.keys()))") == []
    assert told(LOAD, "print('mcp.client.session' in sys.modules)") == ["True"]


def test_other_code_still_finds_the_sdk_whole() -> None:
    found = told(
        LOAD,
        "from mcp.client import session",
        "from mcp import ClientSession, ServerSession",
        "from mcp.client import Client",
        "print(ClientSession is session.ClientSession, ServerSession.__module__, Client.__name__)",
        "print(hasattr(sys.modules['mcp'], 'nonsense'))",
    )
    assert found == ["True", "mcp.server.session", "Client", "False"]


def test_an_sdk_that_is_loaded_already_is_left_as_it_is() -> None:
    assert told("import mcp", LOAD, "print(type(mcp).__name__)") == ["module"]
