"""Answers the methods about commands that run on behind their turn: there are none.

A command ends with its turn at the latest. Clients ask before they close a thread.
"""

from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.turn_items.items import Fields


class BackgroundTerminalMethods(MethodGroup):
    """Answers `thread/backgroundTerminals/…`."""

    @serves("thread/backgroundTerminals/list", params.BackgroundTerminals)
    async def list(self, asked: params.BackgroundTerminals) -> Fields:
        self.threads.find(asked.thread_id)
        return {"data": [], "nextCursor": None}

    @serves("thread/backgroundTerminals/terminate", params.BackgroundTerminal)
    async def terminate(self, asked: params.BackgroundTerminal) -> Fields:
        self.threads.find(asked.thread_id)
        return {"terminated": False}

    @serves("thread/backgroundTerminals/clean", params.OneThread)
    async def clean(self, asked: params.OneThread) -> Fields:
        self.threads.find(asked.thread_id)
        return {}
