"""The session behind the screen: opened, spoken to, interrupted, exchanged for another."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from codex_py.config.config import Config
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.patience import Patience
from codex_py.protocol.approval import Approver
from codex_py.protocol.elicitation import Elicitor
from codex_py.protocol.events import EventSink

if TYPE_CHECKING:
    # The first frame does not need them.
    from codex_py.app.session import SessionOptions
    from codex_py.core.session import Session
    from codex_py.core.turn_state import TurnResult


class Conversation:
    """One session at a time, and one turn of it.

    Args:
        ended: called after each turn, and told whether it came to its own end.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        sink: EventSink,
        *,
        ended: Callable[[bool], None],
    ) -> None:
        self._environment = environment
        self._sink = sink
        self._ended = ended
        self._open = AsyncExitStack()
        self._turn: asyncio.Task[None] | None = None
        self.session: Session | None = None
        self.steered: list[Submission] = []
        """Said into the running turn, and not yet told to the model."""
        self.queue: list[Submission] = []
        """To be sent when the running turn is over."""

    @property
    def is_working(self) -> bool:
        return self._turn is not None

    async def open(
        self,
        config: Config,
        options: "SessionOptions",
        *,
        approver: Approver,
        elicitor: Elicitor,
        patience: Patience,
    ) -> "Session":
        """Begin with another session; the one before is closed when that is open.

        Raises:
            CodexError: it cannot be opened. The session before, if there is one, stays.
        """
        from codex_py.app.session import open_session  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                open_session(
                    config,
                    options,
                    self._sink,
                    environment=self._environment,
                    approver=approver,
                    elicitor=elicitor,
                    patience=patience.wait,
                )
            )
            await self.close()
            self._open, self.session = stack.pop_all(), session
        return session

    async def close(self) -> None:
        """Interrupt the turn, and close the session."""
        await self.interrupt()
        self.session = None
        await self._open.aclose()

    def submit(self, submission: Submission, tasks: asyncio.TaskGroup) -> None:
        """Send it: as a turn of its own, into the running one, or after that if it says so."""
        session = self.session
        assert session is not None
        if self._turn is None:
            self._start(lambda: session.run_turn(submission.text, images=submission.images), tasks)
        elif not submission.queued and session.steer(submission.text, images=submission.images):
            self.steered.append(submission)
        else:
            self.queue.append(submission)

    def compact(self, tasks: asyncio.TaskGroup) -> None:
        """Make room, as a turn that can be interrupted. None may be running."""
        assert self.session is not None
        self._start(self.session.compact, tasks)

    def retry(self, tasks: asyncio.TaskGroup) -> None:
        """Go on with the turn that did not come to its end. None may be running."""
        assert self.session is not None
        self._start(self.session.retry, tasks)

    def was_told(self) -> None:
        """The model has been told what was steered first."""
        if self.steered:
            del self.steered[0]

    def take_unsent(self) -> list[Submission]:
        """What was to be told and was not, when a turn ended too early; forgotten here."""
        unsent, self.queue = self.queue, []
        return unsent

    async def interrupt(self) -> bool:
        """End the running turn; whether there was one."""
        turn = self._turn
        if turn is None:
            return False
        turn.cancel()
        await asyncio.wait([turn])
        return True

    def _start(
        self, work: "Callable[[], Coroutine[Any, Any, TurnResult]]", tasks: asyncio.TaskGroup
    ) -> None:
        self._turn = tasks.create_task(self._run(work, tasks))

    async def _run(
        self, work: "Callable[[], Coroutine[Any, Any, TurnResult]]", tasks: asyncio.TaskGroup
    ) -> None:
        is_whole = False
        try:
            result = await work()
            is_whole = result.error is None
        except asyncio.CancelledError:
            # The user's wish, which ends here: the program goes on.
            pass
        finally:
            self._turn = None
            if self.session is not None:
                self.session.take_unsent()
            self.queue[:0] = self.steered
            self.steered = []
            self._ended(is_whole)
        if is_whole and self.queue:
            self.submit(self.queue.pop(0), tasks)
