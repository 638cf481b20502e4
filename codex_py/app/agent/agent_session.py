"""The conversation of an `Agent`: a session that the first turn opens."""

import asyncio
import os
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, TypeAlias

from codex_py.app.agent.result import Result, aborted_before_start
from codex_py.app.hosted import HostedSession
from codex_py.app.options import SessionOptions
from codex_py.app.session import TurnResult, log_warnings, open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.errors import CodexError, ConfigError, ExitCode
from codex_py.protocol.event_items import AgentMessage
from codex_py.protocol.events import (
    Event,
    ItemCompleted,
    MessageDelta,
    Reconnecting,
    TurnCompleted,
    TurnFailed,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.output_model import ModelSchema, WrongAnswer
from codex_py.protocol.prompts import is_summary, user_prompt
from codex_py.protocol.stream import Usage

Tell: TypeAlias = Callable[[Event], None]
"""Reports an event."""


@frozen(kw_only=True)
class AgentSetup:
    """The way in which an agent opens its conversation."""

    cwd: Path
    """The working folder; absolute."""
    settings: Mapping[str, Any]
    """Settings in the form of `config.toml`."""
    home: Path | None
    """The folder in place of the user's `$CODEX_HOME`; absolute. See `Agent`."""
    environment: Mapping[str, str] | None
    """None: the variables of the program."""
    parts: Mapping[str, Any]
    """Further arguments of `open_session`."""

    @asynccontextmanager
    async def opened(
        self, sink: Tell, options: SessionOptions
    ) -> AsyncGenerator[Session]:
        """Open a session. Raises the errors of `load_config` and `open_session`, and a
        `ConfigError` if `home` cannot be made."""
        environment = dict(os.environ if self.environment is None else self.environment)
        with ExitStack() as stack:
            home = self.home
            if home is None and options.transport is not None:
                # Nothing of the user's may change the result of a test.
                home = Path(mkdtemp(prefix="codex-py-"))
                stack.callback(rmtree, home, ignore_errors=True)
            if home is not None:
                _make_home(home)
                environment["CODEX_HOME"] = str(home)
            config = load_config(
                cwd=self.cwd,
                environment=environment,
                flags=self.settings,
            )
            opening = open_session(
                config,
                options,
                sink,
                environment=environment,
                **self.parts,
            )
            async with opening as session:
                yield session


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"`home`: {home}: {error.strerror}") from error
    except ValueError as error:
        # The path has a null character, or a lone surrogate.
        raise ConfigError(f"`home`: {str(home)!r} cannot be a folder") from error


class _Run:
    """One call of `AgentSession.run`. Every interruption of its turn goes through here.

    It may be interrupted at any time, from any thread, and more than once. Create it in the task
    that runs the turn.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self.is_ending = False
        """True as soon as the run was interrupted, also while the turn still runs."""
        self._session: Session | None = None
        """The session; None while it opens."""
        self._is_cancelled = False
        """True if an interruption has cancelled the task."""
        self.is_over = False
        """True if the turn has ended; an interruption then does nothing."""

    def interrupt(self) -> None:
        """End the turn, or its opening. May be called from any thread."""
        self.is_ending = True
        self.task.get_loop().call_soon_threadsafe(self._end)

    async def opened(self, opening: Awaitable[Session]) -> Session:
        """Wait until the session is open, and return it.

        Raises a `TurnAborted` if the run was interrupted meanwhile, or the agent was closed.
        """
        try:
            session = await opening
        except asyncio.CancelledError:
            if self._is_cancelled:
                self.task.uncancel()
            if self.task.cancelling():
                # The caller was cancelled.
                raise
            raise aborted_before_start() from None
        self._session = session
        return session

    async def turn(self, begin: Callable[[], Awaitable[TurnResult]]) -> TurnResult:
        """Run the turn.

        Raises a `TurnAborted` if the run was interrupted before the turn's first step.
        """
        try:
            if self.is_ending:
                raise aborted_before_start()
            return await begin()
        finally:
            self.is_over = True

    def _end(self) -> None:
        if self.is_over:
            return
        if self._session is not None:
            # This ends only a turn that runs; `turn` begins none after an interruption.
            self._session.abort()
        elif not self._is_cancelled:
            self._is_cancelled = True
            self.task.cancel()


class AgentSession:
    """Holds the session of an agent, and runs its turns.

    It does not refer to the agent: the agent must be freed, and the session then closed, as soon as
    the caller has dropped the agent.
    """

    def __init__(self, setup: AgentSetup, options: SessionOptions) -> None:
        self.session: Session | None = None
        self.is_closed = False
        self._setup = setup
        self._options = options
        self._run: _Run | None = None
        """The running call of `run`."""
        self._hosted = HostedSession()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop in which the session is open."""
        self._listener: Tell | None = None
        """Gets the events of the running turn; None between turns."""
        self._early: deque[Event] = deque(maxlen=1000)
        """The last events since the last turn, which the next turn reports first."""

    @property
    def is_ending(self) -> bool:
        """True if the running turn was interrupted."""
        return self._run is not None and self._run.is_ending

    async def run(
        self,
        prompt: str,
        images: Sequence[Path],
        output_type: ModelSchema | None,
        tell: Tell,
    ) -> Result[Any]:
        """See `Agent.run`."""
        await self._require_no_turn()
        run = _Run()
        self._run = run
        seen: list[Event] = []
        unfinished: list[str] = []

        def listen(event: Event) -> None:
            match event:
                case MessageDelta(delta):
                    unfinished.append(delta)
                case ItemCompleted(AgentMessage()) | Reconnecting():
                    unfinished.clear()
                case _:
                    pass
            # Events without a type only show progress.
            if event.type is not None:
                seen.append(event)
            tell(event)

        try:
            session = await run.opened(self._opened())
            self._listener = listen
            while self._early:
                listen(self._early.popleft())
            tokens_before = session.token_usage.total
            begin = partial(
                session.run_turn,
                prompt,
                images=images,
                output_schema=output_type,
            )
            done = await self._hosted.run(run.turn(begin))
        finally:
            run.is_over = True
            self._run = None
            self._listener = None
        last_message = done.last_message or ""
        if done.error is not None and unfinished:
            last_message = "".join(unfinished)
        result = _result(done, last_message, seen, tokens_before, output_type)
        if result.error is not None:
            result.error.result = result
            raise result.error
        return result

    def interrupt(self) -> None:
        """See `Agent.interrupt`."""
        run = self._run
        if run is not None:
            run.interrupt()

    def leave(self, task: asyncio.Task[Any]) -> None:
        """Interrupt the turn that this task runs. If it runs none, cancel the task."""
        run = self._run
        if run is not None and task is run.task:
            run.interrupt()
        else:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def copied(self) -> "AgentSession":
        """Return a new conversation that begins with the history of this one.

        Raises a `RuntimeError` while a turn runs.
        """
        if self._run is not None:
            raise RuntimeError(
                "a turn of this agent runs; fork it before or after the turn"
            )
        return AgentSession(self._setup, self._continued(is_copy=True))

    async def close(self) -> None:
        """End the running turn and the session, if the session is open in this loop."""
        self.is_closed = True
        if self._loop is asyncio.get_running_loop():
            await self._hosted.close()

    def let_close(self) -> None:
        """Have the session closed by its loop. May be called from any thread."""
        if self._loop is not None:
            # If the loop is closed, the session has ended already.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hosted.let_close)

    def require_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("the agent is closed")

    async def _require_no_turn(self) -> None:
        """Wait for the end of a turn that was interrupted.

        Raises a `RuntimeError` if another turn runs.
        """
        if self._run is not None and self._run.is_ending:
            await asyncio.wait([self._run.task])
        if self._run is not None:
            raise RuntimeError(
                "a turn of this agent runs; wait for its end, or `steer` it"
            )

    async def _opened(self) -> Session:
        """Return the session. If it is not open in this loop, open it first.

        Raises a `RuntimeError` if it is open in another loop that is not closed.
        """
        self.require_open()
        loop = asyncio.get_running_loop()
        if self._hosted.is_open and self._loop is not loop:
            self._leave_closed_loop()
        if not self._hosted.is_open:
            self._loop = loop
            opening = self._setup.opened(self._tell, self._options)
            self.session = await self._hosted.host(opening)
        return self._hosted.session

    def _leave_closed_loop(self) -> None:
        """Prepare to continue a session that ended with its loop.

        This happens if the caller has an `asyncio.run` for each prompt. Raises a `RuntimeError` if
        the loop is not closed.
        """
        if self._loop is not None and not self._loop.is_closed():
            text = "the conversation of this agent is in another event loop, which runs"
            raise RuntimeError(f"{text}: go on there, or with a `fork()`")
        self._options = self._continued()
        self._hosted = HostedSession()

    def _continued(self, *, is_copy: bool = False) -> SessionOptions:
        """Return the options of a session that continues from here."""
        session = self.session
        if session is None:
            return self._options
        if session.session_file is not None and not is_copy:
            return replace(self._options, resume=session.thread_id)
        # The new session writes its own context before the first prompt.
        history = dropwhile(_is_context, session.items)
        return replace(self._options, resume=None, history=tuple(history))

    def _tell(self, event: Event) -> None:
        log_warnings(event)
        if self._listener is not None:
            self._listener(event)
        else:
            self._early.append(event)


def _result(
    done: TurnResult,
    text: str,
    seen: Sequence[Event],
    tokens_before: Usage,
    output_type: ModelSchema | None,
) -> Result[Any]:
    """Return the result of a turn.

    Args:
        text: the last message of the model, which an interruption may have cut off.
        seen: the events of the turn, without those that only show progress. One is its end.
        tokens_before: the tokens that the session had used before the turn.
    """
    error = done.error
    output: Any = None
    if error is None:
        try:
            output = _typed_output(text, output_type)
        except CodexError as wrong:
            error = wrong
    ends = [each for each in seen if isinstance(each, TurnCompleted | TurnFailed)]
    items = [each.item for each in seen if isinstance(each, ItemCompleted)]
    return Result(
        text=text,
        output=output,
        usage=done.usage - tokens_before,
        diff=ends[-1].diff,
        items=tuple(items),
        denied=done.denied,
        exit_code=done.exit_code if error is None else error.exit_code,
        error=error,
    )


def _typed_output(text: str, output_type: ModelSchema | None) -> Any:
    """Return the answer as the type of `Agent.run`; the text itself if that is None.

    Raises a `CodexError` if the answer does not fit: an extension may have ended the turn with an
    answer that was not checked.
    """
    if output_type is None:
        return text
    try:
        return output_type.parsed(text)
    except WrongAnswer as error:
        raise CodexError(
            str(error), code="schema", exit_code=ExitCode.SCHEMA
        ) from error


def _is_context(item: EncodedItem) -> bool:
    """True if the item is neither a prompt nor a summary."""
    return not is_summary(item) and user_prompt(item) is None
