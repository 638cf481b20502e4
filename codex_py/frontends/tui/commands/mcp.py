"""The command for the MCP servers of the session."""

from collections.abc import Iterator

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command, CommandContext
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
    if not verbose:
        if status.tools:
            yield f"  {', '.join(tool.name for tool in status.tools)}"
        return
    width = max((len(tool.name) for tool in status.tools), default=0)
    for tool in status.tools:
        description = tool.description.strip().partition("\n")[0]
        yield f"  {tool.name:{width}}  {description}".rstrip()


MCP = [Command("mcp", "show the MCP servers and their tools", _mcp, argument="[verbose]")]
