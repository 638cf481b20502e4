"""Answers the methods about the threads whose sessions are open."""

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads import thread_params
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.ids import is_thread_id


class LoadedThreadMethods(MethodGroup):
    """Answers `thread/loaded/list` and `thread/unsubscribe`."""

    @serves("thread/loaded/list", thread_params.LoadedList)
    async def list(self, asked: thread_params.LoadedList) -> Fields:
        """List the ids of the open threads in their order. A cursor is the last id of a page."""
        ids = sorted(thread.thread_id for thread in self.threads if thread.is_open)
        cursor = asked.cursor
        if cursor is not None:
            if not is_thread_id(cursor):
                raise RpcError(INVALID_REQUEST, f"invalid cursor: {cursor}")
            ids = [thread_id for thread_id in ids if thread_id > cursor]
        page = ids
        if asked.limit is not None:
            # As in Codex, a page is never empty.
            page = ids[: max(1, asked.limit)]
        next_cursor = None
        if len(page) < len(ids):
            next_cursor = page[-1]
        return {"data": page, "nextCursor": next_cursor}

    @serves("thread/unsubscribe", params.OneThread)
    async def unsubscribe(self, asked: params.OneThread) -> Fields:
        """Send no more notifications of a thread. Its turn goes on."""
        thread = self.threads.get(asked.thread_id)
        if thread is None:
            return {"status": "notLoaded"}
        if not thread.is_subscribed:
            return {"status": "notSubscribed"}
        self.threads.unsubscribe(thread)
        return {"status": "unsubscribed"}
