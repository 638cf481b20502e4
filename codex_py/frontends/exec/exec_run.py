"""One run of `codex-py exec`, from the configuration to the exit code.

Standard output carries the answer, or with `--json` each event as a line, as soon as it happens.
Everything else goes to standard error. With `--output-schema`, an answer that breaks the schema is
sent back once, after a warning, in a second turn. If the second answer breaks it too, an `error`
event with the code `schema` follows the last `turn.completed`.
"""

import asyncio
import gc
import os
import signal
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from codex_py.app.features.output_schema import load_schema
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, TurnResult, open_session
from codex_py.app.settings import configured_choices
from codex_py.command_line.approvals import configured_suspension, without_key
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import load_exec_config
from codex_py.command_line.interruption import Interruption
from codex_py.command_line.target import SessionTarget
from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.reading import real_path
from codex_py.frontends.exec.answers import Answers
from codex_py.frontends.exec.human import HumanText
from codex_py.frontends.exec.step_summary import StepSummary
from codex_py.frontends.worktrees import (
    enter_worktree,
    in_folder_of_session,
    names_folder,
)
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import AbsentApprover
from codex_py.protocol.event_data import event_data, plain_data
from codex_py.protocol.mcp import Elicitor
from codex_py.protocol.messages import encode_json, encode_json_with_bytes
from codex_py.protocol.plans import proposed_plan
from codex_py.streams.standard import READER_LEFT, OutputStream
from codex_py.streams.terminal import Style, printable, wants_color

_COLLECT_AFTER_S = 0.3
"""After this time, everything is imported, and a short run is over."""
_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
"""Characters at which some readers end a line, such as Python's `str.splitlines`; JSON does not."""


class ExecRun:
    """Runs a prompt, see `run_exec`. `prompt` comes from `start_reading`.

    Without a prompt, the session is opened and nothing is sent.
    """

    def __init__(
        self,
        arguments: Arguments,
        target: SessionTarget,
        environment: Mapping[str, str],
        prompt: "Future[str] | None",
        stderr: OutputStream,
    ) -> None:
        if arguments.full_auto:
            stderr.write_text(
                "warning: --full-auto is deprecated; use --sandbox workspace-write\n"
            )
        self._suspension = configured_suspension(arguments, target, environment)
        environment = without_key(environment)
        self._needs_own_worktree = not names_folder(arguments)
        arguments = in_folder_of_session(arguments, target, environment)
        self.config = load_exec_config(arguments, environment)
        self._add_dirs = tuple(self.config.cwd / name for name in arguments.add_dir)
        schema = arguments.output_schema
        message = arguments.output_last_message
        if schema is not None:
            self.schema = load_schema(Path(schema))
        else:
            self.schema = None
        root = self.config.project_root or self.config.cwd
        self.message_file = None
        if message is not None:
            self.message_file = OutputFile(Path(message), root, "the last message")
        self._bundle_file = None
        self._bundle: Callable[[int], str] | None = None
        if arguments.bundle is not None:
            # The bundle of an earlier run must not be taken for this run's.
            self._bundle_file = OutputFile(
                Path(arguments.bundle), root, "the bundle", empty=True
            )
        self.arguments = arguments
        self.target = target
        self.environment = environment
        self.prompt = prompt
        self.stdout = OutputStream(1)
        self.stderr = stderr
        self.interruption = Interruption()
        self.elicitor: Elicitor | None = None
        if arguments.answers is not None:
            self.elicitor = Answers(Path(arguments.answers), self._warn_in_session)
        style = Style(
            color=wants_color(arguments.color, environment, isatty=os.isatty(2))
        )
        shows = not self.config.settings.hide_agent_reasoning
        if arguments.json:
            self.human = None
        else:
            self.human = HumanText(stderr, style, show_reasoning=shows)
        self.sink = self.human or JsonLines(
            self.stdout, agents=arguments.agent_events, usage=arguments.usage_events
        )
        summary = environment.get("GITHUB_STEP_SUMMARY")
        if summary:
            self._summary = StepSummary(Path(summary), self._warn)
        else:
            self._summary = None
        self._worktree: str | None = None
        self._is_over = False
        """True: the last turn has ended."""

    async def _work(self) -> int:
        if self.prompt is None:
            prompt = None
        else:
            prompt = asyncio.wrap_future(self.prompt)
        if prompt is not None and self.target.prompt in {None, "-"}:
            # An empty prompt is a mistake, which should leave no session behind.
            await prompt
        async with AsyncExitStack() as stack:
            try:
                await self._enter_worktree(stack)
                opening = open_session(
                    self.config,
                    self.session_options(),
                    self._pass_on,
                    environment=self.environment,
                    approver=AbsentApprover() if self._suspension else None,
                    elicitor=self.elicitor,
                )
                session = await stack.enter_async_context(opening)
                self._session = session
                text = None if prompt is None else await prompt
            except CodexError:
                # Warnings may give the cause; otherwise they wait for a header that never comes.
                for warning in self.config.warnings:
                    self._warn(warning)
                raise
            if self.human is not None:
                self.human.begin(session.thread_id, session.settings, text)
            if text is None and not (self._suspension and self._suspension.answer):
                return ExitCode.DONE
            asyncio.get_running_loop().call_later(_COLLECT_AFTER_S, _collect_garbage)
            try:
                result = await self.run_turn(session, text)
            finally:
                self._is_over = True
        error = result.error
        if self._bundle_file and self._bundle and error is None:
            self._bundle_file.write(self._bundle(result.exit_code))
        if error is None or error.code == "schema":
            self.deliver(self.answer(result))
        return result.exit_code

    async def run_turn(self, session: Session, text: str | None) -> TurnResult:
        """Run a turn with the prompt. None: continue with the waiting call."""
        images = self.arguments.images
        schema = self.schema
        if text is None:
            return await session.retry(output_schema=schema)
        return await session.run_turn(text, images=images, output_schema=schema)

    def answer(self, result: TurnResult) -> str | None:
        """The text to deliver at the end of the run; None if there is nothing to deliver."""
        message = result.last_message
        if self.arguments.plan and message is not None:
            return proposed_plan(message) or message
        return message

    async def _enter_worktree(self, stack: AsyncExitStack) -> None:
        """Move to the worktree of the session, if it has one."""
        entering = enter_worktree(
            stack, self.arguments, self.config, self.environment, self._warn
        )
        tree = await entering
        if tree is not None:
            self.config = tree.config(self.config, self.environment)
            self._worktree = str(tree.path)

    def _pass_on(self, event: events.Event) -> None:
        is_aborted = self.interruption.signal == signal.SIGTERM
        match event:
            case events.ItemCompleted(event_items.ErrorItem(message=message)) if (
                self._is_over
            ):
                # A late message, such as one of a `SessionEnd` hook, cannot be an event: the end of
                # the turn is the last one.
                self._warn(message)
            case events.TurnFailed() if self.arguments.experimental_json and is_aborted:
                # Print nothing, as Codex does. The SDKs of Codex send SIGTERM to abort a turn. They
                # throw an `AbortError` at the end of the stream, but another error if they read
                # this event first.
                pass
            case events.ThreadStarted() if self._worktree is not None:
                self.sink(replace(event, worktree=self._worktree))
            case _:
                self.sink(event)
        if self._summary is not None:
            self._summary(event)

    def _warn(self, text: str) -> None:
        self.stderr.write_text(f"warning: {printable(text)}\n")

    def _warn_in_session(self, text: str) -> None:
        self._session.warn(text)

    def _keep_bundle(self, bundle: Callable[[int], str]) -> None:
        self._bundle = bundle

    def deliver(self, message: str | None) -> None:
        """Deliver the text to the caller of the program."""
        file = self.message_file
        if file is not None:
            file.write(message or "")
            if message is None:
                self.stderr.write_text(
                    "Warning: no last agent message; wrote empty content to"
                    f" {printable(str(file.path))}\n"
                )
        on_screen = os.isatty(1) and os.isatty(2)
        if message is not None and not self.arguments.json and not on_screen:
            # A program gets the exact text. A terminal does not, even if nothing else goes there.
            if os.isatty(1):
                shown = printable(message)
            else:
                shown = message
            self.stdout.write_text(f"{shown}\n")

    def session_options(self) -> SessionOptions:
        arguments = self.arguments
        choices = configured_choices(self.config, self._add_dirs)
        return SessionOptions(
            originator=self.environment.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE")
            or "codex_exec",
            ephemeral=arguments.ephemeral,
            resume=self.target.resume,
            resume_last=self.target.resume_last,
            resume_all=self.target.resume_all,
            fork=self.target.fork,
            needs_own_worktree=self._needs_own_worktree,
            choices=replace(choices, mode="plan") if arguments.plan else None,
            add_dirs=self._add_dirs,
            record=Path(arguments.record).absolute() if arguments.record else None,
            replay=Path(arguments.replay).absolute() if arguments.replay else None,
            bundle=self._keep_bundle if self._bundle_file else None,
            ignore_rules=arguments.ignore_rules,
            bypass_hook_trust=arguments.bypass_hook_trust,
            suspension=self._suspension,
            text_deltas=False,
        )

    def run(self) -> int:
        return asyncio.run(self._supervised())

    async def _supervised(self) -> int:
        self.stdout.on_failure = self.interruption.cancel
        try:
            code = await self.interruption.run(self._work())
        except asyncio.CancelledError:
            if self.stdout.failure is None:
                raise
            code = READER_LEFT
        failure = self.stdout.failure
        if failure is None or self.interruption.signal is not None:
            return code
        if self.stdout.reader_left:
            return READER_LEFT
        raise CodexError(
            f"Failed to write to standard output: {failure.strerror}", code="stdout"
        )


def _collect_garbage() -> None:
    # Loaded modules stay: the collector need not look at them again.
    gc.freeze()
    gc.enable()


class JsonLines:
    """An `EventSink` that writes each line in one piece.

    After the stream has failed, events are dropped.
    """

    def __init__(
        self, stream: OutputStream, *, agents: bool = False, usage: bool = False
    ) -> None:
        """
        Args:
            agents: write the events of subagents too, with the thread id of the subagent.
            usage: write the tokens so far after each response.
        """
        self._stream = stream
        self._agents = agents
        self._usage = usage

    def __call__(self, event: events.Event) -> None:
        of_agent: dict[str, str] = {}
        if isinstance(event, events.AgentEvent) and self._agents:
            of_agent = {"thread_id": event.thread_id}
            event = event.event
        data = event_data(event)
        if isinstance(event, events.UsageReported) and self._usage:
            data = {"type": "usage", "usage": plain_data(event.total)}
        if data is not None:
            # Only diffs contain the contents of files.
            if "diff" in data:
                encode = encode_json_with_bytes
            else:
                encode = encode_json
            line = encode({**data, **of_agent})
            for raw, escaped in _LINE_BREAKS:
                line = line.replace(raw, escaped)
            self._stream.write(line + b"\n")


class OutputFile:
    """A file for a result, opened before the first request, so that a bad path costs nothing.

    Unless it is emptied, it keeps its old contents until `write`, also if the turn fails.

    Args:
        root: absolute. A path in this folder must not lead out of it.
        what: names the result in errors.

    Raises:
        CodexError: the file cannot be opened for writing, or its path leads out of `root`.
    """

    def __init__(
        self, path: Path, root: Path, what: str, *, empty: bool = False
    ) -> None:
        self.path = path
        self._what = what
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            real_path(path.absolute(), root)
            self._fd = os.open(path, flags, 0o666)
            if empty:
                self._empty()
        except OSError as error:
            raise self._failure(error, ExitCode.USAGE) from error

    def write(self, text: str) -> None:
        """Replace the contents by the text, without a further newline. Call it once.

        Raises:
            CodexError: the file cannot be written.
        """
        try:
            self._empty()
            with os.fdopen(self._fd, "wb") as file:
                file.write(text.encode(errors="replace"))
        except OSError as error:
            raise self._failure(error, ExitCode.TURN_FAILED) from error

    def _empty(self) -> None:
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.ftruncate(self._fd, 0)

    def _failure(self, error: OSError, exit_code: ExitCode) -> CodexError:
        return CodexError(
            f"Failed to write {self._what} to {str(self.path)!r}: {error.strerror}",
            code="output_file",
            exit_code=exit_code,
        )
