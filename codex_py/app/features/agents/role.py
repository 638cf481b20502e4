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
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.settings import Choices
from codex_py.protocol.stream import ModelStream
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
    defaults = config.settings.agents
    if params.model is not None:
        models = selectable_models(config, setup.environment)
        if params.model not in {*models, own.model}:
            raise CallRefused(
                f"Unknown model `{params.model}` for spawn_agent."
                f" Available models: {', '.join(models)}"
            )
    wanted = role.model or params.model or defaults.default_subagent_model or own.model
    provider, model = _named(config, role, wanted)
    is_known = model_info(model, config.settings.model_catalog_json).known
    if is_known and params.reasoning_effort not in {None, *_EFFORTS}:
        raise CallRefused(
            f"Reasoning effort `{params.reasoning_effort}` is not supported for model `{model}`."
            f" Supported reasoning efforts: {', '.join(_EFFORTS)}"
        )
    effort = (
        role.reasoning_effort
        or params.reasoning_effort
        or defaults.default_subagent_reasoning_effort
        or (own.reasoning_effort if model == own.model else None)
    )
    mode = role.sandbox_mode
    policy = own.sandbox_policy
    if mode is not None and _WIDENING.index(mode) < _WIDENING.index(policy.mode):
        narrowed = replace(config, sandbox_mode=mode).sandbox_policy()
        # Only the parent knows the denied paths in added folders.
        policy = replace(narrowed, files=policy.files)
    # These sizes belong to the parent's model.
    sizes = (
        "model_context_window",
        "model_max_output_tokens",
        "model_auto_compact_token_limit",
    )
    is_same = (model, provider) == (config.model, config.model_provider)
    of_child: Config = replace(
        config,
        model=model,
        model_provider=provider,
        model_reasoning_effort=effort,
        developer_instructions=role.instructions or config.developer_instructions,
    )
    if not is_same:
        of_child = replace(of_child, **dict.fromkeys(sizes))
    return of_child, replace(
        own, model=model, reasoning_effort=effort, sandbox_policy=policy
    )


def _named(
    config: Config,
    role: Role,
    model: str,
) -> tuple[str, str]:
    """The provider and the model that a name means.

    The role of a project does not decide where requests go.
    """
    root = config.project_root or config.cwd
    source = role.source if role.model == model else None
    if (
        source is None
        or source.is_relative_to(config.home)
        or not source.is_relative_to(root)
    ):
        return provider_and_model(config, model)
    return config.model_provider, model


class RoleLimits:
    """Limits a subagent, and the agents that it starts, to the tools of its role.

    Other tools are not offered, and calls of them are refused. The feature is inside of all
    features that offer tools.
    """

    def __init__(self, role: Role) -> None:
        self._role = role
        tools = role.tools or frozenset()
        # Models spell names differently, so names are compared in folded form.
        self._spelt = {folded(name) for name in tools}
        if any(name.startswith(MCP_PREFIX) or name in AGENT_TOOLS for name in tools):
            tools |= {TOOL_SEARCH}
        self._tools = tools

    def __call__(self, _: Thread) -> Extension:
        if self._role.tools is None:
            return Extension()
        return Extension(wrap_model=self._wrap_model, wrap_dispatch=self._wrap_dispatch)

    def _wrap_model(self, inner: ModelStream) -> ModelStream:
        """Offer the tools that the role of this agent allows."""

        return lambda prompt: inner(
            replace(prompt, tools=tuple(filter(self._is_offered, prompt.tools)))
        )

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Refuse calls of tools that the role of this agent does not allow."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            if self._tools.isdisjoint(_names(use)):
                text = f"the role {self._role.name!r} of this agent does not allow `{use.call.tool_name}`"
                raise ToolError(text, code="ToolNotAllowed")
            if self._role.reads_only and use.tool.name in COMMAND_TOOLS:
                context = replace(
                    use.context, sandbox_policy=use.context.sandbox_policy.locked()
                )
                use = replace(use, context=context)
            return await inner(use)

        return dispatch

    def _is_offered(self, spec: ToolSpec) -> bool:
        if not spec.name.startswith(MCP_PREFIX):
            return spec.name in self._tools
        spelt = folded(spec.name)
        return any(
            spelt == each or spelt.startswith(f"{each}__") for each in self._spelt
        )


def _names(use: ToolUse) -> Iterable[str]:
    """The names by which a role can allow the call."""
    tool = use.tool
    if isinstance(tool, McpTool):
        # A server chooses the names of its tools: one may be called `exec_command`.
        return f"{MCP_PREFIX}{tool.server}", f"{MCP_PREFIX}{tool.server}__{tool.name}"
    return (tool.name,)
