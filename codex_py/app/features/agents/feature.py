"""Subagents: the tools that start children of a session and talk to them. LIGHT.

What opens and runs the children is loaded by the first call.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.config.config import Config
from codex_py.config.definition_folders import role_folders
from codex_py.protocol.dispatch import Dispatch, Tool
from codex_py.protocol.extension import Extension, OfferedTool, Thread, TurnStart
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import FunctionSpec
from codex_py.tools.offered import AGENT_TOOLS, AGENTS_NAMESPACE, own_spec

_MAX_DEPTH, _MAX_THREADS = 1, 6


class SubAgents:
    """The subagents of a session, and of those the subagents. A frontend asks it for them.

    A child has one of its own, with the same `family`.
    """

    def __init__(self, setup: SessionSetup, family: Any = None) -> None:
        """`family`: the `Family` of the parent; None for the session at the top."""
        self.setup = setup
        self._of_parent = family
        self._children: Any = None
        """The `Children` of the session: loaded with its tools."""

    @cached_property
    def family(self) -> Any:
        """All open subagents: a `Family`."""
        limit: int = _setting(self.setup.config, "max_threads", _MAX_THREADS)
        return self._of_parent or load("codex_py.app.features.agents.family:Family")(limit)

    @property
    def has_begun(self) -> bool:
        """True if there may be subagents."""
        return "family" in self.__dict__

    @cached_property
    def roles(self) -> Any:
        """The `Roles` of the session."""
        roles = load("codex_py.config.roles:find_roles")(self.setup.config, self.setup.environment)
        for warning in roles.warnings:
            self.setup.warn(warning)
        return roles

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        # Called when the tools are loaded.
        wrap = load("codex_py.app.features.agents.file_turns:taking_turns")
        return wrap(self.family.turns, inner)

    def for_child(self, setup: SessionSetup) -> "SubAgents":
        return SubAgents(setup, self.family)

    def __call__(self, thread: Thread) -> Extension:
        depth = 0 if thread.parent is None else thread.parent.depth
        if depth >= _setting(self.setup.config, "max_depth", _MAX_DEPTH):
            return Extension(wrap_dispatch=self._wrap_dispatch)

        @cache
        def tools() -> Mapping[str, Tool[Any]]:
            children = load("codex_py.app.features.agents.children:Children")
            self._children = children(self.setup, self.family, lambda: self.roles, thread)
            made = load("codex_py.tools.agents.tools:AGENT_TOOLS")
            return {tool.name: tool(self._children) for tool in made}

        return Extension(
            wrap_dispatch=self._wrap_dispatch,
            tools=[
                OfferedTool(spec.name, lambda name=spec.name: tools()[name], spec)
                for spec in _specs(self)
            ],
            # Each is accepted with its namespace, too.
            find_tool=lambda: lambda name: tools().get(name.removeprefix(AGENTS_NAMESPACE)),
            before_request=self._news,
            around_turn=self._around_turn,
            around_session=self._around_session,
        )

    async def _news(self) -> Sequence[Note]:
        return self._children.take_news() if self._children else ()

    @asynccontextmanager
    async def _around_turn(self, _: TurnStart) -> AsyncGenerator[None]:
        is_interrupted = True
        try:
            yield
            is_interrupted = False
        finally:
            if self._children:
                await self._children.end_turn(is_interrupted=is_interrupted)

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._children:
                await self._children.aclose()


def _specs(agents: SubAgents) -> Iterator[FunctionSpec]:
    """The tools, sorted by name as Codex sends them."""
    has_roles = _has_roles(agents.setup)
    for name in sorted(AGENT_TOOLS):
        spec = own_spec(name, without=None if has_roles else "agent_type")
        if name == "spawn_agent" and has_roles:
            spec = replace(spec, parameters=_with_roles(spec.parameters, agents.roles))
        yield replace(spec, namespace=AGENTS_NAMESPACE)


def _with_roles(schema: Any, roles: Any) -> Any:
    lines = [_role_text(role) for role in roles.found.values()]
    kind = schema["properties"]["agent_type"]
    text = "\n".join([f"{kind['description']} Default: `default`.", *lines])
    properties = {**schema["properties"], "agent_type": {**kind, "description": text}}
    return {**schema, "properties": properties}


def _role_text(role: Any) -> str:
    fixed = {"model": role.model, "reasoning effort": role.reasoning_effort}
    told = [
        f"Its {name} is {value} and cannot be changed." for name, value in fixed.items() if value
    ]
    return f"{role.name}: {{\n{' '.join([role.description, *told])}\n}}"


def _has_roles(setup: SessionSetup) -> bool:
    """True if the configuration may have roles; they are not read for that."""
    config = setup.config
    tables = config.values.get("agents", {}).values()
    if any(isinstance(each, dict) for each in tables):
        return True
    return any(each.path.is_dir() for each in role_folders(config, setup.environment))


def _setting(config: Config, name: str, default: int) -> int:
    value = config.values.get("agents", {}).get(name)
    return default if value is None else value
