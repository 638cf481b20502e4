"""Servers that others have written, where they are installed.

`MCP_PEERS` names a folder with `node_modules` (@modelcontextprotocol/server-everything and server-filesystem) and
with `venv` (mcp-server-git, mcp-server-time, mcp-server-fetch).
"""

import asyncio
import os
import subprocess
from pathlib import Path

from codex_py.mcp.settings import ServerSettings, StdioTransport
from codex_py.protocol.mcp import ElicitationAnswer
from codex_py.tools.mcp.catalogue import McpCatalogue
from tests.support.mcp import ScriptedElicitor, peer_program, started


def peer(name: str, program: str, *args: str, cwd: Path) -> ServerSettings:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    return ServerSettings(
        name=name,
        transport=StdioTransport((peer_program(program), *args), cwd, environment),
        startup_timeout_s=30,
    )


def test_the_reference_server_shows_all_that_there_is(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor(ElicitationAnswer("accept", {"name": "me"}))
    told: list[tuple[float, float | None]] = []

    async def main() -> None:
        every = peer("every", "mcp-server-everything", cwd=tmp_path)
        async with started(tmp_path, others=[every], elicitor=elicitor) as it:
            # One of its tools runs as a task alone, which this client does not offer.
            assert it.warnings == [
                "MCP server `every` has tools that can only run as tasks, which are left out: simulate-research-query"
            ]
            assert await it.call("every", "echo", message="hi") == {
                "content": [{"type": "text", "text": "Echo: hi"}]
            }
            image = await it.call("every", "get-tiny-image")
            assert [part["type"] for part in image["content"]] == [
                "text",
                "image",
                "text",
            ]
            result = await it.call(
                "every", "get-structured-content", location="New York"
            )
            assert set(result["structuredContent"]) == {
                "temperature",
                "conditions",
                "humidity",
            }
            await it.call(
                "every",
                "trigger-long-running-operation",
                lambda done, total, _: told.append((done, total)),
                duration=0.2,
                steps=2,
            )
            assert told == [(1, 2), (2, 2)]
            await it.call("every", "trigger-elicitation-request")
            assert [question.server for question in elicitor.asked] == ["every"]
            assert it.get("every").has_resources

    asyncio.run(main())


def test_the_file_server_keeps_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")

    async def main() -> None:
        files = peer("fs", "mcp-server-filesystem", str(tmp_path), cwd=tmp_path)
        async with started(tmp_path, others=[files]) as it:
            read = await it.call("fs", "read_text_file", path=str(tmp_path / "a.txt"))
            assert read["content"] == [{"type": "text", "text": "hello"}]
            refused = await it.call("fs", "read_text_file", path="/etc/hostname")
            assert refused["isError"] is True

    asyncio.run(main())


def test_several_python_servers_work_side_by_side(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True)

    async def main() -> None:
        peers = [
            peer(name, f"mcp-server-{name}", cwd=tmp_path)
            for name in ("git", "time", "fetch")
        ]
        async with started(tmp_path, others=peers) as it:
            assert it.warnings == []
            status = await it.call("git", "git_status", repo_path=str(repo))
            assert "No commits yet" in status["content"][0]["text"]
            time = await it.call("time", "get_current_time", timezone="UTC")
            assert '"timezone": "UTC"' in time["content"][0]["text"]
            offered = {spec.name for spec in McpCatalogue(it.servers).specs()}
            assert {
                "mcp__git__git_status",
                "mcp__time__convert_time",
                "mcp__fetch__fetch",
            } <= offered

    asyncio.run(main())
