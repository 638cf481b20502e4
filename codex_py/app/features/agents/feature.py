"""Subagents: the tools that start children of a session and talk to them. LIGHT.

The first call loads the modules that open and run the children.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, Final

from codex_py.app.features.agents.agent_registry import AgentRegistry, taking_turns
from codex_py.app.options import SessionSetup
from codex_py.config.definition_folders import role_folders
from codex_py.protocol.dispatch import Tool
from codex_py.protocol.extension import Extension, OfferedTool, Thread, TurnStart
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import AGENT_TOOLS, AGENTS_NAMESPACE, FunctionSpec
from codex_py.tools.offered import own_spec

_MAX_THREADS: Final = 6
"""The number of subagents that may work at once."""
_MAX_DEPTH: Final = 1
"""The default depth: only the session at the top may start subagents."""
_MAX_LISTED_CHARS: Final = 40_000
"""The limit for the roles in every request: some 10,000 tokens."""


class SubAgents:
    """The subagents of a session, and the subagents of those.

    A frontend finds them in `AgentRegistry.open`.

    A child has its own `SubAgents`, with the same `registry`.
    """

    def __init__(
        self, setup: SessionSetup, registry: AgentRegistry | None = None
    ) -> None:
        """`registry`: the one of the parent; None for the session at the top."""
        self.setup = setup
        self._settings = setup.config.settings.agents
        self.registry = registry or AgentRegistry(
            self._settings.max_threads or _MAX_THREADS
        )
        self._children = None
        """The `Children` of the session; loaded with its tools."""
        self._at_end = AsyncExitStack()

    @cached_property
    def roles(self):
        """The `Roles` of the session."""
        from codex_py.config.roles import find_roles  # 2 ms

        roles = find_roles(self.setup.config, self.setup.environment)
        for warning in roles.warnings:
            self.setup.warn(warning)
        return roles

    def for_child(self, setup: SessionSetup) -> "SubAgents":
        return SubAgents(setup, self.registry)

    def __call__(self, thread: Thread) -> Extension:
        wrap_dispatch = partial(taking_turns, self.registry.turns)
        if thread.parent is None:
            depth = 0
        else:
            depth = thread.parent.depth
        max_depth = self._settings.max_depth
        if max_depth is None:
            max_depth = _MAX_DEPTH
        if depth >= max_depth:
            return Extension(wrap_dispatch=wrap_dispatch)

        def tool(name: str) -> Tool[Any]:
            return self._loaded(thread).tools[name]

        def find_tool(name: str) -> Tool[Any] | None:
            return self._loaded(thread).tools.get(name.removeprefix(AGENTS_NAMESPACE))

        return Extension(
            wrap_dispatch=wrap_dispatch,
            tools=[
                OfferedTool(spec.name, partial(tool, spec.name), spec)
                for spec in _specs(self)
            ],
            # Each tool is accepted with its namespace, too.
            find_tool=lambda: find_tool,
            before_request=self._news,
            around_turn=self._around_turn,
            around_session=lambda: self._at_end,
        )

    def _loaded(self, thread: Thread):
        if self._children is None:
            from codex_py.app.features.agents.children import (
                Children,
            )  # 9 ms behind the tools

            self._children = Children(
                self.setup, self.registry, lambda: self.roles, thread
            )
            self._at_end.push_async_callback(self._children.aclose)
        return self._children

    async def _news(self) -> Sequence[Note]:
        if self._children:
            return self._children.take_news()
        return ()

    @asynccontextmanager
    async def _around_turn(self, _: TurnStart) -> AsyncGenerator[None]:
        is_interrupted = True
        try:
            yield
            is_interrupted = False
        finally:
            await self.end_work(is_interrupted=is_interrupted)

    async def end_work(self, *, is_interrupted: bool = False) -> None:
        """Stop the subagents that are still at work, unless they may outlive the turn."""
        if self._children:
            await self._children.end_turn(is_interrupted=is_interrupted)


def _specs(agents: SubAgents) -> Iterator[FunctionSpec]:
    """The tools, sorted by name as Codex sends them."""
    config = agents.setup.config
    environment = agents.setup.environment
    # The folders may have roles. To find out, the files need not be read.
    has_roles = bool(config.settings.agents.roles) or any(
        folder.path.is_dir() for folder in role_folders(config, environment)
    )
    for name in sorted(AGENT_TOOLS):
        spec = own_spec(name, without=None if has_roles else "agent_type")
        if name == "spawn_agent" and has_roles:
            spec = replace(spec, parameters=_with_roles(spec.parameters, agents))
        yield replace(spec, namespace=AGENTS_NAMESPACE)


def _with_roles(schema: Any, agents: SubAgents) -> Any:
    texts = [
        _role_text(role.name, role.description, role.model, role.reasoning_effort)
        for role in agents.roles.found.values()
    ]
    lengths = accumulate(map(len, texts))
    lines = [
        text for text, n in zip(texts, lengths, strict=True) if n <= _MAX_LISTED_CHARS
    ]
    left_out = len(texts) - len(lines)
    if left_out:
        agents.setup.warn(
            f"The model is not told of {left_out} agent roles: the list is too long."
        )
    kind = schema["properties"]["agent_type"]
    text = "\n".join([f"{kind['description']} Default: `default`.", *lines])
    properties = {**schema["properties"], "agent_type": {**kind, "description": text}}
    return {**schema, "properties": properties}


def _role_text(
    name: str, description: str, model: str | None, effort: str | None
) -> str:
    fixed = {"model": model, "reasoning effort": effort}
    told = [
        f"Its {what} is {value} and cannot be changed."
        for what, value in fixed.items()
        if value
    ]
    return f"{name}: {{\n{' '.join([description, *told])}\n}}"
