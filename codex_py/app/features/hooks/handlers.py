"""Runs hooks: commands as the user's own programs, outside the sandbox, and tools of MCP servers. LIGHT."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.loading import load
from codex_py.app.model import secret_names
from codex_py.app.options import SessionSetup
from codex_py.config.hooks import Hook
from codex_py.core.context import user_shell
from codex_py.process.guardian import Guardian
from codex_py.process.piped import PipedProcess
from codex_py.protocol.extension import Thread
from codex_py.protocol.json_fields import as_object, objects, text_field
from codex_py.protocol.messages import encode_json

_MAX_STDOUT_BYTES: Final = 1 << 20
"""The rest is read and dropped: no answer is that long."""
_READ_BYTES: Final = 64 * 1024
_SHORT_S: Final = 3
"""The most that hooks get for which the user waits, as in Codex."""
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")


Ended: TypeAlias = tuple[int, str, str]
"""The exit code, negative after a signal, stdout, and the end of stderr."""


class HookFailed(Exception):
    """A hook did not end by itself. The text is to be read after the name of the hook."""


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(self, setup: SessionSetup) -> None:
        environment = setup.environment
        secret = secret_names(setup.config)
        self._environment = {name: v for name, v in environment.items() if name not in secret}
        self._environment["CODEX_HOME"] = str(setup.config.home)
        self._shell = user_shell(environment)
        # If this program is killed, it kills the hooks that run.
        self._guardian = Guardian()

    async def run(self, hook: Hook, thread: Thread, given: Mapping[str, Any]) -> Ended:
        """Run a hook to its end. If that is cancelled or takes too long, the hook is killed. What it leaves running is as well.

        Args:
            given: what the hook reads.

        Raises:
            HookFailed
        """
        limit_s = hook.timeout_s
        if hook.event in {"SessionEnd", "Interrupt"}:
            limit_s = min(limit_s, _SHORT_S)
        try:
            async with asyncio.timeout(limit_s):
                if hook.kind == "mcp_tool":
                    return await _call_tool(hook, thread, given)
                return await self._run_command(hook, thread.settings.cwd, encode_json(given))
        except TimeoutError:
            raise HookFailed(f"did not end within {limit_s:g} s, and was stopped") from None

    def close(self) -> None:
        self._guardian.close()

    async def _run_command(self, hook: Hook, cwd: Path, given: bytes) -> Ended:
        try:
            process = PipedProcess(
                self._guardian,
                [self._shell, "-c", hook.command],
                cwd=cwd,
                environment={**self._environment, **hook.environment},
            )
        except (OSError, ValueError) as error:
            raise HookFailed(f"could not be started: {error}") from error
        try:
            reader, writer = await process.streams(max_line_bytes=_READ_BYTES)
            # Sent in the background, so that a hook may exit without reading it.
            writer.write(given)
            writer.write_eof()
            stdout = bytearray()
            while data := await reader.read(_READ_BYTES):
                stdout += data[: _MAX_STDOUT_BYTES - len(stdout)]
            await process.exited.wait()
        finally:
            await process.stop()
        assert process.exit_code is not None
        return process.exit_code, stdout.decode(errors="replace"), process.stderr_tail()


async def _call_tool(hook: Hook, thread: Thread, given: Mapping[str, Any]) -> Ended:
    """The texts of the result are read like the output of a command."""
    servers = thread.feature(load("codex_py.app.features.mcp:McpFeature"))
    server = None if servers is None else servers.get(hook.server)
    if server is None:
        raise HookFailed(f"needs the MCP server {hook.server!r}, which is not configured")
    call = {"name": hook.tool, "arguments": filled(hook.arguments, given)}
    try:
        result = await server.request("tools/call", call)
    except load("codex_py.mcp.connection:RequestFailed") as error:
        raise HookFailed(f"failed: {error}") from error
    texts = [text_field(part, "text") for part in objects(result.get("content"))]
    text = "\n".join(filter(None, texts))
    if result.get("isError") is True:
        raise HookFailed(f"failed: {text}")
    return 0, text, ""


def filled(template: Any, given: Mapping[str, Any]) -> Any:
    """Put fields of the event, `${tool_input.path}`, into the arguments of a tool. A text that is nothing but one
    placeholder becomes the value with its type. Source: `codex-rs/hooks/src/engine/mcp_runner.rs`.

    Raises:
        HookFailed: the event has no such field.
    """
    match template:
        case {**fields}:
            return {name: filled(value, given) for name, value in fields.items()}
        case [*values]:
            return [filled(value, given) for value in values]
        case str():
            if (whole := _PLACEHOLDER.fullmatch(template)) is not None:
                return _field(whole[1], given)
            return _PLACEHOLDER.sub(lambda found: _as_text(_field(found[1], given)), template)
        case _:
            return template


def _field(path: str, given: Mapping[str, Any]) -> Any:
    value: Any = given
    for name in path.split("."):
        if name not in (fields := as_object(value)):
            raise HookFailed(f"needs `${{{path}}}`, which this event does not have")
        value = fields[name]
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()
