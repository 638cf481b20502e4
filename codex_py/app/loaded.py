"""The tools of one session, loaded while the model thinks, or by its first call.

Part of the composition root: it hands `Session` what it does with the items of a response. Importing
this module is cheap; the tools take some 40 ms.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from codex_py.config.config import Config
from codex_py.config.environment import child_environment, hidden_names
from codex_py.config.layers import SYSTEM_FOLDER
from codex_py.config.project_trust import Trusted
from codex_py.core.context import user_shell
from codex_py.core.session import Session
from codex_py.core.turn import ItemHandlers
from codex_py.errors import CodexError, ExitCode
from codex_py.protocol.approval import ApprovalRequest, Approver, Review, ReviewDecision
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import ToolCall, ToolOutput

if TYPE_CHECKING:
    from codex_py.app.features.mcp import SessionServers
    from codex_py.execpolicy.decision import Rules
    from codex_py.process.sessions import ProcessSessions
    from codex_py.protocol.items import CustomToolCallOutput, FunctionCallOutput, ResponseItem
    from codex_py.sandbox.base import Sandbox
    from codex_py.tools.plan import UpdatePlan

    OutputItem: TypeAlias = FunctionCallOutput | CustomToolCallOutput

_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
"""Types of the items that a tool has to answer."""
_LOAD_AFTER_S = 0.2


class Toolbox:
    def __init__(
        self,
        *,
        config: Config,
        environment: Mapping[str, str],
        secret_names: Collection[str],
        structured_shell: bool,
        image_detail: str,
        output_token_limit: int,
        keep_processes: bool,
        rules: "Rules | None" = None,
        approver: Approver | None = None,
        servers: "SessionServers | None" = None,
    ) -> None:
        """
        Args:
            secret_names: variables that hold keys; commands do not see them.
            structured_shell: `shell` answers with JSON.
            image_detail: at which images are shown to the model, as the service names it.
            output_token_limit: of one result, for the model.
            keep_processes: whether commands go on between turns. Where a turn is all there is, they
                end with it, so that their items are complete before its last event.
            rules: about commands, see `command_rules`.
            approver: decides what a policy leaves to the user; None where there is nobody to ask.
            servers: the MCP servers; their owner ends them.
        """
        self._config = config
        self._environment = environment
        self._secret_names = secret_names
        self._structured_shell = structured_shell
        self._image_detail = image_detail
        self._output_token_limit = output_token_limit
        self._keep_processes = keep_processes
        self._rules = rules
        self._approver = approver or _NobodyToAsk()
        self._servers = servers
        self._handlers: ItemHandlers | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._loaded: _LoadedTools | None = None
        self._processes: ProcessSessions | None = None
        self._sandbox: Sandbox | None = None
        self._plan: UpdatePlan | None = None

    def handlers(self, session: Session) -> ItemHandlers:
        if self._handlers is None:
            self._handlers = self._load(session)
        return self._handlers

    async def end_turn(self, session: Session) -> None:
        if not self._keep_processes:
            await self.aclose()
        elif self._sandbox is not None and self._processes is not None and self._processes.is_idle:
            self._sandbox.release()
        if self._plan is not None:
            self._plan.end_turn(session.emit)

    def stop_commands(self) -> int:
        """Kill what runs, in the background too; how many commands it were."""
        return 0 if self._processes is None else self._processes.kill_running()

    async def aclose(self) -> None:
        """End what the tools left running."""
        if self._waiting is not None:
            self._waiting.cancel()
        try:
            if self._processes is not None:
                await self._processes.aclose()
        finally:
            if self._sandbox is not None:
                self._sandbox.release()

    def _load(self, session: Session) -> ItemHandlers:
        from codex_py.core.thread_items import item_events  # noqa: PLC0415

        def build_tool_call(item: "ResponseItem") -> ToolCall | None:
            return self._tools(session).build_tool_call(item) if item.type in _CALLS else None

        # The model mostly takes longer than this to think; a turn that does not is spared the tools.
        self._waiting = asyncio.get_running_loop().call_later(_LOAD_AFTER_S, self._tools, session)
        return ItemHandlers(
            build_tool_call=build_tool_call,
            dispatch=lambda call: self._tools(session).dispatch(call),
            answer=lambda call, output: self._tools(session).answer(call, output),
            item_events=lambda item: item_events(item, session.next_item_id),
        )

    def _tools(self, session: Session) -> "_LoadedTools":
        if self._loaded is None:
            self._loaded = self._load_tools(session)
        return self._loaded

    def _load_tools(self, session: Session) -> "_LoadedTools":
        from codex_py.process.sessions import ProcessSessions  # noqa: PLC0415
        from codex_py.protocol.dispatch import ToolContext  # noqa: PLC0415
        from codex_py.sandbox.choice import PlatformSandbox  # noqa: PLC0415
        from codex_py.tools.builtin import builtin_tools  # noqa: PLC0415
        from codex_py.tools.plan import UpdatePlan  # noqa: PLC0415
        from codex_py.tools.router import ToolRouter  # noqa: PLC0415
        from codex_py.tools.shell.orchestrator import Orchestrator  # noqa: PLC0415

        self._processes = ProcessSessions()
        self._plan = UpdatePlan()
        settings = session.settings
        environment = child_environment(
            self._config.shell_environment,
            self._environment,
            thread_id=session.thread_id,
            network_disabled=not settings.sandbox_policy.network_access,
            secret_names=self._secret_names,
        )
        # Read-only for commands: the configuration says what they may do.
        sandbox = PlatformSandbox(
            environment, home=self._config.home, limits=self._config.sandbox_limits
        )
        self._sandbox = sandbox
        shell = user_shell(self._environment)
        tools = builtin_tools(
            self._processes,
            self._plan,
            Orchestrator(
                sandbox,
                hidden=hidden_names(
                    self._config.shell_environment, self._environment, self._secret_names
                ),
                shell=shell,
                rules=self._rules,
                write_rule=lambda words: self._write_rule(words, session),
            ),
            home=self._config.home,
            shell=shell,
            structured_shell=self._structured_shell,
            image_detail=self._image_detail,
            max_poll_ms=self._config.background_terminal_max_timeout_ms,
            allow_login_shell=self._config.allow_login_shell,
            unambiguous_patches=self._config.patch_ambiguous == "refuse",
        )
        if self._servers is None:
            router = ToolRouter(tools)
        else:
            find = self._servers.tool_finder(self._image_detail)
            router = ToolRouter([*tools, *self._servers.tools()], find_mcp_tool=find)
        approver = _SessionApprover(self._approver, session)

        def context(call_id: str) -> ToolContext:
            # They may have changed since the last turn.
            settings = session.settings
            return ToolContext(
                call_id=call_id,
                cwd=settings.cwd,
                environment={**environment, "CODEX_TOOL_CALL_ID": call_id},
                approval_policy=settings.approval_policy,
                sandbox_policy=settings.sandbox_policy,
                approver=approver,
                emit=session.emit,
                next_item_id=session.next_item_id,
                output_token_limit=self._output_token_limit,
            )

        async def dispatch(call: ToolCall) -> "Sequence[Note | OutputItem]":
            output = await router.dispatch(call, context(call.call_id))
            if sandbox.unavailable is not None:
                session.refuse(
                    CodexError(sandbox.unavailable, code="sandbox", exit_code=ExitCode.SANDBOX)
                )
            return output

        def answer(call: ToolCall, output: ToolOutput) -> "OutputItem":
            return router.answer(call, output, context(call.call_id))

        return _LoadedTools(router.build_tool_call, dispatch, answer)

    def _write_rule(self, prefix: Sequence[str], session: Session) -> None:
        from codex_py.execpolicy.rules import allow_prefix  # noqa: PLC0415 (loaded by few sessions)

        folder = self._config.home / "rules"
        try:
            allow_prefix(folder, prefix)
        except (OSError, ValueError) as error:
            session.warn(
                f"The rule could not be written to {folder}: {error}. It holds for this session."
            )


@frozen
class _LoadedTools:
    """The parts of `ItemHandlers` that are the tools'."""

    build_tool_call: "Callable[[ResponseItem], ToolCall | None]"
    dispatch: "Callable[[ToolCall], Coroutine[Any, Any, Sequence[Note | OutputItem]]]"
    answer: "Callable[[ToolCall, ToolOutput], OutputItem]"


def command_rules(config: Config) -> "Rules | None":
    """The rules of the system, of the user and of a trusted project; None where there are none.

    Nothing is loaded for those who have none.

    Raises:
        ConfigError: a file of rules cannot be read, or is wrong.
    """
    folders = [SYSTEM_FOLDER / "rules", config.home / "rules"]
    trust = config.project_trust
    project = {
        path: text
        for path, text in (trust.files.items() if isinstance(trust, Trusted) else ())
        if path.suffix == ".rules"
    }
    if not project and not any(next(folder.glob("*.rules"), None) for folder in folders):
        return None
    from codex_py.execpolicy.rules import load_rules, parse_rules  # noqa: PLC0415

    rules = load_rules(folders)
    for path, text in project.items():
        # This text was compared with what is trusted; the file may have changed since.
        rules = parse_rules(text, str(path), rules)
    return rules


class _SessionApprover:
    """Puts one question at a time, and ends the turn where the answer says so."""

    def __init__(self, approver: Approver, session: Session) -> None:
        self._approver = approver
        self._session = session
        self._asking = asyncio.Lock()

    async def review(self, request: ApprovalRequest) -> Review:
        async with self._asking:
            review = await self._approver.review(request)
        if review.decision is ReviewDecision.ABORT:
            self._session.abort()
        return review


class _NobodyToAsk:
    """An approver for sessions without a user."""

    async def review(self, request: ApprovalRequest) -> Review:  # noqa: ARG002
        return Review(ReviewDecision.DENIED, "there is nobody to ask")
