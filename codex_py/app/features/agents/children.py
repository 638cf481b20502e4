"""The subagents of one thread: opens a session for each, and reports to the thread."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

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
"""The states in which a subagent is not idle."""
_Answer: TypeAlias = tuple[Mapping[str, Any], Mapping[str, AgentState]]
"""The output of a call, and the states that are shown with it, as `Agents.answer` returns them."""


class Children:
    """Implements `Agents` for a thread.

    Args:
        registry: all subagents of the session at the top.
        roles: called when a child is opened; returns the roles of the session.
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
    ) -> _Answer:
        """See `Agents.answer`."""
        match params:
            case WaitParams(timeout_ms=timeout_ms):
                states = await self._wait(ids, timeout_ms / 1000)
                status = {each: data_of(state) for each, state in states.items()}
                return {"status": status, "timed_out": not status}, states
            case SpawnParams():
                assert prompt is not None
                return await self._spawn(params, prompt)
            case ResumeParams():
                agent_id = ids[0]
                # If two calls resume the same agent at once, the second one finds it open.
                async with self._registry.resuming:
                    child = self._child(agent_id) or await self._resume(agent_id)
                return {"status": data_of(child.state)}, {agent_id: child.state}
            case SendParams(interrupt=interrupt):
                assert prompt is not None
                child = self._existing(ids[0])
                state = child.state
                child.send(prompt, interrupt=interrupt)
                return {"submission_id": new_thread_id()}, {child.id: state}
            case _:
                return await self._end(self._existing(ids[0]))

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
        """Close the children of this thread, which close their own."""
        await self._close(
            [child for child in self._registry.open if child.parent is self._thread]
        )

    async def _spawn(self, params: SpawnParams, prompt: UserPrompt) -> _Answer:
        """Open a new child and send it the message."""
        history: list[EncodedItem] = []
        if params.fork_context:
            history = [item for item in self._thread.items if _is_forked(item)]
        child = await self._open(params, history=history)
        state = child.state
        child.send(prompt)
        output = {"agent_id": child.id, "nickname": child.nickname}
        return output, {child.id: state}

    async def _end(self, child: ChildAgent) -> _Answer:
        """Close a child, and say where its changes are if it has its own worktree."""
        state = child.state
        await self._close([child])
        output = {"previous_status": data_of(state)}
        remark = await child.tree_remark()
        if remark:
            output["worktree"] = remark.strip()
        return output, {child.id: state}

    async def _wait(
        self, ids: Sequence[str], timeout_s: float
    ) -> Mapping[str, AgentState]:
        """Wait until at least one of these agents is idle.

        Returns the idle ones; after the time-out, an empty mapping.
        """
        limited_s = min(max(timeout_s, _MIN_WAIT_S), _MAX_WAIT_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(limited_s):
                while True:
                    changed = self._registry.changed
                    idle = self._idle_states(ids)
                    if idle:
                        return idle
                    await changed.wait()
        return {}

    def _idle_states(self, ids: Sequence[str]) -> Mapping[str, AgentState]:
        states = {agent_id: self._state(agent_id) for agent_id in ids}
        return {
            agent_id: state
            for agent_id, state in states.items()
            if state.status not in _BUSY
        }

    def _state(self, agent_id: str) -> AgentState:
        child = self._child(agent_id)
        if child is None:
            return NOT_FOUND
        return child.state

    def _lineage(self, thread_id: str) -> Iterator[str]:
        """Yield the ids of the thread and of all threads above it."""
        yield thread_id
        for child in self._registry.open:
            if child.id == thread_id:
                yield from self._lineage(child.parent.thread_id)

    def _below(self) -> Iterator[ChildAgent]:
        """Yield the open children that this thread or a thread below it has started.

        Others are out of reach: they may have more rights.
        """
        for child in self._registry.open:
            if self.thread_id in self._lineage(child.parent.thread_id):
                yield child

    def _child(self, agent_id: str) -> ChildAgent | None:
        for child in self._below():
            if child.id == agent_id:
                return child
        return None

    def _existing(self, agent_id: str) -> ChildAgent:
        """Return an open child. Raises `CallRefused` if there is none with this id."""
        child = self._child(agent_id)
        if child is None:
            raise _not_found(agent_id)
        return child

    async def _resume(self, agent_id: str) -> ChildAgent:
        """Open a closed child again, with the role and the nickname that it had.

        Raises `CallRefused` if it is no child of this session.
        """
        try:
            path = find_session(self._setup.config.home, agent_id)
            meta = None if path is None else read_meta(path)
        except SessionError:
            meta = None
        if meta is None or self.thread_id not in {meta.parent_id, meta.root_id}:
            raise _not_found(agent_id)
        subagent = object_field(as_object(meta.source), "subagent")
        spawned = object_field(subagent, "thread_spawn")
        params = SpawnParams(agent_type=text_field(spawned, "agent_role") or None)
        nickname = text_field(spawned, "agent_nickname")
        return await self._open(params, nickname, resume=agent_id)

    async def _open(
        self,
        params: SpawnParams,
        nickname: str = "",
        resume: str | None = None,
        history: Sequence[EncodedItem] = (),
    ) -> ChildAgent:
        """Open the session of a child and add it to the registry.

        Args:
            nickname: the child's nickname; chosen if empty.
            resume: the id of the thread to continue; None for a new one.
            history: the items that a new child starts with.

        Raises:
            CallRefused: the role is unknown, too many children are open, or the session cannot be
                opened.
        """
        thread = self._thread
        registry = self._registry
        agent_type = params.agent_type or ""
        role = self._roles().found.get(agent_type or "default")
        if role is None:
            raise CallRefused(f"unknown agent_type '{agent_type}'")
        own = thread.settings.choices
        config, choices = child_settings(self._setup, own, role, params)
        if len(registry.open) >= registry.limit:
            raise CallRefused("collab spawn failed: agent thread limit reached")
        nickname = nickname or self._nickname(role.nicknames)
        new = NewChild(
            nickname,
            role=agent_type or None,
            choices=choices,
            history=history,
            features=[RoleLimits(role)],
        )
        child = ChildAgent(thread, nickname, agent_type, self._on_change)
        registry.open.append(child)
        try:
            opening = self._opened(child, new, role, config, resume)
            await child.open(opening)
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
        """Open the session of a child, in its own worktree if its role is isolated."""
        setup = self._setup
        choices = new.choices
        assert setup.open_child is not None
        assert choices is not None
        async with AsyncExitStack() as stack:
            # In Plan mode nothing is changed, and a worktree would be a change of the repository.
            if role.isolation is not None and choices.mode != "plan":
                make = partial(new_worktree, config.cwd, config.home, setup.environment)
                opening_tree = open_worktree(make, self._thread.warn)
                child.tree = await stack.enter_async_context(opening_tree)
                # The child cannot write to the tree that its worktree was made from.
                policy = child.tree.confined(choices.sandbox_policy, setup.environment)
                choices = replace(choices, sandbox_policy=policy)
                new = replace(new, choices=choices, has_own_files=True)
                config = child.tree.config(config, setup.environment)
            opening = setup.open_child(child.parent, new, config, resume)
            yield await stack.enter_async_context(opening)

    async def _close(self, children: Sequence[ChildAgent]) -> None:
        """Close the sessions of these children. Each session closes its own children.

        All are closed before the exception of the first one that failed is raised.
        """
        for child in children:
            self._registry.open.remove(child)
        closing = (child.close() for child in children)
        results = await asyncio.gather(*closing, return_exceptions=True)
        self._registry.tell()
        errors = [result for result in results if result is not None]
        if errors:
            raise errors[0]

    def _nickname(self, candidates: Sequence[str]) -> str:
        """Choose a nickname that no other subagent of the session has had."""
        names = candidates or _NICKNAMES
        taken = set(self._registry.names.values())
        taken.update(child.nickname for child in self._registry.open)
        return next(name for name in _with_numbers(names) if name not in taken)

    def _on_change(self, child: ChildAgent) -> None:
        """Wake the waiting calls. Keep a note for the thread if the child's task has ended."""
        if child.state.status in {"completed", "errored"}:
            self._news.append(_ended_note(child))
        self._registry.tell()


def _with_numbers(names: Sequence[str]) -> Iterator[str]:
    """Yield the names, then all of them with 2 behind, then with 3, and so on."""
    yield from names
    for number in count(2):
        for name in names:
            yield f"{name} {number}"


def _is_forked(item: EncodedItem) -> bool:
    """True for prompts and summaries, which a child with `fork_context` gets."""
    return is_summary(item) or user_prompt(item) is not None


def _ended_note(child: ChildAgent) -> Note:
    news = {"agent_path": child.id, "status": data_of(child.state)}
    # An answer must not close the tag, or its rest would read as the user's words. In JSON, both
    # spellings mean the same.
    text = encode_json(news).decode().replace("</subagent", r"<\/subagent")
    tagged = f"<subagent_notification>\n{text}\n</subagent_notification>"
    return Note(tagged, "user")


def _not_found(agent_id: str) -> CallRefused:
    return CallRefused(f"agent with id {agent_id} not found")
