"""The settings and the limits of a subagent: those of its parent, narrowed by its role."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from codex_py.app.options import SessionSetup
from codex_py.app.settings import provider_and_model, selectable_models
from codex_py.config.config import Config
from codex_py.config.role_files import Role
from codex_py.errors import ToolError
from codex_py.mcp.servers import folded
from codex_py.model.catalog import model_info
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.settings import Choices
from codex_py.protocol.stream import ModelStream, Prompt
from codex_py.protocol.tools import (
    AGENT_TOOLS,
    COMMAND_TOOLS,
    MCP_PREFIX,
    ToolOutput,
    ToolSpec,
)
from codex_py.tools.agents import CallRefused, SpawnParams
from codex_py.tools.mcp.tool import McpTool
from codex_py.tools.offered import TOOL_SEARCH

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max", "ultra")
_WIDENING: Final = ("read-only", "workspace-write", "danger-full-access")
"""The modes of the sandbox, from the one that allows the least."""


def child_settings(
    setup: SessionSetup, own: Choices, role: Role, params: SpawnParams
) -> tuple[Config, Choices]:
    """Return the configuration and the choices of a child.

    They are those of its parent as they are now, or fewer rights.

    Args:
        setup: the setup of the parent.
        own: the current choices of the parent.

    Raises:
        CallRefused: the call names a model or an effort that is not possible.
    """
    config = setup.config
    if params.model is not None:
        _check_model(setup, own, params.model)
    wanted = (
        role.model
        or params.model
        or config.settings.agents.default_subagent_model
        or own.model
    )
    provider, model = _provider_and_model(config, role, wanted)
    if params.reasoning_effort is not None:
        _check_effort(config, model, params.reasoning_effort)
    effort = (
        role.reasoning_effort
        or params.reasoning_effort
        or config.settings.agents.default_subagent_reasoning_effort
    )
    if not effort and model == own.model:
        effort = own.reasoning_effort
    of_child: Config = replace(
        config,
        model=model,
        model_provider=provider,
        model_reasoning_effort=effort,
        developer_instructions=role.instructions or config.developer_instructions,
    )
    if (model, provider) != (config.model, config.model_provider):
        # The configured sizes belong to the parent's model.
        of_child = replace(
            of_child,
            model_context_window=None,
            model_max_output_tokens=None,
            model_auto_compact_token_limit=None,
        )
    choices = replace(
        own,
        model=model,
        reasoning_effort=effort,
        sandbox_policy=_narrowed_policy(config, own, role),
    )
    return of_child, choices


def _check_model(setup: SessionSetup, own: Choices, model: str) -> None:
    models = selectable_models(setup.config, setup.environment)
    if model not in {*models, own.model}:
        raise CallRefused(
            f"Unknown model `{model}` for spawn_agent."
            f" Available models: {', '.join(models)}"
        )


def _check_effort(config: Config, model: str, effort: str) -> None:
    """Refuse an unknown effort. For an unknown model, any effort may be right."""
    is_known = model_info(model, config.settings.model_catalog_json).known
    if is_known and effort not in _EFFORTS:
        raise CallRefused(
            f"Reasoning effort `{effort}` is not supported for model `{model}`."
            f" Supported reasoning efforts: {', '.join(_EFFORTS)}"
        )


def _narrowed_policy(config: Config, own: Choices, role: Role) -> SandboxPolicy:
    """Return the sandbox policy of the role if it allows less than the parent's, or else that."""
    policy = own.sandbox_policy
    mode = role.sandbox_mode
    if mode is None:
        return policy
    if _WIDENING.index(mode) >= _WIDENING.index(policy.mode):
        return policy
    narrowed = replace(config, sandbox_mode=mode).sandbox_policy()
    # Only the parent knows the denied paths in added folders.
    return replace(narrowed, files=policy.files)


def _provider_and_model(
    config: Config,
    role: Role,
    name: str,
) -> tuple[str, str]:
    """Find the provider and the model that a name stands for.

    The name may choose another provider, except if a role in the files of the project gave it: the
    project does not decide where requests go.
    """
    source = role.source if role.model == name else None
    if source is None or source.is_relative_to(config.home):
        return provider_and_model(config, name)
    root = config.project_root or config.cwd
    if source.is_relative_to(root):
        return config.model_provider, name
    return provider_and_model(config, name)


class RoleLimits:
    """Limits a subagent, and the agents that it starts, to the tools of its role.

    Other tools are not offered, and calls of them are refused. The feature is inside of all
    features that offer tools.
    """

    def __init__(self, role: Role) -> None:
        self._role = role
        tools = role.tools or frozenset()
        # Models spell names differently, so names are compared in folded form.
        self._folded = {folded(name) for name in tools}
        # The model may have to search for these tools first.
        searchable = [
            name for name in tools if name.startswith(MCP_PREFIX) or name in AGENT_TOOLS
        ]
        if searchable:
            tools |= {TOOL_SEARCH}
        self._tools = tools

    def __call__(self, _: Thread) -> Extension:
        if self._role.tools is None:
            return Extension()
        return Extension(wrap_model=self._wrap_model, wrap_dispatch=self._wrap_dispatch)

    def _wrap_model(self, inner: ModelStream) -> ModelStream:
        """Offer only the tools that the role of this agent allows."""

        def stream(prompt: Prompt):
            tools = tuple(filter(self._is_allowed, prompt.tools))
            return inner(replace(prompt, tools=tools))

        return stream

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Refuse calls of tools that the role of this agent does not allow.

        The commands of a role that only reads cannot write.
        """

        async def dispatch(use: ToolUse) -> ToolOutput:
            if self._tools.isdisjoint(_names(use)):
                text = f"the role {self._role.name!r} of this agent does not allow `{use.call.tool_name}`"
                raise ToolError(text, code="ToolNotAllowed")
            if self._role.reads_only and use.tool.name in COMMAND_TOOLS:
                policy = use.context.sandbox_policy.locked()
                context = replace(use.context, sandbox_policy=policy)
                use = replace(use, context=context)
            return await inner(use)

        return dispatch

    def _is_allowed(self, spec: ToolSpec) -> bool:
        if not spec.name.startswith(MCP_PREFIX):
            return spec.name in self._tools
        name = folded(spec.name)
        return any(
            name == allowed or name.startswith(f"{allowed}__")
            for allowed in self._folded
        )


def _names(use: ToolUse) -> Iterable[str]:
    """Return the names by which a role can allow the call."""
    tool = use.tool
    if isinstance(tool, McpTool):
        # A server chooses the names of its tools: one may be called `exec_command`.
        server = f"{MCP_PREFIX}{tool.server}"
        return (server, f"{server}__{tool.name}")
    return (tool.name,)
