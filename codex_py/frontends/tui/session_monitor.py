"""Follows the conversation: its items, its values in the status, and the clock of running work."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from codex_py.app.features.agents.feature import SubAgents
from codex_py.app.prices import price_of
from codex_py.app.session import Session
from codex_py.app.thread import thread_items
from codex_py.app.views.plan_limits import limit_items
from codex_py.config.config import Config
from codex_py.errors import CodexError, ConfigError, SessionError
from codex_py.frontends.tui.agents import AgentNews, working_rows
from codex_py.frontends.tui.cells.item import user_cell
from codex_py.frontends.tui.cells.layout import one_line
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.bugs import bug_line
from codex_py.protocol.stream import Usage
from codex_py.streams.terminal import shown_folder

_NO_FAILURES: Final = {"aborted", "nothing_to_compact"}
"""Codes of failed turns that need no second try."""
_ALL: Final = "danger-full-access"
_PERMISSIONS: Final = {
    "read-only": "reads files",
    "workspace-write": "changes files in this folder",
    _ALL: "may do all on this machine",
}


class SessionMonitor:
    """An `EventSink` that passes events to the transcript; `session` returns the open session."""

    def __init__(
        self,
        ui: TerminalUI,
        transcript: Transcript,
        session: Callable[[], Session | None],
        config: Callable[[], Config],
    ) -> None:
        self._ui = ui
        self._status = ui.status
        self._transcript = transcript
        self._session = session
        self._config = config
        self._used_before = Usage()
        """The usage before this turn."""
        self.said: list[event_items.ThreadItem] = []
        """The items as they were shown, except those that the user has gone back from."""
        self.agents: defaultdict[str, AgentNews] = defaultdict(AgentNews)
        """The news of subagents, by thread id."""
        self._has_failed = False
        """True if the last turn failed, and may be tried again."""
        self.last_answer = ""
        """The answer of the last turn; empty if it has none."""
        self.readers: list[Transcript] = []
        """Further transcripts that show the same."""
        self._clock: asyncio.TimerHandle | None = None

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.AgentEvent):
            self._of_agent(event.thread_id, event.event)
        elif isinstance(event, events.HookProgress):
            self._hook(event)
        else:
            self._of_session(event)

    def _of_agent(self, thread_id: str, event: events.Event) -> None:
        """Handle an event of a subagent."""
        self.agents[thread_id](event)
        working = [news for news in self.agents.values() if news.is_working]
        self._status.agents = len(working)
        if isinstance(event, events.TurnFailed) and event.error.code != "aborted":
            self._agent_failed(thread_id, event.error)
        self._ui.screen.changed()

    def _of_session(self, event: events.Event) -> None:
        """Handle an event of the session's own turn."""
        status = self._status
        status.heard_at = time.monotonic()
        if not isinstance(event, events.CommandOutputDelta):
            # Commands in the background continue while the provider cannot be reached.
            status.reconnecting = None
        match event:
            case events.Reconnecting(cause=cause, attempt=attempt, wait_s=wait_s):
                status.reconnecting = cause, attempt, time.monotonic() + wait_s
            case events.ThreadStarted():
                self._separate()
            case events.TurnStarted():
                self._has_failed = False
            case events.TurnFailed(error):
                self._has_failed = error.code not in _NO_FAILURES
                self._keep_end(error)
                error = replace(error, message=self._advised(error))
                event = replace(event, error=error)
            case events.SteeringRefused():
                self._ui.composer.restore([self._ui.outbox.steered.pop(0)])
            case events.UsageReported():
                status.known |= _usage_items(event)
                status.known |= limit_items(event.plan)
                self._count_turn(event.total)
            case events.ItemStarted(event_items.CommandExecution() as item):
                status.commands[item.id] = item.command, time.monotonic()
            case events.ItemCompleted(item):
                self._completed(item)
            case _:
                pass
        for show in self._transcripts:
            show(event)
        status.thought = self._transcript.heading
        status.is_calling = self._transcript.running.is_calling

    def _separate(self) -> None:
        """Draw a line after the conversation that was open, if one was."""
        left = self._session()
        if left is None:
            return
        text = "Another conversation from here on."
        if left.is_kept:
            # On its own line, the command is not broken in a narrow terminal.
            text += f" To go back:\n/resume {left.thread_id}"
        self._transcript.separate(text)

    def _completed(self, item: event_items.ThreadItem) -> None:
        """Keep a finished item, and take what it ends off the status."""
        if isinstance(item, event_items.UserMessage):
            # The model gets steered prompts in order, so this was the first of them.
            del self._ui.outbox.steered[:1]
        elif isinstance(item, event_items.AgentMessage):
            self.last_answer = item.text
        self._status.commands.pop(item.id, None)
        self.said.append(item)

    def _keep_end(self, error: events.ErrorInfo) -> None:
        """Keep the end of a failed turn: its unfinished answer, and the error."""
        text = self._transcript.unfinished
        if text.strip():
            self.said.append(event_items.AgentMessage(id="", text=text))
        message = error.message
        if error.code == "aborted":
            message = event_items.INTERRUPTED
        self.said.append(
            event_items.ErrorItem(
                id="",
                message=message,
                code=error.code,
            )
        )

    @property
    def _transcripts(self) -> Sequence[Transcript]:
        return (self._transcript, *self.readers)

    def _count_turn(self, total: Usage) -> None:
        """Show what the turn has used. A report that no turn makes has nothing to be shown."""
        if self._status.working_since is not None:
            used = total - self._used_before
            self._status.known["turn-usage"] = self._cost(used)

    def _cost(self, usage: Usage) -> str:
        """The tokens, and their cost if the price is known."""
        config = self._config()
        session = self._session()
        model = "" if session is None else session.settings.model
        tokens = f"{_short(usage.total_tokens)} tokens"
        if session is not None and session.token_usage.plan is not None:
            return f"{tokens}, plan"
        price = None
        with suppress(ConfigError):
            price = price_of(config, model, config.model_provider)
        if price is None:
            return tokens
        return f"{tokens}, ${price.of(usage):.3f}"

    def _agent_failed(self, thread_id: str, error: events.ErrorInfo) -> None:
        name = self._agent_names().get(thread_id)
        # The opener of an agent without a name, such as a review, reports its failure.
        if name is not None:
            self._transcript.notice(f"{name} failed: {error.message}", "error")

    def agent_rows(self, columns: int) -> list[Fragments]:
        """The rows of the subagents at work, below the live cells."""
        if not self.agents:
            return []
        names: Mapping[str, str] = {}
        if self._status.agents:
            names = self._agent_names()
        return working_rows(self.agents, names, columns, self._status.asking)

    def _agent_names(self) -> Mapping[str, str]:
        """The names of the subagents, by thread id."""
        session = self._session()
        if session is None:
            return {}
        agents = session.feature(SubAgents)
        if agents is None:
            return {}
        return agents.registry.names

    def _hook(self, event: events.HookProgress) -> None:
        """Add a hook to those that the turn waits for, or take it off."""
        hooks = self._status.hooks
        said = one_line(event.message or f"hook: {event.event}", 100)
        if event.status == "running":
            hooks.append((said, time.monotonic()))
            return
        for n, (running, _) in enumerate(hooks):
            if running == said:
                del hooks[n]
                return

    @property
    def offers_retry(self) -> bool:
        """True if Enter on an empty composer continues the turn that failed."""
        return (
            self._has_failed
            and self._status.working_since is None
            and self._is_unfinished
        )

    @property
    def _is_unfinished(self) -> bool:
        session = self._session()
        return session is not None and session.is_unfinished

    def begin(self, session: Session) -> None:
        """Show another session, and its conversation so far."""
        branch = self._status.known.get("git-branch", "")
        self._status.known = {"git-branch": branch}
        self._used_before = session.token_usage.total
        if session.is_resumed:
            self._status.known |= _usage_items(session.token_usage)
        self._status.commands.clear()
        self.agents.clear()
        self._status.agents = 0
        self._has_failed = False
        self.refresh()
        if not self._ui.launch.is_unattended:
            self._greet(session)
        self.said = []
        try:
            self.said += thread_items(session.initial_items())
        except SessionError as error:
            self._transcript.notice(str(error), "error")
        self._transcript.replay(self.said)

    def _greet(self, session: Session) -> None:
        items = _session_items(session)
        mode = session.settings.sandbox_policy.mode
        may = _PERMISSIONS[mode]
        asks = session.settings.approval_policy is not ApprovalPolicy.NEVER
        if asks and mode != _ALL:
            may += ", asks before more"
        greeting = f"{items['model-with-reasoning']} · {may}"
        self._transcript.greet(greeting, self._status.hint)

    def refresh(self) -> None:
        """Show the settings and the name of the session as they are now."""
        session = self._session()
        if session is not None:
            self._status.known |= _session_items(session)
        self._ui.screen.changed()

    def prompt(self, submission: Submission) -> None:
        """Show the prompt with which a turn begins."""
        self._status.hint = ""
        self.said.append(event_items.UserMessage(id="", text=submission.text))
        text = submission.shown or submission.text
        for transcript in self._transcripts:
            folds = transcript.renderer.theme.folds
            transcript.print(user_cell(text, folds=folds))

    def went_wrong(self, error: Exception) -> None:
        """Report that the work ended with an exception, unless its turn has reported it."""
        if self._has_failed:
            return
        if isinstance(error, CodexError):
            text = str(error)
        else:
            text = self._with_log(bug_line(error))
        self._transcript.notice(text, "error")

    def work_begins(self) -> None:
        """Start the clock of the status, before a turn or a compaction."""
        self._has_failed = False
        self.last_answer = ""
        # A hook that was interrupted has not ended.
        self._status.hooks.clear()
        now = time.monotonic()
        self._status.working_since = now
        self._status.heard_at = now
        session = self._session()
        if session is not None:
            self._used_before = session.token_usage.total
        self._status.known.pop("turn-usage", None)
        if self._clock is None:
            self._tick()

    def work_ended(self) -> None:
        """Notify the user that all work has ended, and none follows."""
        self._status.working_since = None
        if not self._ui.leaving.is_under_way:
            text = self.last_answer or "The turn is over"
            self._ui.notify("agent-turn-complete", text)
        self._ui.screen.changed()

    def close(self) -> None:
        """Stop the clock."""
        if self._clock is not None:
            self._clock.cancel()

    def _advised(self, error: events.ErrorInfo) -> str:
        """The message of an error, with what the user can do about it."""
        if error.code == "context_length_exceeded":
            advice = "/compact puts a summary in place of the conversation, /retry goes on with it;"
            return f"{error.message}\n{advice} /new begins another one."
        message = error.message
        if error.code == "internal":
            message = self._with_log(message)
        if self._has_failed and self._is_unfinished:
            return f"{message}\nEnter on an empty prompt, or /retry, tries again."
        return message

    def _with_log(self, message: str) -> str:
        """Add to a message the place of an internal error's traceback, or how to get one."""
        file = self._config().settings.log_file
        if file is None:
            return f"{message}\nStart codex-py with --log FILE to keep what led to it for a report."
        return f"{message}\nThe traceback is in {file}."

    def _tick(self) -> None:
        """Draw the status each second while there is work."""
        self._clock = None
        if self._status.working_since is not None:
            self._clock = asyncio.get_running_loop().call_later(1, self._tick)
            self._ui.screen.changed()


def _session_items(session: Session) -> Mapping[str, str]:
    settings = session.settings
    effort = settings.reasoning_effort or ""
    mode = settings.sandbox_policy.mode
    policy = str(settings.approval_policy)
    return {
        "mode": "Plan mode" if settings.mode == "plan" else "",
        "model": settings.model,
        "model-name": settings.model,
        "model-with-reasoning": f"{settings.model} {effort}".rstrip(),
        "reasoning": effort,
        "current-dir": shown_folder(settings.cwd),
        "project-name": settings.cwd.name,
        "permissions": mode if policy == "on-request" else f"{mode}, {policy}",
        "session-id": session.thread_id,
        "thread-name": session.name or "",
    }


def _usage_items(usage: events.UsageReported) -> Mapping[str, str]:
    left = usage.context_left_percent
    total = usage.total
    return {
        "context-remaining": f"{left}% left",
        "context-used": f"{100 - left}% used",
        "context-window-size": f"{_short(usage.context_window)} window",
        "used-tokens": f"{_short(total.total_tokens)} tokens",
        "total-input-tokens": f"{_short(total.input_tokens)} in",
        "total-output-tokens": f"{_short(total.output_tokens)} out",
    }


def _short(count: int) -> str:
    """A short form of a number: `950`, `12.3k`, `1.2M`."""
    if count < 1_000:
        return str(count)
    if count < 999_950:
        thousands = f"{count / 1_000:.1f}"
        return f"{thousands.removesuffix('.0')}k"
    millions = f"{count / 1_000_000:.1f}"
    return f"{millions.removesuffix('.0')}M"
