"""The subagents of one thread: makes child sessions of calls, and reports to the thread."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import Any, Final

from codex_py.app.features.agents.agent_registry import AgentRegistry
from codex_py.app.features.agents.child import ChildAgent
from codex_py.app.features.agents.role import RoleLimits, child_settings
from codex_py.app.options import SessionSetup
from codex_py.app.worktrees.worktree import new_worktree, open_worktree
from codex_py.config.config import Config
from codex_py.config.role_files import Role
from codex_py.config.roles import Roles
from codex_py.core.session import Session
from codex_py.errors import CodexError, SessionError
from codex_py.protocol.event_items import AgentState
from codex_py.protocol.extension import NewChild, Thread
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.json_fields import as_object, object_field, text_field
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.prompts import Note, UserPrompt, is_summary, user_prompt
from codex_py.protocol.tools import AGENT_TOOLS
from codex_py.rollout.index import find_session
from codex_py.rollout.records import read_meta
from codex_py.tools.agents import (
    NOT_FOUND,
    AgentTool,
    CallRefused,
    ResumeParams,
    SendParams,
    SpawnParams,
    WaitParams,
    data_of,
)

_NICKNAMES: Final = (
    "Ada",
    "Alan",
    "Barbara",
    "Dennis",
    "Edsger",
    "Emmy",
    "Euclid",
    "Euler",
    "Faraday",
    "Fourier",
    "Frances",
    "Gauss",
    "Grace",
    "Hedy",
    "Hilbert",
    "Hypatia",
    "Kepler",
    "Knuth",
    "Leibniz",
    "Margaret",
    "Maxwell",
    "Newton",
    "Pascal",
    "Radia",
    "Shannon",
    "Wirth",
)
_MIN_WAIT_S = 10.0
_MAX_WAIT_S = 3600.0
_BUSY: Final = {"pending_init", "running"}


class Children:
    """Implements `Agents` for a thread.

    Args:
        registry: all subagents of the session at the top.
    """

    def __init__(
        self,
        setup: SessionSetup,
        registry: AgentRegistry,
        roles: Callable[[], Roles],
        thread: Thread,
    ) -> None:
        self._setup = setup
        self._registry = registry
        self._roles = roles
        self._thread = thread
        self._news: list[Note] = []
        self.thread_id = thread.thread_id
        self.names: Mapping[str, str] = registry.names
        self.tools = {name: AgentTool(name, self) for name in AGENT_TOOLS}

    async def answer(
        self, params: Any, ids: Sequence[str], prompt: UserPrompt | None
    ) -> tuple[Mapping[str, Any], Mapping[str, AgentState]]:
        if isinstance(params, WaitParams):
            states = await self._wait(ids, params.timeout_ms / 1000)
            status = {agent_id: data_of(state) for agent_id, state in states.items()}
            return {"status": status, "timed_out": not status}, states
        if isinstance(params, SpawnParams):
            assert prompt is not None
            if params.fork_context:
                items = self._thread.items
            else:
                items = ()
            history = [
                each
                for each in items
                if is_summary(each) or user_prompt(each) is not None
            ]
            child = await self._open(params, history=history)
            state = child.state
            child.send(prompt)
            return {"agent_id": child.id, "nickname": child.nickname}, {child.id: state}
        agent_id = ids[0]
        if isinstance(params, ResumeParams):
            # If two calls resume the same agent at once, the second one finds it open.
            async with self._registry.resuming:
                child = self._child(agent_id) or await self._resume(agent_id)
            return {"status": data_of(child.state)}, {agent_id: child.state}
        child = self._child(agent_id)
        if child is None:
            raise _not_found(agent_id)
        state = child.state
        if isinstance(params, SendParams):
            assert prompt is not None
            child.send(prompt, interrupt=params.interrupt)
            return {"submission_id": new_thread_id()}, {agent_id: state}
        await self._close([child])
        answer = {"previous_status": data_of(state)}
        if child.tree is not None and (
            said := await asyncio.to_thread(child.tree.remark)
        ):
            answer["worktree"] = said.strip()
        return answer, {agent_id: state}

    def take_news(self) -> Sequence[Note]:
        """Return the notes about ended tasks that the thread has not been given yet."""
        news = self._news
        self._news = []
        return news

    async def end_turn(self, *, is_interrupted: bool) -> None:
        """Stop the children that are still at work when a turn ends.

        After an interrupted turn they are always stopped; after any other turn, unless commands
        keep running between turns.
        """
        if self._setup.options.keep_commands and not is_interrupted:
            return
        busy = [child for child in self._below() if child.is_busy]
        if busy and not is_interrupted:
            names = ", ".join(child.nickname for child in busy)
            self._thread.warn(
                f"Subagents were still at work when the turn ended, and were stopped: {names}."
            )
        await asyncio.gather(*(child.interrupt() for child in busy))

    async def aclose(self) -> None:
        await self._close(
            [child for child in self._registry.open if child.parent is self._thread]
        )

    async def _wait(
        self, ids: Sequence[str], timeout_s: float
    ) -> Mapping[str, AgentState]:
        """Wait until at least one of these agents is idle.

        Returns the idle ones; after the time-out, an empty mapping.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(min(max(timeout_s, _MIN_WAIT_S), _MAX_WAIT_S)):
                while True:
                    changed = self._registry.changed
                    states = ((each, self._state(each)) for each in ids)
                    idle = {
                        id_: state for id_, state in states if state.status not in _BUSY
                    }
                    if idle:
                        return idle
                    await changed.wait()
        return {}

    def _state(self, agent_id: str) -> AgentState:
        child = self._child(agent_id)
        if child is None:
            return NOT_FOUND
        return child.state

    def _lineage(self, thread_id: str) -> Iterator[str]:
        """The ids of the thread and of all threads above it."""
        yield thread_id
        for child in self._registry.open:
            if child.id == thread_id:
                yield from self._lineage(child.parent.thread_id)

    def _below(self) -> Iterator[ChildAgent]:
        """The children that this thread or a thread below it has started.

        Others are out of reach: they may have more rights.
        """
        for child in self._registry.open:
            if self.thread_id in self._lineage(child.parent.thread_id):
                yield child

    def _child(self, agent_id: str) -> ChildAgent | None:
        return next((child for child in self._below() if child.id == agent_id), None)

    async def _resume(self, agent_id: str) -> ChildAgent:
        """Open a closed child again. A child of another session is not found."""
        try:
            path = find_session(self._setup.config.home, agent_id)
            meta = None if path is None else read_meta(path)
        except SessionError:
            meta = None
        if meta is None or self.thread_id not in {meta.parent_id, meta.root_id}:
            raise _not_found(agent_id)
        spawned = object_field(
            object_field(as_object(meta.source), "subagent"), "thread_spawn"
        )
        params = SpawnParams(agent_type=text_field(spawned, "agent_role") or None)
        return await self._open(
            params, text_field(spawned, "agent_nickname"), resume=agent_id
        )

    async def _open(
        self,
        params: SpawnParams,
        nickname: str = "",
        resume: str | None = None,
        history: Sequence[EncodedItem] = (),
    ) -> ChildAgent:
        setup = self._setup
        thread = self._thread
        registry = self._registry
        role = self._roles().found.get(params.agent_type or "default")
        if role is None:
            raise CallRefused(f"unknown agent_type '{params.agent_type}'")
        config, choices = child_settings(setup, thread.settings.choices, role, params)
        if len(registry.open) >= registry.limit:
            raise CallRefused("collab spawn failed: agent thread limit reached")
        nickname = nickname or self._nickname(role.nicknames)
        new = NewChild(
            nickname,
            role=params.agent_type or None,
            choices=choices,
            history=history,
            features=[RoleLimits(role)],
        )
        child = ChildAgent(thread, nickname, params.agent_type or "", self._changed)
        registry.open.append(child)
        try:
            await child.open(self._opened(child, new, role, config, resume))
        except BaseException as error:
            registry.open.remove(child)
            if isinstance(error, CodexError):
                raise CallRefused(f"collab spawn failed: {error}") from error
            raise
        registry.names[child.id] = nickname
        return child

    @asynccontextmanager
    async def _opened(
        self,
        child: ChildAgent,
        new: NewChild,
        role: Role,
        config: Config,
        resume: str | None,
    ) -> AsyncGenerator[Session]:
        setup = self._setup
        choices = new.choices
        assert setup.open_child is not None
        assert choices is not None
        async with AsyncExitStack() as stack:
            # In Plan mode nothing is changed, and a worktree would be a change of the repository.
            if role.isolation is not None and choices.mode != "plan":
                make = partial(new_worktree, config.cwd, config.home, setup.environment)
                child.tree = await stack.enter_async_context(
                    open_worktree(make, self._thread.warn)
                )
                # The child cannot write to the tree that its worktree was made from.
                policy = child.tree.confined(choices.sandbox_policy, setup.environment)
                choices = replace(choices, sandbox_policy=policy)
                new = replace(new, choices=choices, has_own_files=True)
                config = child.tree.config(config, setup.environment)
            opening = setup.open_child(child.parent, new, config, resume)
            yield await stack.enter_async_context(opening)

    async def _close(self, children: Iterable[ChildAgent]) -> None:
        """Close the sessions of these children. Each session closes its own children."""
        for child in children:
            self._registry.open.remove(child)
        ended = await asyncio.gather(
            *(c.close() for c in children), return_exceptions=True
        )
        self._registry.tell()
        for error in filter(None, ended):
            raise error

    def _nickname(self, candidates: Sequence[str]) -> str:
        """Choose a nickname that no other subagent of the session has had."""
        names = candidates or _NICKNAMES
        numbered = (f"{name} {n}" for n in count(2) for name in names)
        taken = {
            *self._registry.names.values(),
            *(child.nickname for child in self._registry.open),
        }
        return next(name for name in chain(names, numbered) if name not in taken)

    def _changed(self, child: ChildAgent) -> None:
        if child.state.status in {"completed", "errored"}:
            news = {"agent_path": child.id, "status": data_of(child.state)}
            # An answer must not close the tag, or its rest would read as the user's words. In JSON,
            # both spellings mean the same.
            text = encode_json(news).decode().replace("</subagent", r"<\/subagent")
            tagged = f"<subagent_notification>\n{text}\n</subagent_notification>"
            self._news.append(Note(tagged, "user"))
        self._registry.tell()


def _not_found(agent_id: str) -> CallRefused:
    return CallRefused(f"agent with id {agent_id} not found")
