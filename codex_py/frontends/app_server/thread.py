"""One thread of the server: its session, open or not, and its turn."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from codex_py.app.hosted import HostedThread
from codex_py.app.json_rpc import JsonRpc
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.app.settings import configured_choices
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.app_server.items import TurnFeed, turn_data
from codex_py.frontends.app_server.questions import Questions
from codex_py.protocol import event_items, events

_BUSY: Final[Mapping[str, Any]] = {"type": "active", "activeFlags": []}


class ServedThread(HostedThread):
    """A thread with its session and its running turn.

    Args:
        configure: makes the configuration of a thread from a folder and settings.
        changed: called when a turn has ended.

    Attributes:
        table: the settings that the client asked for.
        status: the thread's status, in the format of Codex.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        environment: Mapping[str, str],
        options: SessionOptions,
        configure: Callable[[str, Mapping[str, Any], Mapping[str, str]], Config],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(options)
        self._rpc = rpc
        self._environment = environment
        self._configure = configure
        self._changed = changed
        self._held: list[tuple[str, dict[str, Any], bool]] | None = None
        """Notifications that wait for the answer to a request; None: send them at once."""
        self._texts: Mapping[str, str] = {}
        self._prompt: event_items.UserMessage | None = None
        """The prompt of the turn that starts."""
        self._started: asyncio.Future[str]
        """The id of the turn that starts."""
        self.config: Config
        self.id: str = ""
        self.table: dict[str, Any] = {}
        self.status: Mapping[str, Any] = {"type": "idle"}
        self.feed: TurnFeed | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_lasting(self) -> bool:
        """True if the thread can be continued from its file."""
        return (
            self.is_open
            and self.session.session_file is not None
            and self.session.has_begun
        )

    @property
    def is_idle(self) -> bool:
        return super().is_idle and self.is_lasting and self.task is None

    async def open(
        self, cwd: str, table: Mapping[str, Any], texts: Mapping[str, str] | None = None
    ) -> Session:
        """Open the session in a folder, with these settings.

        Raises:
            CodexError: the session cannot be opened.
        """
        if texts is not None:
            self._texts = texts
        self.table = dict(table)
        self.config = self._configure(cwd, self.table, self._texts)
        asking = Questions(self._rpc, lambda: (self.id, self.feed), self.notify)
        opening = open_session(
            self.config,
            self.options,
            self._take,
            environment=self._environment,
            approver=asking,
            elicitor=asking,
        )
        session = await self.host(opening)
        self.id = session.thread_id
        return session

    async def close(self) -> None:
        await super().close()
        await self.ended()

    async def ended(self) -> None:
        """Wait for the end of the running turn."""
        if self.task is not None:
            await asyncio.wait([self.task])

    def changed_by(self, cwd: str | None, table: Mapping[str, Any]) -> Config | None:
        """The configuration with these settings on top; None if they change nothing.

        Raises:
            ConfigError: the settings cannot be used.
        """
        own = self.config
        if (own.cwd / (cwd or ".")) == own.cwd and self.table == {
            **self.table,
            **table,
        }:
            return None
        folder = str(own.cwd / (cwd or "."))
        config = self._configure(folder, {**self.table, **table}, self._texts)
        is_same = replace(config, layers=own.layers) == own
        if is_same and _reopened_for(config) == _reopened_for(own):
            return None
        return config

    async def set(self, cwd: str | None, table: Mapping[str, Any]) -> None:
        """Change settings for the next turns.

        Raises:
            CodexError: the settings are not possible. Nothing has changed, unless the session had
                to be opened anew.
        """
        config = self.changed_by(cwd, table)
        if config is None:
            return
        table = {**self.table, **table}
        if _reopened_for(config) == _reopened_for(self.config):
            self.session.change(configured_choices(config, self.options.add_dirs))
            self.config = config
            self.table = table
        elif self.is_lasting:
            await self.close()
            self.options = replace(self.options, choices=None)
            await self.open(str(config.cwd), table)
        else:
            raise CodexError(
                "before its first turn, a thread keeps its folder, its reviewer and its service tier",
                code="usage",
            )

    async def start(
        self, work: Coroutine[Any, Any, object], prompt: event_items.UserMessage | None
    ) -> dict[str, Any]:
        """Start a turn in a task of its own. Its notifications follow the answer to the request.

        Returns:
            The turn, for the answer.

        Raises:
            CodexError: the turn could not begin, for instance because of a bad output schema.
        """
        self._prompt = prompt
        started = asyncio.get_running_loop().create_future()
        self._started = started
        with self.answering():
            task = asyncio.create_task(self._turn(work, started))
            self.task = task
            await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED)
            if not started.done():
                raise CodexError("the thread was closed before the turn began")
            return turn_data(started.result(), "inProgress")

    @contextmanager
    def answering(self) -> Generator[None]:
        """Hold back notifications from within until the current request is answered."""
        self._held = self._held or []
        try:
            yield
        finally:
            asyncio.get_running_loop().call_soon(self._release)

    def notify(
        self, method: str, params: dict[str, Any], *, is_live: bool = False
    ) -> None:
        if self._held is not None:
            self._held.append((method, params, is_live))
        else:
            self._rpc.notify(method, params, is_live=is_live)

    async def _turn(
        self, work: Coroutine[Any, Any, object], started: asyncio.Future[str]
    ) -> None:
        """Run a turn. An error before its first event is set in `started`."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a bug costs this turn, which has ended as failed
            if started.done():
                traceback.print_exc(file=sys.stderr)
            else:
                started.set_exception(error)
        finally:
            self.task = None
            if self.is_open:
                # Input that was steered into an interrupted turn must not reach a later one.
                self.session.take_unsent()
            self._changed()

    def _release(self) -> None:
        held = self._held or []
        self._held = None
        for method, params, is_live in held:
            self.notify(method, params, is_live=is_live)

    def _take(self, event: events.Event) -> None:
        """The sink of the session."""
        match event:
            case events.ThreadStarted(thread_id):
                self.id = thread_id
            case events.TurnStarted(turn_id):
                self._begin(turn_id)
            case events.TurnCompleted() | events.TurnFailed() if self.feed is not None:
                feed = self.feed
                self.feed = None
                turn = feed.end(event)
                self._tell_status(
                    "systemError" if turn["status"] == "failed" else "idle"
                )
                self.notify("turn/completed", {"threadId": self.id, "turn": turn})
            case events.GoalChanged(None):
                self.notify("thread/goal/cleared", {"threadId": self.id})
            case events.GoalChanged(goal):
                place = {"threadId": self.id, "turnId": self.feed and self.feed.turn_id}
                self.notify("thread/goal/updated", {**place, "goal": goal})
            case events.ItemCompleted(event_items.ErrorItem(message=message)):
                self.notify("warning", {"threadId": self.id, "message": message})
            case _ if self.feed is not None:
                self.feed.take(event)
            case _:
                pass

    def _begin(self, turn_id: str) -> None:
        self.feed = TurnFeed(self.id, turn_id, self.config.cwd, self.notify)
        self._started.set_result(turn_id)
        self._tell_status("active")
        self.feed.start(self._prompt)

    def _tell_status(self, status: str) -> None:
        if status == "active":
            self.status = _BUSY
        else:
            self.status = {"type": status}
        self.notify(
            "thread/status/changed", {"threadId": self.id, "status": self.status}
        )


def _reopened_for(config: Config) -> tuple[Any, ...]:
    """The settings that cannot change while a session is open."""
    reviewer = config.settings.approvals_reviewer or "user"
    return config.cwd, reviewer, config.settings.service_tier
