"""The library's front door: `Agent`."""

import asyncio
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

import httpx

from codex_py.app.agent.agent_session import AgentSession, AgentSetup
from codex_py.app.agent.approval import Approve, Callback
from codex_py.app.agent.arguments import check_arguments, check_images
from codex_py.app.agent.loop_thread import LoopThread
from codex_py.app.agent.result import OutputT, Result
from codex_py.app.agent.stream import EventStream
from codex_py.app.hosted import outcome_of
from codex_py.app.options import SessionOptions
from codex_py.config.check import dotted, problems, suggestion
from codex_py.core.session import Session
from codex_py.errors import ConfigError, TurnAborted, UsageError
from codex_py.images.kinds import file_problem
from codex_py.protocol.approval import SandboxMode
from codex_py.protocol.extension import Feature
from codex_py.protocol.output_model import ModelSchema
from codex_py.tools.python.function import tool

if TYPE_CHECKING:
    # It is in `typing` from Python 3.15 on. Only type checkers need it.
    from typing_extensions import TypeForm

_AnswerT = TypeVar("_AnswerT")


class Agent(Generic[OutputT]):
    """A conversation with a model that works in a folder.

    The model reads files, runs commands and calls your functions.

    The first prompt opens the conversation, and each further one continues it. `run`, `stream` and
    `close` belong to one event loop. `run_sync` and `close_sync` need no loop, and work beside a
    running one, as in a notebook. An agent that nobody closes ends with its loop, with the program,
    or with the last reference to it.

    >>> from codex_py import Agent
    >>> from codex_py.testing import FakeModel
    >>> agent = Agent(FakeModel("Hello.", "Still here."))  # a real one: Agent("gpt-5.5")
    >>> agent.run_sync("Say hello").text
    'Hello.'
    >>> agent.run_sync("Are you there?").text
    'Still here.'
    """

    @overload
    def __init__(
        self: "Agent[str]",
        model: str | httpx.AsyncBaseTransport | None = None,
        *,
        cwd: Path | str = ".",
        instructions: str | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        output_type: None = None,
        approve: Approve | None = None,
        sandbox: SandboxMode | None = None,
        extensions: Sequence[Feature] = (),
        config: Mapping[str, Any] | None = None,
        home: Path | str | None = None,
        environment: Mapping[str, str] | None = None,
        ephemeral: bool = False,
        resume: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: str | httpx.AsyncBaseTransport | None = None,
        *,
        cwd: Path | str = ".",
        instructions: str | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        output_type: "TypeForm[OutputT]",
        approve: Approve | None = None,
        sandbox: SandboxMode | None = None,
        extensions: Sequence[Feature] = (),
        config: Mapping[str, Any] | None = None,
        home: Path | str | None = None,
        environment: Mapping[str, str] | None = None,
        ephemeral: bool = False,
        resume: str | None = None,
    ) -> None: ...
    def __init__(
        self,
        model: str | httpx.AsyncBaseTransport | None = None,
        *,
        cwd: Path | str = ".",
        instructions: str | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        output_type: Any = None,
        approve: Approve | None = None,
        sandbox: SandboxMode | None = None,
        extensions: Sequence[Feature] = (),
        config: Mapping[str, Any] | None = None,
        home: Path | str | None = None,
        environment: Mapping[str, str] | None = None,
        ephemeral: bool = False,
        resume: str | None = None,
    ) -> None:
        """
        Args:
            model: `gpt-5.5`, `anthropic/claude-opus-5-5`; None: the configured one. A `FakeModel`,
                or another transport of httpx, answers in place of a provider. Without a `home`,
                nothing of the user's is then read or kept.
            cwd: the folder to work in.
            instructions: text for the model besides the base prompt.
            tools: Python functions that the model may call, see `tool`.
            output_type: the type of every answer; see `run`.
            approve: a function, plain or async, that decides on calls that need an approval. It
                takes an `ApprovalRequest` and returns True or False, a `ReviewDecision` or a
                `Review`. A plain one is called in a separate thread. None: such calls are refused,
                and the model knows that nobody can be asked.
            sandbox: what commands may touch: `read-only`, `workspace-write`, `danger-full-access`.
                None: as configured, which is `read-only` unless the folder is trusted.
            extensions: see `Extension`; the first is the outermost.
            config: settings in the form of `config.toml`; they override those of the files.
            home: the folder in place of `$CODEX_HOME` or `~/.codex`; created if missing.
            environment: variables for the configuration, the key and commands. None: the
                variables of the program.
            ephemeral: keep no session file. No home is needed then.
            resume: id or name of a conversation to continue.

        Raises:
            ConfigError: the folder `cwd` does not exist, or a setting is unknown or wrong.
            TypeError: an argument is of another type, a function cannot be a tool, `approve` takes
                other arguments, or pydantic does not know the `output_type`.
        """
        if isinstance(extensions, Iterator):
            extensions = tuple(cast("Iterator[Feature]", extensions))
        if isinstance(tools, Iterator):
            tools = tuple(cast("Iterator[Callable[..., Any]]", tools))
        check_arguments(
            {
                "model": model,
                "cwd": cwd,
                "instructions": instructions,
                "tools": tools,
                "extensions": extensions,
                "config": config,
                "home": home,
                "environment": environment,
                "ephemeral": ephemeral,
                "resume": resume,
            }
        )
        answer_type = None if output_type is None else ModelSchema(output_type)
        if not Path(cwd).is_dir():
            raise ConfigError(f"`cwd`: there is no folder {str(cwd)!r}")
        name = model if isinstance(model, str) else None
        transport = None if isinstance(model, str) else model
        arguments = {
            "model": name,
            "developer_instructions": instructions,
            "sandbox_mode": sandbox,
        }
        defaults = {"approval_policy": "never"} if approve is None else {}
        given = {key: value for key, value in arguments.items() if value is not None}
        settings: dict[str, Any] = {**defaults, **(config or {}), **given}
        setup = AgentSetup(
            cwd=Path(cwd).absolute(),
            settings=_checked(settings),
            home=None if home is None else Path(home).absolute(),
            environment=None if environment is None else dict(environment),
            parts={
                "approver": None if approve is None else Callback(approve),
                "extensions": tuple(extensions),
                "tools": [tool(function) for function in tools],
            },
        )
        # With a transport, nothing is kept in the user's own home.
        has_home = transport is None or home is not None
        is_kept = has_home and not ephemeral
        options = SessionOptions(
            ephemeral=not is_kept, resume=resume, transport=transport
        )
        self._model = name
        if transport is not None:
            self._model = type(transport).__name__
        self._cwd = setup.cwd
        self._answer_type = answer_type
        self._begin(AgentSession(setup, options))

    def _begin(self, conversation: AgentSession) -> None:
        """Use a conversation, which closes with the last reference to the agent."""
        self._conversation = conversation
        self._thread: LoopThread | None = None
        weakref.finalize(self, conversation.let_close)

    def __repr__(self) -> str:
        """Name the model as it was given, the folder and the conversation.

        The text contains nothing secret.
        """
        arguments = [f"cwd={str(self._cwd)!r}"]
        if self._model is not None:
            arguments.insert(0, repr(self._model))
        if self.thread_id is not None:
            arguments.append(f"thread_id={self.thread_id!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    @property
    def session(self) -> Session | None:
        """The open session, for tasks that the agent has no method for; None before the first turn.

        Use it in its own loop only.
        """
        return self._conversation.session

    @property
    def thread_id(self) -> str | None:
        """The id of the conversation, for `resume`; None before the first turn."""
        if self.session is None:
            return None
        return self.session.thread_id

    @overload
    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
    ) -> Result[OutputT]: ...
    @overload
    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
        output_type: "TypeForm[_AnswerT]",
    ) -> Result[_AnswerT]: ...
    async def run(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
        output_type: Any = None,
    ) -> Result[Any]:
        """Run one turn to its end.

        Cancelling it interrupts the turn, and the conversation can go on.

        >>> import asyncio
        >>> from pydantic import BaseModel
        >>> from codex_py import Agent
        >>> from codex_py.testing import FakeModel
        >>> class Rating(BaseModel):
        ...     stars: int
        >>> agent = Agent(FakeModel('{"stars": 5}'))
        >>> asyncio.run(agent.run("Rate this repo", output_type=Rating)).output
        Rating(stars=5)

        Args:
            images: files; paths are relative to the folder of the agent.
            output_type: a pydantic model, or any other type that pydantic knows: `list[int]`, a
                dataclass, a TypedDict, a `Literal`, a union. The provider gets its JSON Schema; an
                answer that does not fit is sent back once, and `Result.output` is a value of the
                type.

        Raises:
            CodexError: the turn failed, or the conversation cannot be opened; the classes are in
                `codex_py.errors`. If the turn failed, `error.result` is the `Result` up to that
                point.
            RuntimeError: a turn runs, the agent is closed, or its conversation is in another event
                loop.
        """
        return await self._run(prompt, images, output_type, lambda _: None)

    @overload
    def run_sync(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
    ) -> Result[OutputT]: ...
    @overload
    def run_sync(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
        output_type: "TypeForm[_AnswerT]",
    ) -> Result[_AnswerT]: ...
    def run_sync(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
        output_type: Any = None,
    ) -> Result[Any]:
        """Run one turn for callers that do not await; see `run`.

        The conversation and async tools run in a separate thread.

        Raises:
            KeyboardInterrupt: Ctrl-C interrupted the turn.
        """
        self._conversation.require_open()
        if self._thread is None:
            self._thread = LoopThread()
            weakref.finalize(self, self._thread.close)
        work = self._run(prompt, images, output_type, lambda _: None)
        future = asyncio.run_coroutine_threadsafe(outcome_of(work), self._thread.loop)
        try:
            outcome = future.result()
        except KeyboardInterrupt:
            self.interrupt()
            wait([future])
            raise
        try:
            return outcome.result()
        except asyncio.CancelledError:
            if self._conversation.is_closed:
                # Another thread has closed the agent, and its loop ended the turn.
                raise TurnAborted("the turn was interrupted") from None
            raise

    @overload
    def stream(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
    ) -> EventStream[OutputT]: ...
    @overload
    def stream(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
        output_type: "TypeForm[_AnswerT]",
    ) -> EventStream[_AnswerT]: ...
    def stream(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
        output_type: Any = None,
    ) -> EventStream[Any]:
        """Run one turn and follow it: `async for event in agent.stream("…")`. See `EventStream`.

        Arguments and errors are those of `run`. `event_json(event)` is the JSON form of an event.
        """
        return EventStream(
            lambda tell: self._run(prompt, images, output_type, tell),
            self._conversation.leave,
        )

    def steer(
        self,
        prompt: str,
        *,
        images: Sequence[Path | str] = (),
    ) -> bool:
        """Send the model a prompt while a turn runs, with the next request of the turn.

        False if no turn runs, or the turn has sent its last request or was interrupted; then `run`
        the prompt.

        Raises:
            UsageError: there is no such image, a file is no image, or there is neither text nor an
                image.
        """
        if self.session is None or self._conversation.is_ending:
            return False
        files = self._files(images)
        if not (prompt.strip() or files):
            raise UsageError("the prompt is empty")
        return self.session.steer(prompt, images=files)

    def interrupt(self) -> None:
        """End the running turn, if there is one: its `run` raises `TurnAborted`.

        May be called from any thread.
        """
        self._conversation.interrupt()

    def fork(self) -> Self:
        """Return an agent with a copy of the conversation so far. The copy continues on its own.

        Raises:
            RuntimeError: a turn runs.
        """
        fork = copy(self)
        fork._begin(self._conversation.copied())
        return fork

    async def close(self) -> None:
        """End the running turn, the conversation, its processes and its connections.

        Raises the exception of an extension that fails at the end of the conversation. The agent is
        closed then too.
        """
        try:
            await self._conversation.close()
        finally:
            if self._thread is not None:
                ending = self._conversation.close
                await asyncio.to_thread(self._thread.close_after, ending)

    def close_sync(self) -> None:
        """Close an agent of `run_sync`; see `close`."""
        self._conversation.is_closed = True
        if self._thread is not None:
            self._thread.close_after(self._conversation.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    async def _run(
        self,
        prompt: str,
        images: Sequence[Path | str],
        output_type: Any,
        tell: Callable[[Any], None],
    ) -> Result[Any]:
        """Run one turn; see `run`. `tell` gets its events."""
        answer_type = self._answer_type
        if output_type is not None:
            # This raises a `TypeError` before anything is sent.
            answer_type = ModelSchema(output_type)
        return await self._conversation.run(
            prompt, self._files(images), answer_type, tell
        )

    def _files(self, images: Sequence[Path | str]) -> list[Path]:
        """Return the files of the images, as absolute paths.

        Raises:
            TypeError: the images are no sequence of paths.
            UsageError: a file does not exist, or is no image.
        """
        check_images(images)
        files = [self._cwd / image for image in images]
        for file in files:
            if not file.exists():
                raise UsageError(f"there is no image {str(file)!r}")
            problem = file_problem(file)
            if problem is not None:
                raise UsageError(f"the image {str(file)!r} cannot be sent: {problem}")
        return files


def _checked(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings. Raises a `ConfigError` for the first one that is unknown or wrong."""
    for problem in problems(settings):
        text = f"config: `{dotted(problem.key)}` {problem.text}"
        similar = suggestion(problem.key) if problem.unknown else None
        if similar:
            text += f"; did you mean `{similar}`?"
        raise ConfigError(text, key=problem.key)
    return settings
