"""Commands that serve one client over standard input and output."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codex_py.app.json_rpc import JsonRpc, Service
from codex_py.app.options import SessionOptions
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.interruption import Interruption
from codex_py.command_line.parser import working_folder
from codex_py.errors import ExitCode
from codex_py.streams.messages import standard_pipes


def run_server(
    command: str,
    make: Callable[[JsonRpc], Service],
    **envelope: Any,
) -> int:
    """Serve one client until it leaves. Returns the exit code.

    Args:
        command: the command's name, for messages.
        make: makes the service that answers the client.
        envelope: see `JsonRpc`.
    """
    # The collector is off since the start. Loaded modules stay: it need not look at them.
    gc.freeze()
    gc.enable()
    serving = _serve(command, make, envelope)
    return asyncio.run(Interruption().run(serving))


async def _serve(
    command: str,
    make: Callable[[JsonRpc], Service],
    envelope: dict[str, Any],
) -> int:
    async with standard_pipes(command) as (reader, writer):
        rpc = JsonRpc(reader, writer, envelope)
        service = make(rpc)
        try:
            await rpc.serve(service)
        finally:
            await service.aclose()
    return ExitCode.DONE


def served_options(arguments: Arguments) -> SessionOptions:
    """The options of every session that a client opens.

    Raises:
        UsageError: the folder of `--cd` does not exist.
    """
    add_dirs: list[Path] = []
    if arguments.add_dir:
        cwd = working_folder(arguments.cd)
        add_dirs = [cwd / name for name in arguments.add_dir]
    return SessionOptions(
        add_dirs=tuple(add_dirs),
        ignore_rules=arguments.ignore_rules,
        bypass_hook_trust=arguments.bypass_hook_trust,
        of_extensions=arguments.of_extensions,
    )
