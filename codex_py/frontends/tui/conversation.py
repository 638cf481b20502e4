"""The session behind the screen: opens, interrupts and replaces it, and sends prompts to it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.app.features.plan_mode import PlanMode
from codex_py.app.features.reviews import Reviews
from codex_py.app.model import missing_key
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, TurnResult, open_session
from codex_py.app.settings import model_of_provider
from codex_py.config.skills import find_skills
from codex_py.errors import CodexError
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.findings import FindingList, fix_prompt
from codex_py.frontends.tui.markdown import Markdown
from codex_py.frontends.tui.questions import AFRESH, IMPLEMENT, Begin, PlanOffer
from codex_py.frontends.tui.session_monitor import SessionMonitor
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol.approval import Approver
from codex_py.protocol.mcp import Elicitor
from codex_py.protocol.plans import proposed_plan
from codex_py.protocol.settings import Choices, Mode
from codex_py.rollout.git_info import git_info
from codex_py.rollout.index import find_session
from codex_py.streams.terminal import printable

_STREAM_RETRIES: Final = 10
"""The retries take more than two minutes: the user can interrupt them, and networks come back."""
_REHEARSED: Final = (
    "A `word`:\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n"
)
_ENDED: Final = "the program was ended while it worked"
_NONE: Final = "there is no conversation; /new begins one, /resume goes on with one"


class Conversation:
    """Holds one session at a time, and its one turn.

    Attributes:
        config: the configuration of the next session.
    """

    def __init__(
        self,
        ui: TerminalUI,
        transcript: Transcript,
        *,
        approver: Approver,
        elicitor: Elicitor,
    ) -> None:
        self._ui = ui
        self._transcript = transcript
        self._approver = approver
        self._elicitor = elicitor
        self._open_session = AsyncExitStack()
        """Closes the open session, if there is one."""
        self._settled = asyncio.Event()
        """Not set while a session is being opened. Prompts wait for that session meanwhile."""
        self._turn: asyncio.Task[None] | None = None
        self._servers: asyncio.Future[None] | None = None
        """The start of the MCP servers that the turn waits for."""
        self.session: Session | None = None
        self.config = ui.launch.config
        self.mode: Mode = "plan" if ui.launch.plan else "default"
        """The mode of this session, or of the one that is being opened."""
        self.plan_offer = PlanOffer(ui, self._implement)
        self.monitor = SessionMonitor(
            ui, transcript, lambda: self.session, lambda: self.config
        )

    @property
    def is_working(self) -> bool:
        return self._turn is not None

    async def opened(self) -> Session:
        """Return the open session, or wait for the one that is being opened.

        Raises:
            CodexError: there is no session.
        """
        await self._settled.wait()
        if self.session is None:
            raise CodexError(_NONE, code="no_session")
        return self.session

    def new_session(self) -> SessionOptions:
        """Options for a new session, with the user's choices for the one before."""
        return SessionOptions(
            source="cli",
            originator="codex-tui",
            ephemeral=self._ui.launch.is_unattended,
            choices=None if self.session is None else self.session.settings.choices,
            add_dirs=self._ui.launch.add_dirs,
            stream_retries=_STREAM_RETRIES,
            keep_commands=True,
            can_review=True,
            mcp_startup_wait=self._wait_for_servers,
            bypass_hook_trust=self._ui.launch.bypass_hook_trust,
            of_extensions=self._ui.launch.of_extensions,
        )

    def switch_mode(self, mode: Mode) -> None:
        """Switch the mode; during a turn, from its next step on."""
        self.plan_offer.withdraw()
        self.mode = mode
        if self.session is None or self.session.settings.mode == mode:
            self.monitor.refresh()
        else:
            self.change(replace(self.session.settings.choices, mode=mode))

    async def open(self, options: SessionOptions) -> None:
        """Change to another session. If it cannot be opened, show why, and keep this one."""
        await self._settled.wait()
        if not self._ui.leaving.is_under_way:
            self._settled.clear()
            await self.open_and_settle(options)

    async def move(self, provider: str, choices: Choices) -> None:
        """Continue the conversation with a model of another provider. No turn may be running.

        Raises:
            CodexError: there is no conversation, or it cannot move. Nothing has changed.
        """
        session = await self.opened()
        config = replace(self.config, model_provider=provider, model=choices.model)
        problem = missing_key(config, self._ui.environment)
        if problem is not None:
            raise CodexError(problem, code="missing_key")
        options = replace(self.new_session(), choices=choices)
        if session.has_begun:
            options = replace(options, resume=self._saved(session))
        self._settled.clear()
        # The session locks its file, which is opened again below.
        await self._close_session()
        self.config = config
        await self.open_and_settle(options, is_shown=True)

    async def leave(self, work: Callable[[Path, str], None]) -> str:
        """Close the conversation, call `work` with the home and its id, and begin another one.

        Returns the id.

        Raises:
            CodexError: there is no conversation, it is not saved, or `work` has failed. In the last
                case, it is open again.
        """
        thread_id = self._saved(await self.opened())
        options = self.new_session()
        self._settled.clear()
        await self._close_session()
        try:
            await asyncio.to_thread(work, self.config.home, thread_id)
        except CodexError:
            await self.open_and_settle(
                replace(options, resume=thread_id), is_shown=True
            )
            raise
        await self.open_and_settle(options)
        return thread_id

    def _saved(self, session: Session) -> str:
        """Return the id of the session. Raises a `CodexError` if it has no file."""
        thread_id = session.thread_id
        has_file = find_session(self.config.home, thread_id) is not None
        if not session.has_begun or not has_file:
            raise CodexError("this conversation is not saved", code="unsaved")
        return thread_id

    async def open_and_settle(
        self, options: SessionOptions | None, *, is_shown: bool = False
    ) -> None:
        """Open a session as `open` does, and send it the prompts that wait for it.

        The caller has cleared `_settled`, which is set at the end. If no session is opened, the
        prompts go back into the composer.

        Args:
            options: None: open no session.
            is_shown: the conversation is on the screen already.
        """
        waiting = self._ui.outbox.waiting
        is_open = False
        try:
            if options is not None:
                is_open = await self._replace(options)
        finally:
            self._settled.set()
        if not is_open or self.session is None:
            self._ui.composer.restore(waiting)
            return
        if not is_shown:
            self.monitor.begin(self.session)
        self._restore_mode(self.session, is_shown=is_shown)
        self._ui.start(self._load_in_background())
        submissions = list(waiting)
        waiting.clear()
        if self.session.is_unfinished and not submissions:
            self._ui.hints.show("The last turn did not end. /retry goes on with it.")
        for submission in submissions:
            self.send(submission)

    async def _replace(self, options: SessionOptions) -> bool:
        """Open a session, and close the one before. False if it cannot be opened, which is shown."""
        try:
            for each in self._ui.launch.of_extensions:
                options = each.session(options)
            opening = open_session(
                self.config,
                options,
                self.monitor,
                environment=self._ui.environment,
                approver=self._approver,
                elicitor=self._elicitor,
            )
            async with AsyncExitStack() as stack:
                session = await stack.enter_async_context(opening)
                await self._close_session()
                self._open_session = stack.pop_all()
                self.session = session
        except CodexError as error:
            self._transcript.notice(str(error), "error")
            return False
        return True

    def _restore_mode(self, session: Session, *, is_shown: bool) -> None:
        """Keep the mode of the conversation before, unless a resumed one was in Plan mode."""
        plan_mode = session.feature(PlanMode)
        was_planning = plan_mode is not None and plan_mode.told == "plan"
        if was_planning and self.mode == "default" and not is_shown:
            self._transcript.notice(
                "This conversation is in Plan mode. Shift-Tab leaves it."
            )
            self.mode = "plan"
        self.switch_mode(self.mode)

    async def close(self) -> None:
        """Interrupt the turn, and close the session. Nothing waits for a session any longer."""
        self.monitor.close()
        self._settled.set()
        if self.session is not None and self._ui.leaving.was_told:
            self.session.end(CodexError(_ENDED, code="aborted"))
        await self._close_session()

    async def _implement(self, plan: str, where: Begin) -> None:
        left = self.session
        text = IMPLEMENT
        self.switch_mode("default")
        if where == "afresh":
            text = AFRESH.format(plan=plan)
            await self.open(self.new_session())
        if where == "here" or self.session is not left:
            self.send(Submission(text))

    async def show_findings(self, *, is_asked: bool = False) -> None:
        """Let the user step through the findings of the last review, and pick those to fix.

        Args:
            is_asked: no command of the user's opened the panel.

        Raises:
            CodexError: nothing was found.
        """
        session = await self.opened()
        reviews = session.feature(Reviews)
        panels = self._ui.panels
        if reviews is None or reviews.last is None or not reviews.last.findings:
            raise CodexError(
                "no review has found anything; /review begins one", code="review"
            )
        root = self.config.project_root or self.config.cwd
        panel = partial(FindingList, reviews.last, root)
        if is_asked:
            picked = await panels.ask(panel, about="The review found something")
        else:
            picked = await panels.show(panel())
        if picked:
            self.send(Submission(fix_prompt(picked), queued=True))

    async def _close_session(self) -> None:
        self.plan_offer.withdraw()
        await self._interrupt()
        self.session = None
        await self._open_session.aclose()

    def send(self, submission: Submission) -> None:
        """Send a submission: as a turn, into the running turn, or after that turn if it says so."""
        session = self.session
        outbox = self._ui.outbox
        self.plan_offer.withdraw()
        if not self._settled.is_set():
            outbox.waiting.append(submission)
        elif session is None:
            self._ui.composer.restore([submission])
            self._ui.hints.show(f"not sent: {_NONE}")
        elif self._turn is None:
            self.monitor.prompt(submission)
            self.run(lambda: self._run_turn(session, submission))
        elif self._steer(session, submission):
            outbox.steered.append(submission)
        else:
            outbox.queue.append(submission)
        self._ui.screen.changed()

    def _steer(self, session: Session, submission: Submission) -> bool:
        """Send a submission into the running turn. False if it must wait until the turn is over."""
        if submission.queued or submission.model:
            return False
        return session.steer(submission.text, images=submission.images)

    async def _run_turn(self, session: Session, submission: Submission) -> TurnResult:
        usual = session.settings.choices
        if submission.model is not None:
            self._use_model(session, submission.model)
        model = session.settings.model
        try:
            return await session.run_turn(submission.text, images=submission.images)
        finally:
            now = session.settings.choices
            # The user may have chosen yet another model meanwhile.
            is_ours = now.model == model
            if is_ours and model != usual.model:
                effort = usual.reasoning_effort
                self.change(replace(now, model=usual.model, reasoning_effort=effort))

    def _use_model(self, session: Session, model: str) -> None:
        """Change to a model of this provider, or report that the model is not used."""
        try:
            name = model_of_provider(self.config, model)
            # The effort was chosen for another model.
            self.change(
                replace(session.settings.choices, model=name, reasoning_effort=None)
            )
        except CodexError as error:
            self._transcript.notice(
                f"The model {printable(model)} is not used: {error}"
            )

    def run(self, work: Callable[[], Coroutine[Any, Any, TurnResult]]) -> None:
        """Run `Session.compact`, `retry` or the like as a turn that can be interrupted.

        No other turn may be running.
        """
        self.monitor.work_begins()
        self._turn = self._ui.tasks.create_task(self._run(work))

    def change(self, choices: Choices) -> None:
        """Run with other settings from the next step on. There must be a session.

        Raises:
            ConfigError: such settings are not possible.
        """
        assert self.session is not None
        self.session.change(choices)
        self.monitor.refresh()

    def interrupt(self) -> bool:
        """End the running turn, or stop waiting for MCP servers; True if there was one to end."""
        if self._servers is not None and self._servers.cancel():
            return True
        if self._turn is None:
            return False
        self._ui.tasks.create_task(self._interrupt())
        return True

    async def _wait_for_servers(
        self, missing: Callable[[], Sequence[str]], settled: Awaitable[None]
    ) -> None:
        """Wait until all MCP servers have started or failed, or the user gives up.

        Meanwhile the status shows the missing servers.
        """
        servers = asyncio.ensure_future(settled)
        self._servers = servers
        self._ui.status.waiting_for = missing
        self._ui.screen.changed()
        try:
            await asyncio.wait([servers])
        finally:
            servers.cancel()
            self._servers = None
            self._ui.status.waiting_for = None
            self._ui.screen.changed()
        if not servers.cancelled():
            servers.result()

    async def _load_in_background(self) -> None:
        """Load what the screen needs beside the session: history, branch, skills and lexers."""
        # The history comes first: Up may be the first key.
        await self._ui.composer.history.load()
        await self._find_branch()
        skills = await asyncio.to_thread(find_skills, self.config, self._ui.environment)
        by_name = skills.by_name()
        self._ui.skills = [by_name[name][0] for name in sorted(by_name)]
        # Load lexers and tables now: the first answer, and typing meanwhile, would wait for them.
        await asyncio.to_thread(
            self._transcript.renderer.text, Markdown(_REHEARSED), 80
        )

    async def _find_branch(self) -> None:
        info = await asyncio.to_thread(git_info, self.config.cwd)
        self._ui.status.known["git-branch"] = info.get("branch", "")
        self._ui.screen.changed()

    async def _interrupt(self) -> None:
        turn = self._turn
        if turn is not None:
            turn.cancel()
            await asyncio.wait([turn])

    async def _run(self, work: Callable[[], Coroutine[Any, Any, TurnResult]]) -> None:
        is_complete = False
        try:
            result = await work()
            is_complete = result.error is None
        except asyncio.CancelledError:
            # The user has interrupted the turn; the program continues.
            pass
        except Exception as error:  # noqa: BLE001 - a bug costs this turn, and not the terminal
            self.monitor.went_wrong(error)
        finally:
            self._turn = None
            if self.session is not None:
                self.session.take_unsent()
            self._ended(is_complete=is_complete)

    def _ended(self, *, is_complete: bool) -> None:
        outbox = self._ui.outbox
        unsent = [*outbox.steered, *outbox.queue]
        outbox.steered.clear()
        outbox.queue.clear()
        if is_complete and unsent:
            first, *outbox.queue = unsent
            self.send(first)
            return
        self._ui.composer.restore(unsent)
        self.monitor.work_ended()
        if is_complete:
            self._offer_next_step()
        if self._ui.launch.is_unattended:
            self._ui.leaving.leave(0 if is_complete else 1)
        if not self._ui.leaving.is_under_way:
            self._ui.start(self._find_branch())

    def _offer_next_step(self) -> None:
        """Ask the user whether to fix what a review has found, or to carry out a plan."""
        review = None
        if self.session is not None:
            reviews = self.session.feature(Reviews)
            review = None if reviews is None else reviews.review
        if review is not None:
            # Text that looks like a plan here is a reviewer's.
            if review.findings:
                self.plan_offer.ask(self.show_findings(is_asked=True))
            return
        if self.mode == "plan":
            plan = proposed_plan(self.monitor.last_answer)
            if plan is not None:
                self.plan_offer.make(plan)
