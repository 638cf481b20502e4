"""A thread of a server for programs or editors: its session, its turns, and its notices.

`codex-py acp`, `app-server` and `mcp-server` are such servers. `api/servers.py` offers them to
packages.
"""

import asyncio
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar

from codex_py.app.hosted import HostedSession
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.config.config import Config
from codex_py.errors import CodexError, TurnAborted
from codex_py.protocol import events
from codex_py.protocol.approval import Approver
from codex_py.protocol.mcp import Elicitor

_T = TypeVar("_T")
_Work: TypeAlias = Callable[[], Coroutine[Any, Any, _T]]


class ServedTurn(Generic[_T]):
    """A turn of a thread, which may wait for earlier ones. It ends exactly once.

    If a bug ends it while nobody waits for it, standard error gets the traceback.

    Attributes:
        is_cancelled: True as soon as the turn was cancelled, even if it still runs.
    """

    def __init__(self, running: Coroutine[Any, Any, _T]) -> None:
        self.is_cancelled = False
        self.task = asyncio.create_task(running)
        self._started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The id of the turn, set at its first event."""
        self._session: Session | None = None
        """The session, set at the first event."""
        self._waiting = 0
        """The number of tasks that wait for the turn."""
        self.task.add_done_callback(self._report_bug)

    async def started(self) -> str:
        """Wait for the first event of the turn, and return the turn's id.

        Raises:
            CodexError: the turn cannot begin, or was cancelled before.
        """
        with self._awaited():
            await asyncio.wait(
                [self.task, self._started], return_when=asyncio.FIRST_COMPLETED
            )
        if self._started.done():
            if self.task.done():
                self._report_bug(self.task)
            return self._started.result()
        if not self.task.cancelled():
            self.task.result()
        raise CodexError("the thread was closed before the turn began")

    async def ended(self) -> _T:
        """Wait for the end of the turn, and return the value of its work.

        If the wait is cancelled, the turn is cancelled, and has ended when this raises. A second
        cancellation of the wait leaves at once.

        Raises:
            TurnAborted: the turn was cancelled before the session began it.
            CodexError: the turn cannot begin.
        """
        with self._awaited():
            try:
                await asyncio.wait([self.task])
            except asyncio.CancelledError:
                self.cancel()
                await asyncio.wait([self.task])
                raise
        if self.task.cancelled():
            raise TurnAborted("the turn was interrupted")
        return self.task.result()

    def cancel(self) -> None:
        """End the turn, without waiting. Further calls do nothing."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        if self._session is not None and self._session.is_running:
            # From now on, the session adds no prompts to this turn.
            self._session.abort()
        else:
            self.task.cancel()

    def record_start(self, turn_id: str, session: Session) -> None:
        """Record the first event of the turn."""
        self._session = session
        if not self._started.done():
            self._started.set_result(turn_id)

    @contextmanager
    def _awaited(self) -> Generator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def _report_bug(self, task: asyncio.Task[_T]) -> None:
        """Print the error of the turn, unless a task waits that gets it."""
        if self._waiting or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            traceback.print_exception(error, file=sys.stderr)


class ServedThread(HostedSession, ABC):
    """A thread of a server. Its session may be closed, and is opened again for the next turn.

    To write a server, make a subclass for its protocol. The subclass supplies:

    - `configuration`, which returns the configuration for each opening;
    - `show`, which sends what an event becomes in the protocol;
    - `approver` and `elicitor`, which ask the client's user.

    A prompt of the client becomes `begin(work)`, whose work awaits `ready` and then `run_turn` of
    that session. The request is answered from `ServedTurn.ended`, or from `ServedTurn.started` if
    the protocol answers it when the turn begins. `ServedThreads` keeps threads by their ids.

    The thread promises:

    - One turn runs at a time. `begin` lets a turn wait for all earlier ones, and turns run in the
      order of their beginning. A protocol whose prompts join the running turn tries `session.steer`
      first. A protocol that refuses prompts during a turn asks `is_busy`.
    - Each turn emits `TurnStarted`, and then exactly one of `TurnCompleted` and `TurnFailed`, even
      if it is cancelled or the client leaves. A turn that is cancelled while it waits emits none.
      `ServedTurn.ended` returns or raises after the terminal event.
    - `cancel` is for all turns so far, and for no later one. When a cancelled turn has ended, its
      commands are stopped, its open questions are withdrawn, and the history can be sent again.
      Prompts that were steered into it and were not sent reach no later turn.
    - Events are shown in their order. `tell` sends notices in order too; within `answering`, it
      holds them back until the request is answered.
    - `close` ends every turn first. The next opening continues the conversation with the user's
      choices, also that of an ephemeral session. A session without a prompt has no file; the next
      opening then begins a new session with the same id.

    Args:
        options: the options of the first opening.
        environment: the variables for the configuration, the key and commands.
        turn_ended: called when a turn has ended, for instance `ServedThreads.close_idle`.

    Attributes:
        options: the options of the next opening.
        approver: decides on calls that need an approval; None: they are refused.
        elicitor: answers questions of MCP servers and of the model; None: they are declined.
        thread_id: the id of the thread; empty until its first opening.
        is_outdated: True if the configuration has changed since the session was opened, so that the
            session should be closed when it is idle.
        lock: held while an idle session is closed or opened again. A server may hold it for
            requests that exclude each other.
    """

    def __init__(
        self,
        options: SessionOptions,
        environment: Mapping[str, str],
        turn_ended: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.options = options
        self.approver: Approver | None = None
        self.elicitor: Elicitor | None = None
        self.thread_id = ""
        self.is_outdated = False
        self.lock = asyncio.Lock()
        self.environment = environment
        self._turn_ended = turn_ended
        self._turns: list[ServedTurn[Any]] = []
        """The turns that have not ended. The first one runs."""
        self._held: list[Callable[[], None]] = []
        """The notices that are held back."""
        self._holds = 0
        """The number of reasons to hold notices back."""

    @abstractmethod
    def configuration(self) -> Config:
        """Return the configuration for an opening. Called for each.

        Raises:
            ConfigError: there is no usable one.
        """

    @abstractmethod
    def show(self, event: events.Event) -> None:
        """Send what the event becomes in the protocol. It must neither raise nor block."""

    @property
    def is_working(self) -> bool:
        """True if a turn runs or waits."""
        return bool(self._turns)

    @property
    def is_busy(self) -> bool:
        """True if a turn runs or waits that was not cancelled."""
        return not all(turn.is_cancelled for turn in self._turns)

    @property
    def is_kept(self) -> bool:
        """True if the session is open, and its file contains a conversation to continue."""
        return self.is_open and self.session.is_kept

    @property
    def is_idle(self) -> bool:
        """True if the session can be closed, and opened again later."""
        return self.is_kept and not (self.is_working or self.lock.locked())

    async def open(self) -> Session:
        """Open the session. Raises the errors of `open_session` and of `configuration`."""
        self.is_outdated = False
        opening = open_session(
            self.configuration(),
            self.options,
            self._take,
            environment=self.environment,
            approver=self.approver,
            elicitor=self.elicitor,
        )
        session = await self.host(opening)
        # From now on, a fork is a thread of its own.
        self.options = replace(
            self.options,
            resume=session.thread_id,
            fork=False,
            new_id=None,
            continued=None,
        )
        return session

    async def ready(self) -> Session:
        """Return the session, and open it first if it is closed. Raises the errors of `open`."""
        if self.is_open and not self.is_closing:
            return self.session
        async with self.lock:
            if not self.is_open:
                await self.open()
            return self.session

    def begin(self, work: _Work[_T]) -> ServedTurn[_T]:
        """Begin a turn, or let it wait for the earlier ones. It can be cancelled from now on.

        Args:
            work: called when it is the turn's time; runs one turn or compaction of the session.
        """
        earlier = [turn.task for turn in self._turns]
        turn = ServedTurn(_after(earlier, work))
        self._turns.append(turn)

        def ended(_: object) -> None:
            self._turns.remove(turn)
            if self.is_open:
                # Input that was steered into an interrupted turn must not reach a later one.
                self.session.take_unsent()
            self._turn_ended()

        turn.task.add_done_callback(ended)
        return turn

    def cancel(self) -> None:
        """End every turn that was begun so far, without waiting."""
        for turn in self._turns:
            turn.cancel()

    async def ended(self) -> None:
        """Wait for the end of every turn that was begun so far."""
        if self._turns:
            await asyncio.wait([turn.task for turn in self._turns])

    async def close(self) -> None:
        """End every turn, and close the session. The work of a turn must not call this.

        Further calls do nothing. Raises the exception if a bug has ended the session.
        """
        self.cancel()
        await self.ended()
        if not self.is_open:
            await super().close()
            return
        session = self.session
        self.options = replace(self.options, choices=session.settings.choices)
        await super().close()
        file = session.session_file
        if file is None or not file.exists():
            self.options = replace(
                self.options,
                resume=None,
                new_id=session.thread_id,
                continued=session.state(),
            )

    def tell(self, notice: Callable[[], None]) -> None:
        """Send a notice: call it now, or when notices are no longer held back."""
        if self._holds:
            self._held.append(notice)
        else:
            notice()

    @contextmanager
    def answering(self) -> Generator[None]:
        """Hold notices back until the current request is answered.

        The answer must follow without another `await`.
        """
        self.hold_notices()
        try:
            yield
        finally:
            self.release_notices()

    def hold_notices(self) -> None:
        """Hold notices back until `release_notices` was called as often as this."""
        self._holds += 1

    def release_notices(self) -> None:
        """Send the notices that are held back as soon as the current task waits."""
        asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        self._holds -= 1
        if self._holds:
            return
        held = self._held
        self._held = []
        for notice in held:
            notice()

    def _take(self, event: events.Event) -> None:
        """The sink of the session's events."""
        match event:
            case events.ThreadStarted(thread_id):
                self.thread_id = thread_id
            case events.TurnStarted(turn_id) if self._turns:
                self._turns[0].record_start(turn_id, self.session)
            case _:
                pass
        self.show(event)


async def _after(earlier: list[asyncio.Task[Any]], work: _Work[_T]) -> _T:
    if earlier:
        await asyncio.wait(earlier)
    return await work()
