"""Talk in a session of this program, without a frontend."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.protocol.approval import Approver
from codex_py.protocol.events import EventSink
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

Talk = Callable[[Session], Awaitable[None]]


def talk(
    place: Workplace,
    server: ScriptedServer,
    work: Talk,
    *,
    sink: EventSink = lambda _: None,
    sandbox_mode: str = "danger-full-access",
    approver: Approver | None = None,
    **options: Any,
) -> str:
    """Open a session, do something in it, and close it; its id. `options` are those of `SessionOptions`."""

    async def run() -> str:
        env = environment(place.home)
        config = load_config(
            cwd=place.cwd, environment=env, flags={"sandbox_mode": sandbox_mode}
        )
        session_options = SessionOptions(
            source="cli", originator="codex-tui", keep_commands=True, **options
        )
        async with open_session(
            config, session_options, sink, environment=env, approver=approver
        ) as session:
            await work(session)
            return session.thread_id

    place.configure(server)
    return asyncio.run(run())
