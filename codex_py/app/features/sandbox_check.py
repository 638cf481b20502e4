"""Checks the sandbox when a session begins.

If commands could not run in it, the session fails before the first request, and not only at the
first command.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from codex_py.app.options import SessionSetup
from codex_py.errors import CodexError, ExitCode, ToolError
from codex_py.protocol.extension import Extension, Feature, Thread
from codex_py.sandbox.choice import PlatformSandbox


def sandbox_check(setup: SessionSetup) -> Feature:
    """Return a feature that checks the sandbox, and warns of writable roots that are read-only."""

    def feature(thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_session() -> AsyncGenerator[None]:
            await asyncio.to_thread(_try_command, setup)
            for folder in setup.unwritable_folders():
                text = f"{folder} cannot be written to: commands change nothing in it"
                thread.warn(text)
            yield

        return Extension(around_session=around_session)

    return feature


def _try_command(setup: SessionSetup) -> None:
    """Prepare a command for the sandbox, without running it.

    Raises a `CodexError` if the sandbox can run no command.
    """
    policy = setup.config.sandbox_policy(setup.options.add_dirs)
    sandbox = PlatformSandbox(
        setup.environment,
        home=setup.config.home,
        problems=setup.backend_problems,
        folder_times=setup.folder_times,
    )
    try:
        sandbox.command(["true"], policy, setup.config.cwd)
    except ToolError as error:
        raise CodexError(
            str(error), code="sandbox", exit_code=ExitCode.SANDBOX
        ) from error
    finally:
        sandbox.release()
