"""The threads that a server has opened for its client."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Final

from codex_py.app.json_rpc import INVALID_REQUEST, OVERLOADED, RpcError
from codex_py.app.options import SessionOptions
from codex_py.app.served_threads import ServedThreads
from codex_py.config.config import Config
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.thread import AppThread

NOT_LOADED: Final[Mapping[str, Any]] = {"type": "notLoaded"}
"""The status of a thread that this server has not opened, or has closed for good."""
_UNLOAD_S: Final = 30 * 60
"""The time after which a thread without a subscription is closed, as in Codex."""
_MAX_OPEN: Final = 256
"""Number of threads that may be open at once, with turns that run or not."""


class OpenThreads:
    """Opens threads, and finds them again by the ids that the client has for them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._threads = ServedThreads[AppThread]()
        self._unloading: dict[AppThread, asyncio.Task[None]] = {}
        """The tasks that close the threads without a subscription."""
        self._opening: dict[str, asyncio.Event] = {}
        """The stored threads that are being opened; each event is set at the end."""

    def __iter__(self) -> Iterator[AppThread]:
        return iter(self._threads)

    def unsubscribe(self, thread: AppThread) -> None:
        """Stop the notifications of a thread, and close it once it was unused for a while."""
        thread.unsubscribe()
        self._unloading[thread] = asyncio.create_task(self._unload_later(thread))

    def subscribe(self, thread: AppThread) -> None:
        """Send the notifications of a thread again."""
        thread.subscribe()
        unloading = self._unloading.pop(thread, None)
        if unloading is not None:
            unloading.cancel()

    def get(self, thread_id: str) -> AppThread | None:
        """Find a thread that this server has opened; its session may be closed meanwhile."""
        return self._threads.get(thread_id)

    def remove(self, thread: AppThread) -> None:
        """Forget a thread under all of its ids."""
        self.subscribe(thread)
        self._threads.remove(thread)

    async def opened(self, thread_id: str) -> None:
        """Wait while another request opens a stored thread."""
        while thread_id in self._opening:
            await self._opening[thread_id].wait()

    @contextmanager
    def opening(self, thread_id: str) -> Generator[None]:
        """Let `opened` wait for the thread. Nobody may open it already."""
        ended = asyncio.Event()
        self._opening[thread_id] = ended
        try:
            yield
        finally:
            del self._opening[thread_id]
            ended.set()

    async def open(
        self,
        options: SessionOptions,
        cwd: str,
        table: Mapping[str, Any],
        texts: Mapping[str, str],
    ) -> AppThread:
        """Open a thread. The caller keeps it with `keep`.

        Args:
            cwd: the folder of the thread.
            table: settings of the client, as in `config.toml`.
            texts: the client's instructions, by fields of a `Config`.

        Raises:
            RpcError: too many threads are open.
            CodexError: the settings cannot be used, or the session cannot be opened.
        """
        if sum(thread.is_open for thread in self._threads) >= _MAX_OPEN:
            raise RpcError(
                OVERLOADED, f"more than {_MAX_OPEN} threads are open; use fewer at once"
            )
        thread = AppThread(
            self._server.rpc,
            self._server.environment,
            options,
            self._configuration,
            cwd,
            table,
            texts,
            self._threads.close_idle,
        )
        await thread.open()
        return thread

    def keep(self, thread: AppThread, *names: str) -> None:
        """Keep a thread that was opened, under its id and the names that the client has for it."""
        self._threads.use(thread, thread.thread_id, *names)
        self._threads.close_idle()

    def find(self, thread_id: str) -> AppThread:
        """Find a thread that this server has opened, and mark it as used last.

        Raises:
            RpcError: there is none.
        """
        thread = self._threads.get(thread_id)
        if thread is None:
            raise RpcError(INVALID_REQUEST, f"thread not found: {thread_id}")
        self._threads.use(thread)
        return thread

    @asynccontextmanager
    async def locked(self, thread_id: str) -> AsyncGenerator[AppThread]:
        """Lock a thread, and open its session if that is closed.

        Raises:
            RpcError: this server has not opened the thread, or it was archived meanwhile.
        """
        await self.opened(thread_id)
        thread = self.find(thread_id)
        async with thread.lock:
            if self._threads.get(thread_id) is not thread:
                text = f"thread {thread_id} was archived meanwhile; `thread/unarchive` brings it back"
                raise RpcError(INVALID_REQUEST, text)
            if not thread.is_open:
                await thread.open()
                thread.watch_servers()
            yield thread

    def running(self, thread_id: str, turn_id: str, what: str) -> AppThread:
        """Find a thread by its running turn.

        Args:
            what: a verb for the error, such as `steer`.

        Raises:
            RpcError: there is no such thread, or it runs another turn or none.
        """
        thread = self.find(thread_id)
        if thread.feed is None:
            raise RpcError(INVALID_REQUEST, f"no active turn to {what}")
        found = thread.feed.turn_id
        if found != turn_id:
            # The SDK of Codex reads this.
            text = f"expected active turn id `{turn_id}` but found `{found}`"
            raise RpcError(INVALID_REQUEST, text)
        return thread

    def reload(self) -> None:
        """Let every thread read the configuration anew, before its next turn."""
        self._threads.reopen_all()

    def status(self, thread_id: str) -> Mapping[str, Any]:
        """The status of any thread, in the format of Codex."""
        thread = self._threads.get(thread_id)
        if thread is not None and thread.is_open:
            return thread.status
        return NOT_LOADED

    async def aclose(self) -> None:
        """End every turn, and close every session."""
        for task in self._unloading.values():
            task.cancel()
        await self._threads.aclose()

    async def _unload_later(self, thread: AppThread) -> None:
        """Close a thread after half an hour without a turn, and tell the client."""
        is_used = True
        while is_used:
            await asyncio.sleep(_UNLOAD_S)
            async with thread.lock:
                # A turn may have begun while this waited for the lock.
                is_used = thread.is_working
                if not is_used:
                    await thread.close()
                    del self._unloading[thread]
                    self.remove(thread)
        self.tell_closed(thread)
        self._server.rpc.notify("thread/closed", {"threadId": thread.thread_id})

    def tell_closed(self, thread: AppThread) -> None:
        """Tell the client that a thread is not loaded any more."""
        told = {"threadId": thread.thread_id, "status": NOT_LOADED}
        self._server.rpc.notify("thread/status/changed", told)

    def _configuration(
        self,
        cwd: str,
        table: Mapping[str, Any],
        texts: Mapping[str, str],
    ) -> Config:
        """The configuration of a thread. `texts`: instructions by fields of a `Config`."""
        config = self._server.configuration(cwd, table)
        return replace(config, **texts)
