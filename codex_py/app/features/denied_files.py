"""Refuses to begin a session whose denied files or hosts could not be held: before the first request, not at the first
command."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from codex_py.app.options import SessionSetup
from codex_py.errors import CodexError, ExitCode, ToolError
from codex_py.protocol.extension import Extension, Thread
from codex_py.sandbox.choice import PlatformSandbox


class DeniedFiles:
    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup

    def __call__(self, thread: Thread) -> Extension:  # noqa: ARG002
        return Extension(around_session=self._around_session)

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        await asyncio.to_thread(self._try)
        yield

    def _try(self) -> None:
        config = self._setup.config
        policy = config.sandbox_policy(self._setup.options.add_dirs)
        problems = self._setup.backend_problems
        sandbox = PlatformSandbox(self._setup.environment, home=config.home, problems=problems)
        try:
            sandbox.command(["true"], policy, config.cwd)
        except ToolError as error:
            raise CodexError(str(error), code="sandbox", exit_code=ExitCode.SANDBOX) from error
        finally:
            sandbox.release()
