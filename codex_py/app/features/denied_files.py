"""Refuses to begin a session if denied files could not be protected.

The session fails before the first request, not at the first command.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from codex_py.app.options import SessionSetup
from codex_py.errors import CodexError, ExitCode, ToolError
from codex_py.protocol.extension import Extension, Feature
from codex_py.sandbox.choice import PlatformSandbox


def denied_files(setup: SessionSetup) -> Feature:
    def attempt() -> None:
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

    @asynccontextmanager
    async def around_session() -> AsyncGenerator[None]:
        await asyncio.to_thread(attempt)
        yield

    return lambda _: Extension(around_session=around_session)
