"""Describes a session to its user: its settings, its skills and its MCP servers."""

from collections.abc import Iterable, Iterator

from codex_py.app.session import Session
from codex_py.app.views.plan_limits import limit_rows
from codex_py.command_line.configuration import sandbox_summary
from codex_py.config.config import Config
from codex_py.config.skills import Skill
from codex_py.protocol.mcp import McpServers, McpServerStatus
from codex_py.streams.terminal import aligned


def status_rows(session: Session) -> list[tuple[str, str]]:
    """The settings of a session, the tokens that it used, and the limits of its ChatGPT plan.

    Each row is a name and a value.
    """
    settings = session.settings
    usage = session.token_usage
    total = usage.total
    tokens = (
        f"{total.total_tokens:,} ({total.input_tokens:,} in, of which"
        f" {total.cached_input_tokens:,} cached; {total.output_tokens:,} out)"
    )
    name = ""
    if session.name:
        name = f" ({session.name})"
    plan: list[tuple[str, str]] = []
    if usage.plan is not None:
        plan = limit_rows(usage.plan)
    left = f"{usage.context_left_percent}% left of {settings.context_window:,}"
    return [
        ("model", f"{settings.model} {settings.reasoning_effort or ''}"),
        ("provider", settings.provider),
        ("directory", str(settings.cwd)),
        ("approval", str(settings.approval_policy)),
        ("mode", settings.mode),
        ("sandbox", sandbox_summary(settings.sandbox_policy, settings.cwd)),
        ("session", f"{session.thread_id}{name}"),
        ("tokens", tokens),
        ("context", left),
        *plan,
    ]


def skill_lines(skills: Iterable[Skill]) -> list[str]:
    """The names and descriptions of skills, or a sentence if there are none."""
    lines: list[str] = []
    for skill in skills:
        description = " ".join(skill.description.split())
        lines.append(f"${skill.name}  {description}")
    return lines or ["There are no skills. Each is a folder with a SKILL.md."]


def server_lines(session: Session, config: Config, *, verbose: bool) -> list[str]:
    """The states of the MCP servers of a session, and their tools; empty if there are no servers.

    Args:
        config: the configuration of the session, which has the servers that are off.
        verbose: write a line for each tool.
    """
    lines: list[str] = []
    servers = session.feature(McpServers)
    if servers is not None:
        for status in servers.statuses():
            lines += _server_lines(status, verbose=verbose)
    for name, server in config.mcp_servers.items():
        if not server.enabled:
            lines.append(f"{name}: off")
    return lines


def _server_lines(status: McpServerStatus, *, verbose: bool) -> Iterator[str]:
    """The state of a server, its error, and its tools."""
    software = f" ({status.software})" if status.software else ""
    yield f"{status.name}: {status.state}{software}"
    if status.error is not None:
        yield from (f"  {line}" for line in status.error.splitlines())
    if not status.tools:
        return
    if not verbose:
        yield f"  {', '.join(tool.name for tool in status.tools)}"
        return
    rows: list[tuple[str, str]] = []
    for tool in status.tools:
        first_line, _, _ = tool.description.strip().partition("\n")
        rows.append((tool.name, first_line))
    yield from (f"  {line}".rstrip() for line in aligned(rows))
