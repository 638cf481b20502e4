"""The subagents of one thread: how a child session follows from a call, and what the thread is told of it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from codex_py.app.features.agents.child import Child, NamedApprover
from codex_py.app.features.agents.family import Family
from codex_py.app.features.agents.isolation import opened_apart
from codex_py.app.features.agents.limits import RoleLimits
from codex_py.app.options import SessionSetup
from codex_py.app.settings import selectable_models
from codex_py.config.config import Config
from codex_py.config.model_name import split_model
from codex_py.config.role_files import Role
from codex_py.config.roles import Roles
from codex_py.errors import CodexError, SessionError
from codex_py.model.catalog import model_info
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.events import AgentState
from codex_py.protocol.extension import ParentThread, Thread
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.json_fields import as_object, object_field, text_field
from codex_py.protocol.messages import encode_json
from codex_py.protocol.prompts import Note, UserPrompt, is_summary, user_prompt
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS
from codex_py.protocol.settings import Choices
from codex_py.rollout.index import find_session
from codex_py.rollout.records import read_meta
from codex_py.tools.agents.params import Refused, SpawnParams
from codex_py.tools.agents.tools import NOT_FOUND, data_of

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max", "ultra")
_WIDENING: Final = ("read-only", "workspace-write", "danger-full-access")


class Children:
    """What the tools ask, see `tools.agents.tools.Agents`."""

    def __init__(
        self, setup: SessionSetup, family: Family, roles: Callable[[], Roles], thread: Thread
    ) -> None:
        self._setup = setup
        self._family = family
        self._roles = roles
        self._thread = thread
        self._news: list[Note] = []
        self.thread_id = thread.thread_id
        self.names = family.names

    def state(self, agent_id: str) -> AgentState:
        return NOT_FOUND if (child := self._child(agent_id)) is None else child.state

    async def wait(self, ids: Sequence[str], timeout_s: float) -> Mapping[str, AgentState]:
        return await self._family.wait(lambda: {each: self.state(each) for each in ids}, timeout_s)

    async def spawn(self, prompt: UserPrompt, params: SpawnParams) -> str:
        role = self._role(params.agent_type)
        provider, choices = self._choices(role, params)
        items = self._thread.items if params.fork_context else ()
        history = tuple(item for item in items if is_summary(item) or user_prompt(item) is not None)
        nickname = self._family.nickname(role.nicknames)
        child = await self._open(
            role, params.agent_type, nickname, provider, choices, history=history
        )
        child.send(prompt)
        return child.id

    async def send(self, agent_id: str, prompt: UserPrompt, *, interrupt: bool) -> str:
        child = self._child(agent_id)
        assert child is not None
        child.send(prompt, interrupt=interrupt)
        return new_thread_id()

    async def close(self, agent_id: str) -> None:
        await self._family.close([agent_id])

    async def resume(self, agent_id: str) -> None:
        if self._child(agent_id) is not None:
            return
        spawned = self._spawned(agent_id)
        agent_type = text_field(spawned, "agent_role") or None
        role = self._role(agent_type)
        nickname = text_field(spawned, "agent_nickname") or self._family.nickname(())
        provider, choices = self._choices(role, SpawnParams())
        await self._open(role, agent_type, nickname, provider, choices, resume=agent_id)

    def take_news(self) -> Sequence[Note]:
        """The ends of tasks that the thread has not been told of."""
        news, self._news = self._news, []
        return news

    async def end_turn(self, *, is_interrupted: bool) -> None:
        """Children at work are stopped with a turn that is interrupted. They end with one that is not, as commands do."""
        busy = [child for child in self._own() if child.is_busy]
        if not busy or not (is_interrupted or not self._setup.options.keep_commands):
            return
        if not is_interrupted:
            names = ", ".join(child.nickname for child in busy)
            self._thread.warn(
                f"Subagents were still at work when the turn ended, and were stopped: {names}."
            )
        await asyncio.gather(*(child.interrupt() for child in busy))

    async def aclose(self) -> None:
        await self._family.close([child.id for child in self._own()])

    def _child(self, agent_id: str) -> Child | None:
        """An open subagent, unless this thread works for it: neither can wait for the other."""
        above = self.thread_id
        while (one_above := self._family.get(above)) is not None:
            if above == agent_id:
                return None
            above = one_above.parent.thread_id
        return self._family.get(agent_id)

    def _own(self) -> list[Child]:
        return [child for child in self._family if child.parent is self._thread]

    def _role(self, agent_type: str | None) -> Role:
        role = self._roles().found.get(agent_type or "default")
        if role is None:
            raise Refused(f"unknown agent_type '{agent_type}'")
        return role

    def _choices(self, role: Role, params: SpawnParams) -> tuple[str, Choices]:
        """The provider and the settings of a child: those of the parent as they are now, or fewer rights."""
        own = self._thread.settings.choices
        config = self._setup.config
        defaults: Mapping[str, Any] = config.values.get("agents", {})
        if params.model is not None:
            models = selectable_models(config, self._setup.environment)
            if params.model not in {*models, own.model}:
                raise Refused(
                    f"Unknown model `{params.model}` for spawn_agent."
                    f" Available models: {', '.join(models)}"
                )
        wanted = role.model or params.model or defaults.get("default_subagent_model") or own.model
        provider, model = _named(config, role, wanted)
        known = model_info(model, config.model_catalog_json).known
        if (
            params.reasoning_effort is not None
            and known
            and params.reasoning_effort not in _EFFORTS
        ):
            raise Refused(
                f"Reasoning effort `{params.reasoning_effort}` is not supported for model `{model}`."
                f" Supported reasoning efforts: {', '.join(_EFFORTS)}"
            )
        effort = (
            role.reasoning_effort
            or params.reasoning_effort
            or defaults.get("default_subagent_reasoning_effort")
            or (own.reasoning_effort if model == own.model else None)
        )
        policy = _narrowed(own.sandbox_policy, role, config)
        return provider, replace(own, model=model, reasoning_effort=effort, sandbox_policy=policy)

    async def _open(
        self,
        role: Role,
        agent_type: str | None,
        nickname: str,
        provider: str,
        choices: Choices,
        **how: Any,
    ) -> Child:
        setup, thread = self._setup, self._thread
        above = thread.parent
        parent = ParentThread(
            thread_id=thread.thread_id,
            root_id=thread.thread_id if above is None else above.root_id,
            depth=1 if above is None else above.depth + 1,
            nickname=nickname,
            role=agent_type,
            session_file=thread.session_file,
        )
        options = replace(
            setup.options,
            parent=parent,
            choices=choices,
            resume_last=False,
            fork=False,
            text_deltas=False,
            **{"resume": None, "history": (), **how},
        )
        child = Child(thread, nickname, agent_type or "")
        child.on_end = lambda: self._news.append(_notification(child))
        approver = setup.approver and NamedApprover(setup.approver, nickname)
        assert setup.open_child is not None
        config = _config(setup.config, role, choices, provider)
        open_child = partial(
            setup.open_child,
            sink=child.sink,
            approver=approver,
            features=[RoleLimits(role, thread.feature(RoleLimits))],
        )
        opening = open_child(config, options)
        # In Plan mode nothing is changed, and a worktree would be a change of the repository.
        if role.isolation is not None and choices.mode != "plan":
            opening = opened_apart(child, open_child, config, options, setup.environment)
        try:
            await self._family.add(child, opening)
        except CodexError as error:
            raise Refused(f"collab spawn failed: {error}") from error
        return child

    def _spawned(self, agent_id: str) -> Mapping[str, Any]:
        """What the session file of a closed child says of it. A child of another session is not found."""
        try:
            path = find_session(self._setup.config.home, agent_id)
            meta = None if path is None else read_meta(path)
        except SessionError:
            meta = None
        if meta is None or self._thread.thread_id not in {meta.parent_id, meta.root_id}:
            raise Refused(f"agent with id {agent_id} not found")
        return object_field(object_field(as_object(meta.source), "subagent"), "thread_spawn")


def _config(config: Config, role: Role, choices: Choices, provider: str) -> Config:
    own = config.model, config.model_provider
    config = replace(
        config,
        model=choices.model,
        model_provider=provider,
        model_reasoning_effort=choices.reasoning_effort,
        developer_instructions=role.instructions or config.developer_instructions,
    )
    if (choices.model, provider) == own:
        return config
    # These are about the parent's model.
    return replace(
        config,
        model_context_window=None,
        model_max_output_tokens=None,
        model_auto_compact_token_limit=None,
    )


def _named(config: Config, role: Role, model: str) -> tuple[str, str]:
    """The provider and the model in a name. The role of a project does not decide where requests go."""
    root = config.project_root or config.cwd
    source = role.source if role.model == model else None
    if source is None or source.is_relative_to(config.home) or not source.is_relative_to(root):
        named = split_model(model, {*BUILT_IN_PROVIDERS, *config.model_providers})
    else:
        named = None
    return named or (config.model_provider, model)


def _narrowed(policy: SandboxPolicy, role: Role, config: Config) -> SandboxPolicy:
    """The sandbox that a role asks for, unless it is wider than that of the parent."""
    mode = role.sandbox_mode
    if mode is None or _WIDENING.index(mode) >= _WIDENING.index(policy.mode):
        return policy
    return replace(config, sandbox_mode=mode).sandbox_policy()


def _notification(child: Child) -> Note:
    news = {"agent_path": child.id, "status": data_of(child.state)}
    text = encode_json(news).decode()
    return Note(f"<subagent_notification>\n{text}\n</subagent_notification>", "user")
