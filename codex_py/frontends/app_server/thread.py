"""One thread of the server: its session, open or not, and its turn."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.app.hosted import HostedThread
from codex_py.app.json_rpc import JsonRpc
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.app.settings import configured_choices
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.app_server.items import Fields, TurnFeed, turn_data
from codex_py.frontends.app_server.questions import Questions
from codex_py.protocol import event_items, events

_Table: TypeAlias = Mapping[str, Any]
"""Settings as in `config.toml`."""
_Configure: TypeAlias = Callable[[str, _Table, Mapping[str, str]], Config]
_BUSY: Final[Fields] = {"type": "active", "activeFlags": []}


class _Notification(NamedTuple):
    method: str
    params: Fields
    is_live: bool


class ServedThread(HostedThread):
    """A thread with its session and its running turn.

    Args:
        configure: makes the configuration of a thread from a folder, settings, and texts of the
            client by fields of a `Config`.
        changed: called when a turn has ended.

    Attributes:
        config: the configuration of the session; it is set when the session is opened first.
        table: the settings that the client asked for.
        status: the thread's status, in the format of Codex.
        feed: the running turn, from its first event to its last; None if no turn runs.
        task: the task of the running turn; None if no turn runs.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        environment: Mapping[str, str],
        options: SessionOptions,
        configure: _Configure,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(options)
        self._rpc = rpc
        self._environment = environment
        self._configure = configure
        self._changed = changed
        self._held: list[_Notification] | None = None
        """Notifications that wait for the answer to a request; None: send them at once."""
        self._texts: Mapping[str, str] = {}
        """The instructions that the client gave, by fields of a `Config`."""
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
        self,
        cwd: str,
        table: _Table,
        texts: Mapping[str, str] | None = None,
    ) -> Session:
        """Open the session in a folder, with these settings.

        Args:
            texts: the client's instructions; None for those of the last opening.

        Raises:
            CodexError: the session cannot be opened.
        """
        if texts is not None:
            self._texts = texts
        self.table = dict(table)
        self.config = self._configure(cwd, self.table, self._texts)
        asking = Questions(self._rpc, self._running, self.notify)
        opening = open_session(
            self.config,
            self.options,
            self._show,
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

    def changed_by(self, cwd: str | None, table: _Table) -> Config | None:
        """The configuration with these settings on top; None if they change nothing.

        Raises:
            ConfigError: the settings cannot be used.
        """
        own = self.config
        folder = own.cwd / (cwd or ".")
        together = {**self.table, **table}
        if folder == own.cwd and together == self.table:
            return None
        config = self._configure(str(folder), together, self._texts)
        is_same = replace(config, layers=own.layers) == own
        if is_same and _fixed_settings(config) == _fixed_settings(own):
            return None
        return config

    async def set(self, cwd: str | None, table: _Table) -> None:
        """Change settings for the next turns.

        Raises:
            CodexError: the settings are not possible. Nothing has changed, unless the session had
                to be opened anew.
        """
        config = self.changed_by(cwd, table)
        if config is None:
            return
        together = {**self.table, **table}
        if _fixed_settings(config) == _fixed_settings(self.config):
            choices = configured_choices(config, self.options.add_dirs)
            self.session.change(choices)
            self.config = config
            self.table = together
        elif self.is_lasting:
            await self.close()
            self.options = replace(self.options, choices=None)
            await self.open(str(config.cwd), together)
        else:
            raise CodexError(
                "before its first turn, a thread keeps its folder, its reviewer and its service tier",
                code="usage",
            )

    async def start(
        self, work: Coroutine[Any, Any, object], prompt: event_items.UserMessage | None
    ) -> Fields:
        """Start a turn in a task of its own. Its notifications follow the answer to the request.

        Args:
            prompt: the item that is shown first; None for a turn without a prompt.

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

    def notify(self, method: str, params: Fields, *, is_live: bool = False) -> None:
        """Send a notification, now or after the current answer. See `Notify`."""
        if self._held is not None:
            self._held.append(_Notification(method, params, is_live))
        else:
            self._rpc.notify(method, params, is_live=is_live)

    def _running(self) -> tuple[str, TurnFeed | None]:
        """The id of the thread, and the running turn; see `Questions`."""
        return self.id, self.feed

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
        for each in held:
            self.notify(each.method, each.params, is_live=each.is_live)

    def _show(self, event: events.Event) -> None:
        """The sink of the session's events."""
        feed = self.feed
        match event:
            case events.ThreadStarted(thread_id):
                self.id = thread_id
            case events.TurnStarted(turn_id):
                self._begin(turn_id)
            case events.TurnCompleted() | events.TurnFailed() if feed is not None:
                self.feed = None
                turn = feed.end(event)
                is_failed = turn["status"] == "failed"
                self._tell_status({"type": "systemError" if is_failed else "idle"})
                self.notify("turn/completed", {"threadId": self.id, "turn": turn})
            case events.GoalChanged(None):
                self.notify("thread/goal/cleared", {"threadId": self.id})
            case events.GoalChanged(goal):
                turn_id = feed and feed.turn_id
                told = {"threadId": self.id, "turnId": turn_id, "goal": goal}
                self.notify("thread/goal/updated", told)
            case events.ItemCompleted(event_items.ErrorItem(message=message)):
                self.notify("warning", {"threadId": self.id, "message": message})
            case _ if feed is not None:
                feed.take(event)
            case _:
                pass

    def _begin(self, turn_id: str) -> None:
        self.feed = TurnFeed(self.id, turn_id, self.config.cwd, self.notify)
        self._started.set_result(turn_id)
        self._tell_status(_BUSY)
        self.feed.start(self._prompt)

    def _tell_status(self, status: Mapping[str, Any]) -> None:
        self.status = status
        told = {"threadId": self.id, "status": status}
        self.notify("thread/status/changed", told)


def _fixed_settings(config: Config) -> tuple[Any, ...]:
    """The settings that cannot change while a session is open."""
    reviewer = config.settings.approvals_reviewer or "user"
    return config.cwd, reviewer, config.settings.service_tier
