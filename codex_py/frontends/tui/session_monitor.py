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
            self.agents[event.thread_id](event.event)
            self._status.agents = sum(each.is_working for each in self.agents.values())
            if (
                isinstance(event.event, events.TurnFailed)
                and event.event.error.code != "aborted"
            ):
                self._agent_failed(event.thread_id, event.event.error)
            self._ui.screen.changed()
        elif isinstance(event, events.HookProgress):
            self._hook(event)
        else:
            self._of_session(event)

    def _of_session(self, event: events.Event) -> None:
        status = self._status
        status.heard_at = time.monotonic()
        if not isinstance(event, events.CommandOutputDelta):
            # Commands in the background continue while the provider cannot be reached.
            status.reconnecting = None
        match event:
            case events.Reconnecting(cause=cause, attempt=attempt, wait_s=wait_s):
                status.reconnecting = cause, attempt, time.monotonic() + wait_s
            case events.ThreadStarted() if (left := self._session()) is not None:
                # On its own line, the command is not broken in a narrow terminal.
                if left.has_begun:
                    back = f" To go back:\n/resume {left.thread_id}"
                else:
                    back = ""
                self._transcript.separate(f"Another conversation from here on.{back}")
            case events.TurnStarted():
                self._has_failed = False
            case events.TurnFailed(error):
                self._has_failed = error.code not in _NO_FAILURES
                self._keep_end(error)
                event = replace(
                    event, error=replace(error, message=self._advised(error))
                )
            case events.SteeringRefused():
                self._ui.composer.restore([self._ui.outbox.steered.pop(0)])
            case events.UsageReported():
                status.known |= _usage_items(event)
                status.known["turn-usage"] = self._cost(event.total - self._used_before)
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

    def _completed(self, item: event_items.ThreadItem) -> None:
        if isinstance(item, event_items.UserMessage):
            # The model gets steered prompts in order, so this was the first of them.
            del self._ui.outbox.steered[:1]
        elif isinstance(item, event_items.AgentMessage):
            self.last_answer = item.text
        self._status.commands.pop(item.id, None)
        self.said.append(item)

    def _keep_end(self, error: events.ErrorInfo) -> None:
        text = self._transcript.unfinished
        if text.strip():
            self.said.append(event_items.AgentMessage(id="", text=text))
        if error.code == "aborted":
            message = event_items.INTERRUPTED
        else:
            message = error.message
        self.said.append(event_items.ErrorItem(id="", message=message, code=error.code))

    @property
    def _transcripts(self) -> Sequence[Transcript]:
        return (self._transcript, *self.readers)

    def _cost(self, usage: Usage) -> str:
        """The tokens, and their cost if the price is known."""
        config = self._config()
        session = self._session()
        model = "" if session is None else session.settings.model
        price = None
        with suppress(ConfigError):
            price = price_of(config, model, config.model_provider)
        if price is None:
            dollars = ""
        else:
            dollars = f", ${price.of(usage):.3f}"
        return f"{_short(usage.total_tokens)} tokens{dollars}"

    def _agent_failed(self, thread_id: str, error: events.ErrorInfo) -> None:
        session = self._session()
        if session is None:
            agents = None
        else:
            agents = session.feature(SubAgents)
        # The opener of an agent without a name, such as a review, reports its failure.
        if (
            agents is not None
            and (name := agents.registry.names.get(thread_id)) is not None
        ):
            self._transcript.notice(f"{name} failed: {error.message}", "error")

    def agent_rows(self, columns: int) -> list[Fragments]:
        if not self.agents:
            return []
        session = self._session()
        if session is None or not self._status.agents:
            agents = None
        else:
            agents = session.feature(SubAgents)
        names = {} if agents is None else agents.registry.names
        return working_rows(self.agents, names, columns, self._status.asking)

    def _hook(self, event: events.HookProgress) -> None:
        hooks = self._status.hooks
        said = one_line(event.message or f"hook: {event.event}", 100)
        if event.status == "running":
            hooks.append((said, time.monotonic()))
        elif ended := [hook for hook in hooks if hook[0] == said]:
            hooks.remove(ended[0])

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
        self._status.known = {"git-branch": self._status.known.get("git-branch", "")}
        if session.is_resumed:
            self._status.known |= _usage_items(session.token_usage)
        self._status.commands.clear()
        self.agents.clear()
        self._status.agents = 0
        self._has_failed = False
        self.refresh()
        if self._ui.launch.replay is None:
            self._greet(session)
        self.said = []
        try:
            self.said += thread_items(session.initial_items())
        except SessionError as error:
            self._transcript.notice(str(error), "error")
        self._transcript.replay(self.said)

    def _greet(self, session: Session) -> None:
        items = _session_items(session)
        may = _PERMISSIONS[session.settings.sandbox_policy.mode]
        asks = session.settings.approval_policy is not ApprovalPolicy.NEVER
        if asks and session.settings.sandbox_policy.mode != _ALL:
            may += ", asks before more"
        self._transcript.greet(
            f"{items['model-with-reasoning']} · {may}", self._status.hint
        )

    def refresh(self) -> None:
        session = self._session()
        if session is not None:
            self._status.known |= _session_items(session)
        self._ui.screen.changed()

    def prompt(self, submission: Submission) -> None:
        """Show the prompt with which a turn begins."""
        self._status.hint = ""
        self.said.append(event_items.UserMessage(id="", text=submission.text))
        for each in self._transcripts:
            text = submission.shown or submission.text
            each.print(user_cell(text, folds=each.renderer.theme.folds))

    def went_wrong(self, error: Exception) -> None:
        """Report that the work ended with an exception, unless its turn has reported it."""
        if not self._has_failed:
            if isinstance(error, CodexError):
                text = str(error)
            else:
                text = self._with_log(bug_line(error))
            self._transcript.notice(text, "error")

    def work_begins(self) -> None:
        self._has_failed = False
        self.last_answer = ""
        # A hook that was interrupted has not ended.
        self._status.hooks.clear()
        self._status.working_since = self._status.heard_at = time.monotonic()
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
            self._ui.notify(
                "agent-turn-complete", self.last_answer or "The turn is over"
            )
        self._ui.screen.changed()

    def close(self) -> None:
        if self._clock is not None:
            self._clock.cancel()

    def _advised(self, error: events.ErrorInfo) -> str:
        if error.code == "context_length_exceeded":
            advice = "/compact puts a summary in place of the conversation, /retry goes on with it;"
            return f"{error.message}\n{advice} /new begins another one."
        if error.code == "internal":
            message = self._with_log(error.message)
        else:
            message = error.message
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
    number, unit = (count / 1_000, "k") if count < 999_950 else (count / 1_000_000, "M")
    return f"{number:.1f}".removesuffix(".0") + unit
