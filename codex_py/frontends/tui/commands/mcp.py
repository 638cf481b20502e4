"""The command for the MCP servers of the session."""

from collections.abc import Iterator

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command, CommandContext
from codex_py.frontends.tui.plain import aligned
from codex_py.protocol.mcp import McpServers, McpServerStatus


async def _mcp(context: CommandContext, argument: str) -> None:
    if argument not in {"", "verbose"}:
        raise CodexError("write /mcp or /mcp verbose", code="usage")
    session = await context.conversation.opened()
    lines: list[str] = []
    servers = session.feature(McpServers)
    for status in () if servers is None else servers.statuses():
        lines += _lines(status, verbose=argument == "verbose")
    lines += [f"{name}: off" for name, c in context.config.mcp_servers.items() if not c.enabled]
    if not lines:
        lines = ["No MCP servers are configured. Leave, and try codex-py mcp add NAME -- COMMAND."]
    context.transcript.notice("\n".join(lines))


def _lines(status: McpServerStatus, *, verbose: bool) -> Iterator[str]:
    software = f" ({status.software})" if status.software else ""
    yield f"{status.name}: {status.state}{software}"
    if status.error is not None:
        yield from (f"  {line}" for line in status.error.splitlines())
    if status.tools and not verbose:
        yield f"  {', '.join(tool.name for tool in status.tools)}"
    elif status.tools:
        yield aligned(
            [
                (f"  {tool.name}", tool.description.strip().partition("\n")[0])
                for tool in status.tools
            ]
        )


MCP = [Command("mcp", "show the MCP servers and their tools", _mcp, argument="[verbose]")]
