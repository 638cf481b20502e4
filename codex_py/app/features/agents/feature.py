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
    """The feature behind the tools for subagents.

    A child has its own `SubAgents`, with the same `registry`. A frontend finds all subagents of a
    session in `registry.open`.

    Args:
        registry: the registry of the parent; None for the session at the top.
    """

    def __init__(
        self, setup: SessionSetup, registry: AgentRegistry | None = None
    ) -> None:
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
        """Offer the tools for subagents, unless the thread is too deep to start any."""
        wrap_dispatch = partial(taking_turns, self.registry.turns)
        depth = 0 if thread.parent is None else thread.parent.depth
        max_depth = self._settings.max_depth
        if max_depth is None:
            max_depth = _MAX_DEPTH
        if depth >= max_depth:
            return Extension(wrap_dispatch=wrap_dispatch)

        def tool(name: str) -> Tool[Any]:
            return self._loaded_children(thread).tools[name]

        def find_tool(name: str) -> Tool[Any] | None:
            # Each tool is accepted with its namespace, too.
            plain_name = name.removeprefix(AGENTS_NAMESPACE)
            return self._loaded_children(thread).tools.get(plain_name)

        return Extension(
            wrap_dispatch=wrap_dispatch,
            tools=[
                OfferedTool(spec.name, partial(tool, spec.name), spec)
                for spec in _specs(self)
            ],
            find_tool=lambda: find_tool,
            before_request=self._take_news,
            around_turn=self._around_turn,
            around_session=lambda: self._at_end,
        )

    def _loaded_children(self, thread: Thread):
        """Return the `Children` of the session, which the first call makes."""
        if self._children is None:
            from codex_py.app.features.agents.children import (
                Children,
            )  # 9 ms behind the tools

            def roles():
                return self.roles

            self._children = Children(self.setup, self.registry, roles, thread)
            self._at_end.push_async_callback(self._children.aclose)
        return self._children

    async def _take_news(self) -> Sequence[Note]:
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
    """Yield the tools, sorted by name as Codex sends them."""
    has_roles = _may_have_roles(agents.setup)
    left_out = None if has_roles else "agent_type"
    for name in sorted(AGENT_TOOLS):
        spec = own_spec(name, without=left_out)
        if name == "spawn_agent" and has_roles:
            spec = replace(spec, parameters=_with_roles(spec.parameters, agents))
        yield replace(spec, namespace=AGENTS_NAMESPACE)


def _may_have_roles(setup: SessionSetup) -> bool:
    """True if roles are configured, or a folder for their files exists. No file is read."""
    config = setup.config
    if config.settings.agents.roles:
        return True
    folders = role_folders(config, setup.environment)
    return any(folder.path.is_dir() for folder in folders)


def _with_roles(schema: Any, agents: SubAgents) -> Any:
    """Return the schema of `spawn_agent` with the roles listed at `agent_type`.

    The list ends at `_MAX_LISTED_CHARS`, and the user is told how many roles are left out.
    """
    texts = [
        _role_text(role.name, role.description, role.model, role.reasoning_effort)
        for role in agents.roles.found.values()
    ]
    lengths = accumulate(map(len, texts))
    listed = [
        text
        for text, length in zip(texts, lengths, strict=True)
        if length <= _MAX_LISTED_CHARS
    ]
    left_out = len(texts) - len(listed)
    if left_out:
        agents.setup.warn(
            f"The model is not told of {left_out} agent roles: the list is too long."
        )
    agent_type = schema["properties"]["agent_type"]
    heading = f"{agent_type['description']} Default: `default`."
    description = "\n".join([heading, *listed])
    agent_type = {**agent_type, "description": description}
    properties = {**schema["properties"], "agent_type": agent_type}
    return {**schema, "properties": properties}


def _role_text(
    name: str,
    description: str,
    model: str | None,
    effort: str | None,
) -> str:
    """Describe a role as Codex does: the description between braces, then what it fixes."""
    sentences = [description]
    if model:
        sentences.append(f"Its model is {model} and cannot be changed.")
    if effort:
        sentences.append(f"Its reasoning effort is {effort} and cannot be changed.")
    return f"{name}: {{\n{' '.join(sentences)}\n}}"
