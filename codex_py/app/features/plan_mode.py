"""Plan mode, in which nothing is changed, and the questions of the model. LIGHT.

In Codex, these questions belong to Plan mode.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from codex_py.app.options import SessionSetup
from codex_py.config.config import Config
from codex_py.errors import CallRefused
from codex_py.instructions import instruction_text
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.dispatch import (
    Dispatch,
    Tool,
    ToolContext,
    ToolUse,
    changed_paths,
)
from codex_py.protocol.extension import Extension, OfferedTool, Thread
from codex_py.protocol.mcp import DecliningElicitor
from codex_py.protocol.prompts import Note, context_texts
from codex_py.protocol.settings import Choices, Mode
from codex_py.protocol.tools import COMMAND_TOOLS, FunctionSpec, ToolOutput

_PoliciesT = TypeVar("_PoliciesT", Choices, ToolContext)

_TOOL: Final = "request_user_input"
_TAG: Final = "<collaboration_mode>"
_HARMLESS_INPUT: Final = {"", "\x03"}
"""The input that a running command may get in Plan mode: none, and Ctrl-C."""
_REFUSED: Final = (
    "{} is refused: nothing is changed in Plan mode. Put it into the plan; the"
    " user decides when to begin."
)


def planning_choices(config: Config, choices: Choices) -> Choices:
    """Return the choices for Plan mode: commands are read-only, and no approval lifts that."""
    effort = config.settings.plan_mode_reasoning_effort or choices.reasoning_effort
    return _confined(replace(choices, reasoning_effort=effort))


def _confined(policies: _PoliciesT) -> _PoliciesT:
    """Return the policies with a sandbox that cannot write and that no approval lifts."""
    approval_policy = ApprovalPolicy.NEVER
    if policies.approval_policy is ApprovalPolicy.UNTRUSTED:
        # This policy asks about commands that stay in the sandbox.
        approval_policy = ApprovalPolicy.UNTRUSTED
    return replace(
        policies,
        approval_policy=approval_policy,
        sandbox_policy=policies.sandbox_policy.locked(),
    )


class PlanMode:
    """Tells the model its mode, and refuses calls that change something.

    The mode's settings are `planning_choices`.

    Args:
        parent: the feature of the parent session, whose mode binds the child too; None for the
            session at the top.
    """

    def __init__(self, setup: SessionSetup, parent: "PlanMode | None" = None) -> None:
        self._setup = setup
        self._parent = parent
        self._thread: Thread | None = None
        self._may_differ = True
        """True if the model may have been told another mode than the session's."""

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread

        def wrap_dispatch(inner: Dispatch) -> Dispatch:
            """In Plan mode, refuse calls that change files, and make commands read-only."""

            async def dispatch(use: ToolUse) -> ToolOutput:
                if self.is_on:
                    _refuse_changes(use)
                    use = replace(use, context=_confined(use.context))
                return await inner(use)

            return dispatch

        tools: list[OfferedTool] = []
        questions = self._setup.config.settings.tools.experimental_request_user_input
        if questions.enabled is not False:
            tools.append(self._question_tool(thread))
        return Extension(
            tools=tools,
            wrap_dispatch=wrap_dispatch,
            before_request=self._mode_notes,
            around_session=self._around_session,
        )

    def for_child(self, setup: SessionSetup) -> "PlanMode":
        return PlanMode(setup, self)

    @property
    def is_on(self) -> bool:
        """True if this session, or the session that opened it, is in Plan mode."""
        own = self._thread is not None and self._thread.settings.mode == "plan"
        return own or (self._parent is not None and self._parent.is_on)

    @property
    def told(self) -> Mode | None:
        """The mode that the history tells the model; None if the history names no mode."""
        if self._thread is None:
            return None
        text = next(context_texts(_TAG, self._thread.items), None)
        if text is None:
            return None
        # Codex words the instructions differently, under the same title.
        title = text.removeprefix(_TAG).lstrip().lower()
        if title.startswith("# plan mode"):
            return "plan"
        return "default"

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        """At the end of a session, write its mode to the history if another one is named there.

        A resumed session goes by the last mode in its history.
        """
        yield
        if self._thread is not None and self.told is not None:
            for note in await self._mode_notes():
                self._thread.tell(note)

    async def _mode_notes(self) -> Sequence[Note]:
        """Tell the model the session's mode if the history names another one."""
        mode: Mode = "plan" if self.is_on else "default"
        # Without Plan mode, the history is searched once, and not before each request.
        if mode == "default" and not self._may_differ:
            return ()
        told = self.told
        # A rollback may bring back the earlier mode.
        self._may_differ = told is not None or mode == "plan"
        if mode == (told or "default"):
            return ()
        if not self._setup.config.settings.include_collaboration_mode_instructions:
            return ()
        text = instruction_text(f"modes/{mode}.md").strip()
        return [Note(f"{_TAG}{text}\n</collaboration_mode>")]

    def _question_tool(self, thread: Thread) -> OfferedTool:
        """Make the tool for questions. Without a user to ask, it is not offered to the model."""
        setup = self._setup
        has_user = not isinstance(setup.elicitor, DecliningElicitor)
        # As in Codex, a terminal is asked in Plan mode only. Other callers that give an elicitor
        # want to be asked.
        any_mode = setup.options.source != "cli"
        if setup.config.features.default_mode_request_user_input:
            any_mode = True

        def unavailable() -> str | None:
            if has_user and (any_mode or self.is_on):
                return None
            mode = "Plan" if self.is_on else "Default"
            return f"{_TOOL} is unavailable in {mode} mode"

        spec = None
        if has_user:
            modes = "Default or Plan" if any_mode else "Plan"
            spec = FunctionSpec(
                _TOOL,
                f"Ask the user one to three short questions, and wait for the answers. Available in {modes} mode only.",
                json.loads(instruction_text(f"tools/{_TOOL}.json")),
            )
        asker = "codex-py" if thread.parent is None else thread.parent.nickname

        def tool() -> Tool[Any]:
            from codex_py.tools.user_input import (
                RequestUserInput,
            )  # 1 ms behind the tools

            return RequestUserInput(setup.elicitor, asker, unavailable, thread.abort)

        return OfferedTool(_TOOL, tool, spec)


def _refuse_changes(use: ToolUse) -> None:
    """Raise a `CallRefused` if the call may change something."""
    # The tool's own name does not count: an MCP server may call one of its tools `exec_command`.
    name = use.call.tool_name
    if name == "write_stdin":
        # The input goes to a command that may have been started before Plan mode.
        is_harmless = use.params.chars in _HARMLESS_INPUT
    elif name in COMMAND_TOOLS:
        # The sandbox keeps commands from changing anything.
        is_harmless = True
    else:
        paths = changed_paths(use)
        is_harmless = paths is not None and not paths
    if not is_harmless:
        raise CallRefused(
            _REFUSED.format(name),
            code="ApprovalDenied",
            cause="nothing is changed in Plan mode",
        )
