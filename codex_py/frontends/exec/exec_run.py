"""One prompt of `codex-py exec`, from the configuration to the exit code.

Standard output carries the answer, or with `--json` each event as a line, as soon as it happens.
Everything else goes to standard error. With `--output-schema`, an answer that breaks the schema is
sent back once, after a warning, in a second turn. If the second answer breaks it too, an `error`
event with the code `schema` follows the last `turn.completed`.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, TurnResult, open_session
from codex_py.app.settings import configured_choices
from codex_py.command_line.arguments import Arguments, checked_result
from codex_py.command_line.exec_program import ExecProgram
from codex_py.command_line.target import SessionTarget
from codex_py.command_line.worktrees import enter_worktree
from codex_py.errors import CodexError, ExitCode
from codex_py.frontends.exec.json_lines import JsonLines
from codex_py.protocol import event_items, events
from codex_py.protocol.plans import proposed_plan
from codex_py.streams.standard import OutputStream
from codex_py.streams.terminal import Style, wants_color

if TYPE_CHECKING:
    from codex_py.frontends.exec.human import HumanText

_OF_CI = (
    "GITHUB_STEP_SUMMARY",
    "GITLAB_CI",
    "BITBUCKET_BUILD_NUMBER",
    "BUILDKITE",
    "CIRCLECI",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "TF_BUILD",
)
"""Variables of CI services, for each of which an extension may report the run."""
_COLLECT_AFTER_S = 0.3
"""After this time, everything is imported, and a short run is over."""


def run_prompt(
    arguments: Arguments,
    target: SessionTarget,
    environment: Mapping[str, str],
    prompt: "Future[str] | None",
    stderr: OutputStream,
) -> int:
    """Send the prompt in a session. Returns the exit code."""
    program = ExecProgram(arguments, target, environment, stderr)
    return ExecRun(program, prompt, PromptWork(program)).run()


class SessionWork(Protocol):
    """The work of a run in its session."""

    def options(self, options: SessionOptions) -> SessionOptions:
        """Return the options of the session that does this work."""
        ...

    async def run_turn(self, session: Session, text: str | None) -> TurnResult:
        """Run a turn with the prompt. None: continue with the waiting call."""
        ...

    def answer(self, result: TurnResult) -> str | None:
        """The text to deliver at the end of the run; None if there is nothing to deliver."""
        ...


class PromptWork:
    """Sends one prompt, and delivers the answer of the model."""

    def __init__(self, program: ExecProgram) -> None:
        self._arguments = program.arguments
        self._schema = program.schema

    def options(self, options: SessionOptions) -> SessionOptions:
        return options

    async def run_turn(self, session: Session, text: str | None) -> TurnResult:
        schema = self._schema
        if text is None:
            return await session.retry(output_schema=schema)
        images = self._arguments.images
        return await session.run_turn(text, images=images, output_schema=schema)

    def answer(self, result: TurnResult) -> str | None:
        message = result.last_message
        if self._arguments.plan and message is not None:
            return proposed_plan(message) or message
        return message


class ExecRun:
    """Opens a session, and does the work in it. `prompt` comes from `start_reading`.

    Without a prompt, the session is opened and nothing is sent.
    """

    def __init__(
        self,
        program: ExecProgram,
        prompt: "Future[str] | None",
        work: SessionWork,
    ) -> None:
        arguments = program.arguments
        self._program = program
        self._prompt = prompt
        self._work = work
        self._config = program.config
        for each in arguments.of_extensions:
            each.begin(self._config)
        self._human: HumanText | None = None
        if arguments.json:
            agents = arguments.agent_events
            usage = arguments.usage_events
            self._sink = JsonLines(program.stdout, agents=agents, usage=usage)
        else:
            self._sink = self._human = _human_text(program)
        self._reports = _reports(program)
        self._begins_with_call = any(
            each.begins_with_call for each in arguments.of_extensions
        )
        self._worktree: str | None = None
        """The path of the session's worktree; None if it has none."""
        self._is_over = False
        """True: the last turn has ended."""

    def run(self) -> int:
        """Run to the end. Returns the exit code."""
        return self._program.run(self._session_run)

    async def _session_run(self) -> int:
        """Open the session, run its turn, and deliver the answer. Returns the exit code."""
        prompt = None
        if self._prompt is not None:
            prompt = asyncio.wrap_future(self._prompt)
            if self._program.target.prompt in {None, "-"}:
                # An empty prompt is a mistake, which should leave no session behind.
                await prompt
        async with AsyncExitStack() as stack:
            try:
                session = await self._open(stack)
                text = None if prompt is None else await prompt
            except CodexError:
                # Warnings may give the cause; otherwise they wait for a header that never comes.
                for warning in self._config.warnings:
                    self._program.warn(warning)
                raise
            if self._human is not None:
                self._human.begin(session.thread_id, session.settings, text)
            if text is None and not self._begins_with_call:
                return ExitCode.DONE
            asyncio.get_running_loop().call_later(_COLLECT_AFTER_S, _collect_garbage)
            try:
                result = await self._work.run_turn(session, text)
            finally:
                self._is_over = True
        error = result.error
        # The answer comes first: a file that cannot be written must not cost it.
        if error is None or error.code == "schema":
            self._program.deliver(self._work.answer(result))
        for each in self._program.arguments.of_extensions:
            each.finish(result)
        return result.exit_code

    async def _open(self, stack: AsyncExitStack) -> Session:
        """Open the session, in its worktree if it has one."""
        await self._enter_worktree(stack)
        approver = None
        for each in self._program.arguments.of_extensions:
            approver = approver or each.approver()
        answers = self._program.answers
        opening = open_session(
            self._config,
            self._work.options(self._options()),
            self._pass_on,
            environment=self._program.environment,
            approver=approver,
            elicitor=answers,
        )
        session = await stack.enter_async_context(opening)
        if answers is not None:
            answers.warn = session.warn
        return session

    async def _enter_worktree(self, stack: AsyncExitStack) -> None:
        """Move to the worktree of the session, if it has one."""
        entering = enter_worktree(
            stack,
            self._program.arguments,
            self._config,
            self._program.environment,
            self._program.warn,
        )
        tree = await entering
        if tree is not None:
            self._config = tree.config(self._config, self._program.environment)
            self._worktree = str(tree.path)

    def _pass_on(self, event: events.Event) -> None:
        """The sink of the session's events."""
        match event:
            case events.ItemCompleted(event_items.ErrorItem(message=message)) if (
                self._is_over
            ):
                # A late message, such as one of a `SessionEnd` hook, cannot be an event: the end of
                # the turn is the last one.
                self._program.warn(message)
            case events.TurnFailed() if self._is_aborted_by_sdk():
                # Print nothing, as Codex does. The SDKs throw an `AbortError` at the end of the
                # stream, but another error if they read this event first.
                pass
            case events.ThreadStarted() if self._worktree is not None:
                self._sink(replace(event, worktree=self._worktree))
            case _:
                self._sink(event)
        for report in self._reports:
            report(event)

    def _is_aborted_by_sdk(self) -> bool:
        """True if a SDK of Codex aborts the turn: it sends SIGTERM."""
        is_terminated = self._program.interruption.signal == signal.SIGTERM
        return self._program.arguments.experimental_json and is_terminated

    def _options(self) -> SessionOptions:
        program = self._program
        arguments = program.arguments
        target = program.target
        originator = program.environment.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE")
        choices = None
        if arguments.plan:
            configured = configured_choices(self._config, program.add_dirs)
            choices = replace(configured, mode="plan")
        options = SessionOptions(
            originator=originator or "codex_exec",
            ephemeral=arguments.ephemeral,
            resume=target.resume,
            resume_last=target.resume_last,
            resume_all=target.resume_all,
            fork=target.fork,
            needs_own_worktree=program.needs_own_worktree,
            choices=choices,
            add_dirs=program.add_dirs,
            ignore_rules=arguments.ignore_rules,
            bypass_hook_trust=arguments.bypass_hook_trust,
            begins_with_call=self._begins_with_call,
            text_deltas=False,
            of_extensions=arguments.of_extensions,
        )
        for each in arguments.of_extensions:
            options = checked_result(
                each,
                "session",
                each.session(options),
                SessionOptions,
                "`SessionOptions`",
            )
        return options


def _human_text(program: ExecProgram) -> "HumanText":
    """The sink that shows events on standard error."""
    from codex_py.frontends.exec.human import HumanText  # 2 ms

    is_terminal = os.isatty(2)
    color = wants_color(
        program.arguments.color, program.environment, isatty=is_terminal
    )
    shows_reasoning = not program.config.settings.hide_agent_reasoning
    return HumanText(program.stderr, Style(color=color), show_reasoning=shows_reasoning)


def _reports(program: ExecProgram) -> Sequence[events.EventSink]:
    """Make the sinks that report the run to the CI service in which it is."""
    values = {name: program.environment.get(name) for name in _OF_CI}
    given = {name: value for name, value in values.items() if value}
    if not given:
        return ()
    from codex_py.app.installed import reports_to_ci  # 4 ms

    return reports_to_ci(given, program.warn)


def _collect_garbage() -> None:
    # Loaded modules stay: the collector need not look at them again.
    gc.freeze()
    gc.enable()
