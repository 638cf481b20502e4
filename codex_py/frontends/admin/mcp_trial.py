"""`codex-py mcp test`: start one server as a session would, and print its tools or what is wrong."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codex_py.app.features.mcp import McpFeature
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import Config
from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ExitCode
from codex_py.frontends.admin.command import command_parser
from codex_py.frontends.admin.mcp import mcp_config, parse_name
from codex_py.frontends.streams import print_json, print_out, tell
from codex_py.frontends.terminal import aligned, on_one_line
from codex_py.protocol.mcp import DecliningElicitor, McpServerStatus

_DESCRIPTION_CHARS = 100


def run_test(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Try a server, even one that is switched off; 0 if it is ready, else 1."""
    options = parse_name(command_parser("--json"), argv, "test")
    name: str = options.name
    config = mcp_config(options, environment)
    status, warnings = asyncio.run(_tried(config, name, environment))
    # The error is printed by itself.
    warnings = [warning for warning in warnings if warning != status.error]
    advice = _advice(config.mcp_servers[name], status, has_noise=bool(warnings))
    code = ExitCode.DONE if status.state == "ready" else ExitCode.TURN_FAILED
    if options.json:
        return print_json(_facts(status, warnings, advice), indent=2) or code
    for warning in warnings:
        tell(f"Warning: {warning}")
    if status.error is None:
        return print_out(_report(status)) or code
    tell(f"Error: {status.error.rstrip()}")
    if advice:
        tell(advice)
    return code


async def _tried(
    config: Config, name: str, environment: Mapping[str, str]
) -> tuple[McpServerStatus, list[str]]:
    warnings: list[str] = []
    alone = replace(config, mcp_servers={name: replace(config.mcp_servers[name], enabled=True)})
    setup = SessionSetup(
        alone, SessionOptions(), environment, None, DecliningElicitor(), warnings.append
    )
    servers = McpFeature(setup)
    servers.start()
    try:
        await servers.settled()
        (status,) = servers.statuses()
    finally:
        await servers.aclose()
    return status, warnings


def _report(status: McpServerStatus) -> str:
    count = len(status.tools)
    tools = "1 tool" if count == 1 else f"{count} tools"
    lines = [
        f"{status.name}: ready, {tools}",
        f"  server: {on_one_line(status.software or '-')}",
        f"  protocol: {on_one_line(status.protocol_version or '-')}",
        f"  started in {status.connect_s or 0:.2f} s, listed its tools in {status.list_s or 0:.2f} s",
    ]
    rows = [(on_one_line(tool.name), _first_line(tool.description)) for tool in status.tools]
    lines += [f"  {line}".rstrip() for line in aligned(rows)]
    return "\n".join(lines) + "\n"


def _facts(status: McpServerStatus, warnings: Sequence[str], advice: str | None) -> dict[str, Any]:
    return {
        "name": status.name,
        "ready": status.state == "ready",
        "server": status.software,
        "protocol_version": status.protocol_version,
        "connect_sec": _rounded(status.connect_s),
        "list_sec": _rounded(status.list_s),
        "tools": [{"name": tool.name, "description": tool.description} for tool in status.tools],
        "warnings": list(warnings),
        "failure": status.failure,
        "error": status.error,
        "advice": advice,
    }


def _advice(server: McpServerConfig, status: McpServerStatus, *, has_noise: bool) -> str | None:
    """What to do about a failure; None if there is none, or if the error says so itself."""
    command = shlex.join((server.command or "", *server.args))
    match status.failure:
        case "not_started":
            return (
                "Install it, or write its full path into `command`; it is looked for on PATH, and runs in the"
                " folder `cwd`."
            )
        case "exited":
            return (
                f"Run `{command}` yourself to see why. A server gets few variables: name others that it needs"
                " in `env_vars`."
            )
        case "timed_out" if has_noise:
            return "On stdout it may write nothing but messages; have it log to stderr."
        case "timed_out":
            return (
                "If it only needs longer, as the first run of `npx` or `uvx` does, raise `startup_timeout_sec`."
                " If it waits for input, it may be no MCP server over stdio."
            )
        case "refused" if server.bearer_token_env_var is not None:
            return f"Look at the token in the variable `{server.bearer_token_env_var}`."
        case "unreachable":
            return f"Look at `url`, and whether a server runs there: {server.url}"
        case "refused" | "protocol" | None:
            return None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _first_line(description: str) -> str:
    line = on_one_line((description.strip().splitlines() or [""])[0])
    return line if len(line) <= _DESCRIPTION_CHARS else f"{line[: _DESCRIPTION_CHARS - 1]}…"
