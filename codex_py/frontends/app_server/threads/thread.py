"""One thread of the server: its session, open or not, and its turn."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from codex_py.app.features.mcp import McpFeature
from codex_py.app.features.plan_mode import PlanMode
from codex_py.app.json_rpc import JsonRpc
from codex_py.app.options import SessionOptions
from codex_py.app.served_thread import ServedThread
from codex_py.app.user_shell import UserShell
from codex_py.config.config import Config
from codex_py.frontends.app_server.account.plan_facts import limits_in_use
from codex_py.frontends.app_server.mcp.mcp_status import startup_data
from codex_py.frontends.app_server.threads.questions import Questions
from codex_py.frontends.app_server.threads.setting_changes import (
    SettingsChange,
    change_in_folder,
    change_of_folder,
)
from codex_py.frontends.app_server.turn_items.items import Fields, TurnFeed, turn_data
from codex_py.frontends.app_server.turn_items.planning_feed import PlanningFeed
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import SandboxMode
from codex_py.protocol.file_rules import FileRules
from codex_py.protocol.mcp import McpServerStatus
from codex_py.protocol.settings import Mode
from codex_py.protocol.stream import PlanUse

_Table: TypeAlias = Mapping[str, Any]
"""Settings as in `config.toml`."""
_Configure: TypeAlias = Callable[[str, _Table, Mapping[str, str]], Config]
_STATUS_CHANGED: Final = "thread/status/changed"
_BUSY: Final[Fields] = {"type": "active", "activeFlags": []}


class AppThread(ServedThread):
    """A thread with its session and its running turn.

    Args:
        configure: makes the configuration of a thread from a folder, settings, and texts of the
            client by fields of a `Config`.
        cwd: the folder of the thread.
        table: the settings that the client asked for.
        texts: the client's instructions, by fields of a `Config`.
        turn_ended: called when a turn has ended.

    Attributes:
        config: the configuration of the session; it is set when the session is opened first.
        table: the settings that the client asked for.
        mode: the mode that the client asked for.
        status: the thread's status, in the format of Codex.
        feed: the running turn, from its first event to its last; None if no turn runs.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        environment: Mapping[str, str],
        options: SessionOptions,
        configure: _Configure,
        cwd: str,
        table: _Table,
        texts: Mapping[str, str],
        turn_ended: Callable[[], None],
    ) -> None:
        super().__init__(options, environment, turn_ended)
        self._rpc = rpc
        self._configure = configure
        self._cwd = cwd
        self._texts = texts
        self._prompt: event_items.UserMessage | None = None
        """The prompt of the turn that starts."""
        self.shell = UserShell(environment)
        """Runs the commands of the user."""
        self._beside: set[asyncio.Task[None]] = set()
        """The work that runs beside the turns."""
        self._subscription = asyncio.Event()
        """Set while the client wants the notifications of the thread."""
        self._subscription.set()
        questions = Questions(rpc, self._running, self.notify, self._subscription.wait)
        self.approver = questions
        self.elicitor = questions
        self.config: Config
        self.table: dict[str, Any] = dict(table)
        self.mode: Mode = "default"
        self.status: Mapping[str, Any] = {"type": "idle"}
        self.feed: TurnFeed | None = None
        self._uses = 0
        """The number of requests that use the session without a turn."""

    @property
    def is_idle(self) -> bool:
        is_unused = self._uses == 0 and not self._beside
        return super().is_idle and is_unused and self.shell.is_idle

    @contextmanager
    def kept_open(self) -> Generator[None]:
        """Keep the session from being closed because the thread is idle."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    def configuration(self) -> Config:
        """Read the configuration: its files may have changed while the session was closed."""
        self.config = self.current_configuration()
        self._cwd = str(self.config.cwd)
        return self.config

    def current_configuration(self) -> Config:
        """Read the configuration that the next session would have.

        Raises:
            ConfigError: the settings cannot be used.
        """
        return self._configure(self._cwd, self.table, self._texts)

    @property
    def file_rules(self) -> FileRules:
        """The rules for files that hold in the next turn."""
        choices = self.options.choices
        if self.is_open:
            choices = self.session.settings.choices
        if choices is None:
            return self.config.sandbox_policy(self.options.add_dirs).files
        return choices.sandbox_policy.files

    @property
    def mcp_servers(self) -> McpFeature:
        """The MCP servers of the open session."""
        servers = self.session.feature(McpFeature)
        assert servers is not None
        return servers

    def watch_servers(self) -> None:
        """Tell the client of the MCP servers that start, unless the session is closed again."""
        if self.is_open:
            self.mcp_servers.watch(self._tell_server)

    def reload_servers(self) -> None:
        """Take over the MCP servers that are configured now.

        A session that is opened again later reads the configuration anyway.

        Raises:
            ConfigError: the settings cannot be used.
        """
        if self.is_open and not self.is_closing:
            self.mcp_servers.reload(self.current_configuration())

    def _tell_server(self, status: McpServerStatus) -> None:
        told = startup_data(self.thread_id, status)
        self.notify("mcpServer/startupStatus/updated", told)

    def changed_by(self, cwd: str | None, table: _Table) -> SettingsChange | None:
        """Return the change that these settings on top make; None if they change nothing.

        Raises:
            ConfigError: the settings cannot be used.
        """
        own = self.config
        folder = own.cwd / (cwd or ".")
        together = {**self.table, **table}
        if folder == own.cwd and together == self.table:
            return None
        config = self._configure(str(folder), together, self._texts)
        change = SettingsChange(together, config)
        asked = {
            key: value
            for key, value in table.items()
            if key not in self.table or self.table[key] != value
        }
        # A folder that is gone has no settings of its own.
        before = config
        if own.cwd.is_dir():
            before = self._configure(str(own.cwd), self.table, self._texts)
        choices = self.session.settings.choices
        add_dirs = self.options.add_dirs
        if config.cwd == own.cwd:
            return change_in_folder(own, choices, before, change, asked, add_dirs)

        def in_mode(mode: SandboxMode) -> Config:
            table = {**together, "sandbox_mode": mode}
            return self._configure(str(folder), table, self._texts)

        return change_of_folder(choices, before, change, in_mode, asked, add_dirs)

    async def set(
        self, cwd: str | None, table: _Table, mode: Mode | None = None
    ) -> None:
        """Change settings for the next turns.

        Args:
            mode: None for the mode of the turn before.

        Raises:
            CodexError: the settings are not possible. Nothing has changed.
        """
        change = self.changed_by(cwd, table)
        if change is not None:
            await self._use(change)
        if mode is not None:
            self.mode = mode
        choices = self.session.settings.choices
        if choices.mode != self.mode:
            self.session.change(replace(choices, mode=self.mode))

    def restore_mode(self) -> None:
        """Take the mode from the history of the session, which another program may have had."""
        plan_mode = self.session.feature(PlanMode)
        if plan_mode is not None and plan_mode.told == "plan":
            self.mode = "plan"
            choices = self.session.settings.choices
            self.session.change(replace(choices, mode=self.mode))

    async def _use(self, change: SettingsChange) -> None:
        """Use the settings of a change for the next turns."""
        if change.needs_opening:
            await self._reopen(change)
            return
        if change.choices is not None:
            self.session.change(replace(change.choices, mode=self.mode))
        self.table = change.table

    async def _reopen(self, change: SettingsChange) -> None:
        """Open the session anew with the settings of a change. The conversation goes on.

        Raises the errors of `open`; the next opening then has the settings from before.
        """
        # What the user has left running in the background goes on.
        await super().close()
        options_before = self.options
        cwd_before = self._cwd
        table_before = self.table
        self.options = replace(self.options, choices=change.choices)
        self._cwd = str(change.config.cwd)
        self.table = change.table
        try:
            await self.open()
            self.watch_servers()
        except BaseException:
            self.options = options_before
            self._cwd = cwd_before
            self.table = table_before
            raise

    async def start(
        self,
        work: Callable[[], Coroutine[Any, Any, object]],
        prompt: event_items.UserMessage | None,
    ) -> Fields:
        """Start a turn. Its notifications follow the answer to the request.

        Args:
            prompt: the item that is shown first; None for a turn without a prompt.

        Returns:
            The turn, for the answer.

        Raises:
            CodexError: the turn could not begin, for instance because of a bad output schema.
        """
        self._prompt = prompt
        with self.answering():
            turn = self.begin(work)
            return turn_data(await turn.started(), "inProgress")

    def run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work of the user's beside the running turn. An interrupt of the turn ends it, too."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def cancel(self) -> None:
        for task in self._beside:
            task.cancel()
        super().cancel()

    async def close(self) -> None:
        self.cancel()
        if self._beside:
            await asyncio.wait(self._beside)
        await super().close()
        await self.shell.aclose()

    @property
    def is_subscribed(self) -> bool:
        """True if the client wants the notifications of the thread."""
        return self._subscription.is_set()

    def subscribe(self) -> None:
        """Send notifications and questions of the thread again."""
        self._subscription.set()

    def unsubscribe(self) -> None:
        """Send no notifications but those of the status. Questions wait."""
        self._subscription.clear()

    def notify(self, method: str, params: Fields, *, is_live: bool = False) -> None:
        """Send a notification, now or after the current answer. See `Notify`.

        Without a subscription, only the status of the thread is sent.
        """
        if self.is_subscribed or method == _STATUS_CHANGED:
            self.tell(partial(self._rpc.notify, method, params, is_live=is_live))

    def _running(self) -> tuple[str, TurnFeed | None]:
        """The id of the thread, and the running turn; see `Questions`."""
        return self.thread_id, self.feed

    def show(self, event: events.Event) -> None:
        feed = self.feed
        match event:
            case events.TurnStarted(turn_id):
                self._begin(turn_id)
            case events.TurnCompleted() | events.TurnFailed() if feed is not None:
                self.feed = None
                turn = feed.end(event)
                is_failed = turn["status"] == "failed"
                self._tell_status({"type": "systemError" if is_failed else "idle"})
                self.notify(
                    "turn/completed", {"threadId": self.thread_id, "turn": turn}
                )
            case events.GoalChanged(None):
                self.notify("thread/goal/cleared", {"threadId": self.thread_id})
            case events.GoalChanged(goal):
                turn_id = feed and feed.turn_id
                told = {"threadId": self.thread_id, "turnId": turn_id, "goal": goal}
                self.notify("thread/goal/updated", told)
            case events.ItemCompleted(event_items.ErrorItem(message=message)):
                self.notify("warning", {"threadId": self.thread_id, "message": message})
            case events.UsageReported(plan=plan) if feed is not None:
                feed.take(event)
                if plan is not None:
                    self._tell_limits(plan)
            case _ if feed is not None:
                feed.take(event)
            case _:
                pass

    def _tell_limits(self, plan: PlanUse) -> None:
        limits = limits_in_use(plan)
        if limits is not None:
            self.notify("account/rateLimits/updated", {"rateLimits": limits})

    def _begin(self, turn_id: str) -> None:
        kind = TurnFeed
        if self.session.settings.mode == "plan":
            kind = PlanningFeed
        self.feed = kind(self.thread_id, turn_id, self.config.cwd, self.notify)
        self._tell_status(_BUSY)
        self.feed.start(self._prompt)

    def _tell_status(self, status: Mapping[str, Any]) -> None:
        self.status = status
        told = {"threadId": self.thread_id, "status": status}
        self.notify(_STATUS_CHANGED, told)
