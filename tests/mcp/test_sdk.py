"""What of the SDK is loaded, in a process that has loaded nothing yet."""

import subprocess
import sys
from importlib import import_module
from operator import attrgetter

import pytest

LOAD = "import asyncio, sys; from codex_py.mcp.sdk import load_client; asyncio.run(load_client())"


def told(*lines: str) -> list[str]:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", "\n".join(lines)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
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


@pytest.mark.parametrize(
    ("module", "name"),
    [
        # sdk.py: the parts that are loaded one by one.
        ("mcp_types._types", "InitializeResult"),
        ("mcp_types._v2025_11_25", "InitializeResult"),
        ("mcp_types._v2026_07_28", "Tool"),
        # connection.py, http.py, stdio.py: requests as plain JSON.
        ("mcp.shared.jsonrpc_dispatcher", "JSONRPCDispatcher.send_raw_request"),
        ("mcp.shared.dispatcher", "CallOptions"),
        ("mcp.shared.message", "SessionMessage"),
        ("mcp.client.streamable_http", "MCP_SESSION_ID"),
        # oauth.py: what the server names, before the SDK follows it.
        ("mcp.client.auth.utils", "extract_resource_metadata_from_www_auth"),
        ("mcp.client.auth.oauth2", "OAuthContext.get_authorization_base_url"),
        ("mcp.client.auth.oauth2", "OAuthContext.should_include_resource_param"),
    ],
)
def test_a_part_that_the_sdk_does_not_document_is_there(module: str, name: str) -> None:
    """Hence the upper bound of `mcp` in `pyproject.toml`."""
    attrgetter(name)(import_module(module))
