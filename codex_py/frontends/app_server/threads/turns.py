"""Answers the methods about the turns of a thread that run."""

import asyncio
from functools import partial

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.inputs import Inputs
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.threads.thread_answers import settings_data
from codex_py.frontends.app_server.turn_items.items import Fields, turn_data
from codex_py.protocol.event_items import UserMessage


class TurnMethods(MethodGroup):
    """Answers `turn/…`, the settings of later turns, and compaction, which is a turn as well."""

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        super().__init__(server, threads)
        self._inputs = Inputs(server.home)

    async def aclose(self) -> None:
        self._inputs.close()

    @serves("turn/start", params.TurnStart)
    async def start(self, asked: params.TurnStart) -> Fields:
        """Start a turn. As in Codex, the prompt joins a turn that runs, if that still takes it."""
        async with self.threads.locked(asked.thread_id) as thread:
            text, images = self._inputs.read(asked.input, thread.config.cwd)
            table = asked.table()
            running = thread.feed
            if running is not None:
                _refuse_changes(thread, asked)
                if thread.session.steer(text, images=images):
                    return {"turn": turn_data(running.turn_id, "inProgress")}
            await thread.ended()
            await thread.set(asked.cwd, table, asked.mode)
            names = tuple(map(str, images))
            shown = UserMessage(id="prompt", text=text, images=names)
            turn = partial(
                thread.session.run_turn,
                text,
                images=images,
                output_schema=asked.output_schema,
            )
            return {"turn": await thread.start(turn, shown)}

    @serves("turn/steer", params.TurnSteer)
    async def steer(self, asked: params.TurnSteer) -> Fields:
        thread = self.threads.running(asked.thread_id, asked.expected_turn_id, "steer")
        text, images = self._inputs.read(asked.input, thread.config.cwd)
        if not thread.session.steer(text, images=images):
            raise RpcError(
                INVALID_REQUEST, "the turn takes no more input: it is about to end"
            )
        return {"turnId": asked.expected_turn_id}

    @serves("turn/interrupt", params.TurnInterrupt)
    async def interrupt(self, asked: params.TurnInterrupt) -> Fields:
        thread = self.threads.running(asked.thread_id, asked.turn_id, "interrupt")
        asyncio.get_running_loop().call_soon(thread.cancel)
        return {}

    @serves("thread/settings/update", params.ThreadSettings)
    async def set(self, asked: params.ThreadSettings) -> Fields:
        """Change the settings of the turns to come."""
        async with self.threads.locked(asked.thread_id) as thread:
            if thread.is_working:
                _refuse_changes(thread, asked)
            await thread.set(asked.cwd, asked.table(), asked.mode)
            told = {
                "threadId": asked.thread_id,
                "threadSettings": settings_data(thread),
            }
        self.server.later("thread/settings/updated", told)
        return {}

    @serves("thread/compact/start", params.OneThread)
    async def compact(self, asked: params.OneThread) -> Fields:
        async with self.threads.locked(asked.thread_id) as thread:
            await thread.ended()
            await thread.start(thread.session.compact, None)
        return {}


def _refuse_changes(thread: AppThread, asked: params.ThreadSettings) -> None:
    """Raise an `RpcError` if the settings differ from those of the running turn."""
    is_other_mode = asked.mode not in {None, thread.mode}
    if is_other_mode or thread.changed_by(asked.cwd, asked.table()) is not None:
        reason = "the settings of a thread cannot change while it runs a turn"
        raise RpcError(INVALID_REQUEST, reason)
