"""The conversation of an `Agent`: a session that the first turn opens."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, TypeAlias, cast

from codex_py.app.agent.result import Result
from codex_py.app.hosted import HostedSession
from codex_py.app.options import SessionOptions
from codex_py.app.session import log_warnings, open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.errors import CodexError, ConfigError, ExitCode, TurnAborted
from codex_py.protocol.events import Event, ItemCompleted, TurnCompleted, TurnFailed
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.output_model import ModelSchema
from codex_py.protocol.prompts import is_summary, user_prompt

Tell: TypeAlias = Callable[[Event], None]


@frozen(kw_only=True)
class AgentSetup:
    """The way in which an agent opens its conversation."""

    cwd: Path
    """An absolute path, as `home` is."""
    settings: Mapping[str, Any]
    """Settings in the form of `config.toml`."""
    home: Path | None
    environment: Mapping[str, str] | None
    parts: Mapping[str, Any]
    """Further arguments of `open_session`."""

    @asynccontextmanager
    async def opened(
        self, sink: Tell, options: SessionOptions
    ) -> AsyncGenerator[Session]:
        """Open a session. Raises the errors of `load_config` and `open_session`."""
        environment = dict(os.environ if self.environment is None else self.environment)
        with ExitStack() as stack:
            home = self.home
            if home is None and options.transport is not None:
                # Nothing of the user's may change the result of a test.
                home = Path(mkdtemp(prefix="codex-py-"))
                stack.callback(rmtree, home, ignore_errors=True)
            if home is not None:
                try:
                    home.mkdir(mode=0o700, parents=True, exist_ok=True)
                except OSError as error:
                    raise ConfigError(f"`home`: {home}: {error.strerror}") from error
                environment["CODEX_HOME"] = str(home)
            config = load_config(
                cwd=self.cwd, environment=environment, flags=self.settings
            )
            opening = open_session(
                config, options, sink, environment=environment, **self.parts
            )
            async with opening as session:
                yield session


class AgentSession:
    """Holds the session, which does not refer to the agent.

    So it can end when nobody refers to the agent any more.
    """

    def __init__(self, setup: AgentSetup, options: SessionOptions) -> None:
        self.session: Session | None = None
        self.is_closed = False
        self._setup = setup
        self._options = options
        self._task: asyncio.Task[Any] | None = None
        """The task that runs a turn."""
        self.is_ending = False
        self._is_cancelled = False
        self._hosted = HostedSession()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Tell | None = None
        self._early: deque[Event] = deque(maxlen=1000)
        """Events between turns; they are reported by the next turn."""

    async def run(
        self, prompt: str, images: Sequence[Path], output_type: Any, tell: Tell
    ) -> Result[Any]:
        """See `Agent.run`."""
        if self._task is not None and self.is_ending:
            await asyncio.wait([self._task])
        if self._task is not None:
            raise RuntimeError(
                "a turn of this agent runs; wait for its end, or `steer` it"
            )
        self._task = asyncio.current_task()
        self.is_ending = False
        self._is_cancelled = False
        seen: list[Event] = []

        def listen(event: Event) -> None:
            if event.type is not None:
                seen.append(event)
            tell(event)

        try:
            session = await self._opened()
            self._listener = listen
            while self._early:
                listen(self._early.popleft())
            before = session.token_usage.total
            turn = session.run_turn(prompt, images=images, output_schema=output_type)
            done = await self._hosted.run(turn)
        except asyncio.CancelledError:
            task = cast("asyncio.Task[Any]", self._task)
            if (task.uncancel() if self._is_cancelled else task.cancelling()) == 0:
                # The caller was not cancelled: the turn was interrupted, or the agent closed.
                raise TurnAborted("the turn was interrupted before it began") from None
            raise
        finally:
            self._task = None
            self._listener = None
        text = done.last_message or ""
        error = done.error
        output: Any = text if error is None else None
        if output_type is not None and error is None:
            # An extension may have ended the turn with an answer that was not checked.
            wrong = ModelSchema(output_type).violation(text)
            if wrong is not None:
                error = CodexError(wrong, code="schema", exit_code=ExitCode.SCHEMA)
            if error is not None:
                output = None
            else:
                output = output_type.model_validate_json(text)
        ends = [each for each in seen if isinstance(each, TurnCompleted | TurnFailed)]
        result: Result[Any] = Result(
            text=text,
            output=output,
            usage=done.usage - before,
            diff=ends[-1].diff,
            items=tuple(each.item for each in seen if isinstance(each, ItemCompleted)),
            denied=done.denied,
            exit_code=done.exit_code if error is None else error.exit_code,
            error=error,
        )
        if error is not None:
            error.result = result
            raise error
        return result

    def interrupt(self) -> None:
        """See `Agent.interrupt`."""
        task = self._task
        if task is not None:
            self.is_ending = True
            task.get_loop().call_soon_threadsafe(self._end, task)

    def leave(self, task: asyncio.Task[Any]) -> None:
        """Interrupt the turn that this task runs, or is about to run."""
        if task is self._task:
            self.interrupt()
        else:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def copied(self) -> "AgentSession":
        """Return a conversation that continues from here."""
        if self._task is not None:
            raise RuntimeError(
                "a turn of this agent runs; fork it before or after the turn"
            )
        return AgentSession(self._setup, self._continued(is_copy=True))

    async def close(self) -> None:
        self.is_closed = True
        if self._loop is asyncio.get_running_loop():
            await self._hosted.close()

    def let_close(self) -> None:
        """Have the session closed by its loop. May be called from any thread."""
        if self._loop is not None:
            # If the loop is closed, the session has ended already.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hosted.let_close)

    def _end(self, task: asyncio.Task[Any]) -> None:
        if task is self._task and self.session is not None and self.session.is_running:
            self.session.abort()
        else:
            self._is_cancelled = True
            task.cancel()

    def require_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("the agent is closed")

    async def _opened(self) -> Session:
        self.require_open()
        loop = asyncio.get_running_loop()
        if self._hosted.is_open and self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                text = "the conversation of this agent is in another event loop, which runs"
                raise RuntimeError(f"{text}: go on there, or with a `fork()`")
            # With one `asyncio.run` for each prompt, the session ended with the loop.
            self._options = self._continued()
            self._hosted = HostedSession()
        if not self._hosted.is_open:
            self._loop = loop
            opening = self._setup.opened(self._tell, self._options)
            self.session = await self._hosted.host(opening)
        return self._hosted.session

    def _continued(self, *, is_copy: bool = False) -> SessionOptions:
        """Return the options of a session that continues from here."""
        session = self.session
        if session is None:
            return self._options
        if session.session_file is not None and not is_copy:
            return replace(self._options, resume=session.thread_id)
        # The context before the first prompt is made anew.
        history = dropwhile(lambda item: not _is_said(item), session.items)
        return replace(self._options, resume=None, history=tuple(history))

    def _tell(self, event: Event) -> None:
        log_warnings(event)
        (self._listener or self._early.append)(event)


def _is_said(item: EncodedItem) -> bool:
    return is_summary(item) or user_prompt(item) is not None
