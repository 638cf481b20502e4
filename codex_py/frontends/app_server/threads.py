"""Answers the methods about the threads of one server."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.app.features.goals import Goals
from codex_py.app.json_rpc import INVALID_REQUEST, OVERLOADED, JsonRpc, RpcError
from codex_py.app.options import SessionOptions
from codex_py.app.served_threads import ServedThreads
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import folder_config
from codex_py.command_line.serving import served_options
from codex_py.config.config import Config
from codex_py.config.paths import codex_home
from codex_py.frontends.app_server import history, params
from codex_py.frontends.app_server.inputs import Inputs
from codex_py.frontends.app_server.items import Fields, turn_data
from codex_py.frontends.app_server.thread import AppThread
from codex_py.protocol.approval import SandboxPolicy, approval_data
from codex_py.protocol.event_items import UserMessage
from codex_py.rollout import archive
from codex_py.rollout.details import read_details
from codex_py.rollout.index import rename_thread, thread_names
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS, read_meta

_MAX_OPEN: Final = 256
"""Number of threads that may be open at once, with turns that run or not."""
_SANDBOXES: Final = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}


class Threads:
    """Answers requests, each in a method.

    Every method raises an `RpcError` or a `CodexError` if its request is wrong, or fails.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        arguments: Arguments,
        environment: Mapping[str, str],
    ) -> None:
        self._rpc = rpc
        self._arguments = arguments
        self._environment = environment
        self._home = codex_home(environment)
        self._inputs = Inputs(self._home)
        self._threads = ServedThreads[AppThread]()
        self._options = replace(served_options(arguments), source="vscode")

    def name_client(self, name: str) -> None:
        """Set the client's name as the originator of all threads from now on."""
        name = self._environment.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or name
        self._options = replace(self._options, originator=name)

    async def start(self, asked: params.ThreadStart) -> Fields:
        options = replace(self._options, ephemeral=asked.ephemeral)
        thread = self._new(options, asked.cwd or ".", asked.table(), asked.texts)
        await thread.open()
        return await self._started(thread, with_turns=False)

    async def resume(self, asked: params.ThreadResume) -> Fields:
        """Open a stored thread, or change the settings of one that the server has."""
        thread_id = asked.thread_id
        with_turns = not asked.exclude_turns
        if self._threads.get(thread_id) is None:
            path = history.stored_file(self._home, thread_id)
            options = replace(self._options, resume=thread_id)
            thread = await self._opened_stored(options, path, asked)
            self._keep(thread, thread_id)
            return await self._answer(thread, with_turns=with_turns)
        async with self._open_thread(thread_id) as thread:
            if not thread.is_working:
                await thread.set(asked.cwd, asked.table())
        return await self._answer(thread, with_turns=with_turns)

    async def fork(self, asked: params.ThreadResume) -> Fields:
        path = history.stored_file(self._home, asked.thread_id)
        options = replace(
            self._options, resume=asked.thread_id, fork=True, ephemeral=asked.ephemeral
        )
        thread = await self._opened_stored(options, path, asked)
        return await self._started(thread, with_turns=not asked.exclude_turns)

    async def list(self, asked: params.ThreadList) -> Fields:
        return await asyncio.to_thread(
            history.list_threads, self._home, asked, self._status
        )

    async def read(self, asked: params.ThreadRead) -> Fields:
        thread = self._threads.get(asked.thread_id)
        if thread is not None and thread.is_open:
            data = await self._thread_data(thread, with_turns=asked.include_turns)
            return {"thread": data}
        path = history.stored_file(self._home, asked.thread_id)
        name = thread_names(self._home).get(read_meta(path).id)
        data = await asyncio.to_thread(history.thread_data, path, name)
        if asked.include_turns:
            data["turns"] = await asyncio.to_thread(history.read_turns, path)
        return {"thread": data}

    async def rename(self, asked: params.ThreadName) -> Fields:
        name = " ".join(asked.name.split())
        if not name:
            raise RpcError(INVALID_REQUEST, "thread name must not be empty")
        thread = self._threads.get(asked.thread_id)
        if thread is not None and thread.is_open:
            thread.session.rename(name)
        else:
            path = history.stored_file(self._home, asked.thread_id)
            rename_thread(self._home, read_meta(path).id, name)
        renamed = {"threadId": asked.thread_id, "threadName": name}
        self.later("thread/name/updated", renamed)
        return {}

    async def archive(self, asked: params.OneThread) -> Fields:
        thread = self._threads.get(asked.thread_id)
        async with AsyncExitStack() as stack:
            if thread is not None:
                # Other requests cannot open the thread again until it is archived.
                await stack.enter_async_context(thread.lock)
                await thread.close()
                self._threads.remove(thread)
            path = history.stored_file(self._home, asked.thread_id, SESSIONS)
            thread_id = read_meta(path).id
            await asyncio.to_thread(archive.archive, self._home, thread_id)
        self.later("thread/archived", {"threadId": asked.thread_id})
        return {}

    async def unarchive(self, asked: params.OneThread) -> Fields:
        path = history.stored_file(self._home, asked.thread_id, ARCHIVED_SESSIONS)
        thread_id = read_meta(path).id
        await asyncio.to_thread(archive.unarchive, self._home, thread_id)
        self.later("thread/unarchived", {"threadId": asked.thread_id})
        return await self.read(params.ThreadRead(thread_id=asked.thread_id))

    async def compact(self, asked: params.OneThread) -> Fields:
        async with self._open_thread(asked.thread_id) as thread:
            await thread.ended()
            await thread.start(thread.session.compact, None)
        return {}

    async def goal(self, asked: params.OneThread) -> Fields:
        async with self._open_thread(asked.thread_id) as thread:
            return {"goal": _goals(thread).data}

    async def set_goal(self, asked: params.GoalSet) -> Fields:
        """Set the goal of a thread. An active goal starts a turn if none runs."""
        async with self._open_thread(asked.thread_id) as thread:
            goals = _goals(thread)
            with thread.answering():
                try:
                    goals.set(asked.objective, asked.status, asked.token_budget)
                except ValueError as error:
                    raise RpcError(INVALID_REQUEST, str(error)) from None
                goal = goals.goal
                assert goal is not None
                if goal.status == "active" and thread.feed is None:
                    await thread.ended()
                    turn = partial(thread.session.run_turn, goal.objective)
                    shown = UserMessage(id="prompt", text=goal.objective)
                    await thread.start(turn, shown)
            return {"goal": goals.data}

    async def clear_goal(self, asked: params.OneThread) -> Fields:
        async with self._open_thread(asked.thread_id) as thread:
            with thread.answering():
                return {"cleared": _goals(thread).clear()}

    async def start_turn(self, asked: params.TurnStart) -> Fields:
        """Start a turn. As in Codex, the prompt joins a turn that runs, if that still takes it."""
        async with self._open_thread(asked.thread_id) as thread:
            text, images = self._inputs.read(asked.input, thread.config.cwd)
            table = asked.table()
            running = thread.feed
            if running is not None:
                if thread.changed_by(asked.cwd, table) is not None:
                    reason = (
                        "the settings of a thread cannot change while it runs a turn"
                    )
                    raise RpcError(INVALID_REQUEST, reason)
                if thread.session.steer(text, images=images):
                    return {"turn": turn_data(running.turn_id, "inProgress")}
            await thread.ended()
            await thread.set(asked.cwd, table)
            names = tuple(map(str, images))
            shown = UserMessage(id="prompt", text=text, images=names)
            turn = partial(
                thread.session.run_turn,
                text,
                images=images,
                output_schema=asked.output_schema,
            )
            return {"turn": await thread.start(turn, shown)}

    async def steer(self, asked: params.TurnSteer) -> Fields:
        thread = self._running(asked.thread_id, asked.expected_turn_id, "steer")
        text, images = self._inputs.read(asked.input, thread.config.cwd)
        if not thread.session.steer(text, images=images):
            raise RpcError(
                INVALID_REQUEST, "the turn takes no more input: it is about to end"
            )
        return {"turnId": asked.expected_turn_id}

    async def interrupt(self, asked: params.TurnInterrupt) -> Fields:
        thread = self._running(asked.thread_id, asked.turn_id, "interrupt")
        asyncio.get_running_loop().call_soon(thread.cancel)
        return {}

    async def aclose(self) -> None:
        """End every turn, and close every session."""
        await self._threads.aclose()
        self._inputs.close()

    def _new(
        self,
        options: SessionOptions,
        cwd: str,
        table: Mapping[str, Any],
        texts: Mapping[str, str],
    ) -> AppThread:
        if sum(thread.is_open for thread in self._threads) >= _MAX_OPEN:
            raise RpcError(
                OVERLOADED, f"more than {_MAX_OPEN} threads are open; use fewer at once"
            )
        return AppThread(
            self._rpc,
            self._environment,
            options,
            self._config,
            cwd,
            table,
            texts,
            self._threads.close_idle,
        )

    def _config(
        self,
        cwd: str,
        table: Mapping[str, Any],
        texts: Mapping[str, str],
    ) -> Config:
        """The configuration of a thread. `texts`: instructions by fields of a `Config`."""
        config = folder_config(self._arguments, self._environment, cwd, table)
        return replace(config, **texts)

    async def _opened_stored(
        self,
        options: SessionOptions,
        path: Path,
        asked: params.ThreadResume,
    ) -> AppThread:
        """Open a stored thread, with the model of its last turn unless the client names one."""
        table = asked.table()
        if "model" not in table and "model_provider" not in table:
            details = await asyncio.to_thread(read_details, path)
            model = details.settings["model"]
            if model:
                table["model"] = model
        cwd = asked.cwd or read_meta(path).cwd
        thread = self._new(options, cwd, table, asked.texts)
        await thread.open()
        return thread

    def _keep(self, thread: AppThread, *names: str) -> None:
        """Keep a thread that was opened, under its id and the names that the client has for it."""
        self._threads.use(thread, thread.thread_id, *names)
        self._threads.close_idle()

    async def _started(self, thread: AppThread, *, with_turns: bool) -> Fields:
        """Keep a new thread, tell the client of it, and return the answer to its request."""
        self._keep(thread)
        answer = await self._answer(thread, with_turns=with_turns)
        without_turns: Fields = {**answer["thread"], "turns": []}
        self.later("thread/started", {"thread": without_turns})
        return answer

    async def _answer(self, thread: AppThread, *, with_turns: bool) -> Fields:
        """Make the answer to a request that opens a thread. `with_turns`: the thread has its turns."""
        settings = thread.session.settings
        config = thread.config
        return {
            "thread": await self._thread_data(thread, with_turns=with_turns),
            "model": settings.model,
            "modelProvider": config.model_provider,
            "serviceTier": settings.service_tier,
            "cwd": str(config.cwd),
            "instructionSources": [],
            "approvalPolicy": approval_data(settings.approval_policy),
            "approvalsReviewer": _reviewer(config.settings.approvals_reviewer),
            "sandbox": _sandbox_data(settings.sandbox_policy),
            "reasoningEffort": settings.reasoning_effort,
        }

    async def _thread_data(self, thread: AppThread, *, with_turns: bool) -> Fields:
        session = thread.session
        path = session.session_file
        if path is None:
            data = history.unsaved_thread(session, thread.config)
            data["status"] = thread.status
            return data
        model = session.settings.model
        data = await asyncio.to_thread(history.thread_data, path, session.name, model)
        if with_turns:
            running = thread.feed and thread.feed.turn_id
            data["turns"] = await asyncio.to_thread(history.read_turns, path, running)
        data["status"] = thread.status
        return data

    def _thread(self, thread_id: str) -> AppThread:
        """Find a thread that this server has opened, and mark it as used last."""
        thread = self._threads.get(thread_id)
        if thread is None:
            raise RpcError(INVALID_REQUEST, f"thread not found: {thread_id}")
        self._threads.use(thread)
        return thread

    @asynccontextmanager
    async def _open_thread(self, thread_id: str) -> AsyncGenerator[AppThread]:
        """Lock a thread, and open it if it is closed."""
        thread = self._thread(thread_id)
        async with thread.lock:
            if self._threads.get(thread_id) is not thread:
                text = f"thread {thread_id} was archived meanwhile; `thread/unarchive` brings it back"
                raise RpcError(INVALID_REQUEST, text)
            if not thread.is_open:
                await thread.open()
            yield thread

    def _running(
        self,
        thread_id: str,
        turn_id: str,
        what: str,
    ) -> AppThread:
        """Find a thread by its running turn. `what`: a verb for the error, such as `steer`."""
        thread = self._thread(thread_id)
        if thread.feed is None:
            raise RpcError(INVALID_REQUEST, f"no active turn to {what}")
        found = thread.feed.turn_id
        if found != turn_id:
            # The SDK of Codex reads this.
            text = f"expected active turn id `{turn_id}` but found `{found}`"
            raise RpcError(INVALID_REQUEST, text)
        return thread

    def _status(self, thread_id: str) -> Mapping[str, Any]:
        thread = self._threads.get(thread_id)
        if thread is not None and thread.is_open:
            return thread.status
        return {"type": "notLoaded"}

    def later(self, method: str, params: Fields) -> None:
        """Send a notification after the answer to the running request."""
        asyncio.get_running_loop().call_soon(self._rpc.notify, method, params)


def _goals(thread: AppThread) -> Goals:
    goals = thread.session.feature(Goals)
    if goals is None:
        raise RpcError(INVALID_REQUEST, "goals are off: `features.goals`")
    return goals


def _reviewer(setting: str | None) -> str:
    """A reviewer as the protocol names it, which knows none of installed packages."""
    if setting in {None, "user", "guardian_subagent"}:
        return setting or "user"
    return "auto_review"


def _sandbox_data(policy: SandboxPolicy) -> Fields:
    """A policy in the format of Codex. A mode has only the fields that hold in it."""
    data: Fields = {"type": _SANDBOXES[policy.mode]}
    if policy.mode != "danger-full-access":
        data["networkAccess"] = policy.network_access
    if policy.mode == "workspace-write":
        data["writableRoots"] = [str(root) for root in policy.writable_roots]
        data["excludeTmpdirEnvVar"] = policy.exclude_tmpdir_env_var
        data["excludeSlashTmp"] = policy.exclude_slash_tmp
    return data
