"""Answers the methods about threads, stored and open."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.app.options import SessionOptions
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads import history
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.threads.thread_answers import (
    opened_answer,
    thread_data,
)
from codex_py.frontends.app_server.threads.thread_params import MetadataUpdate
from codex_py.frontends.app_server.turn_items.items import Fields, usage_data
from codex_py.protocol.ids import is_thread_id
from codex_py.rollout import archive
from codex_py.rollout.details import read_details
from codex_py.rollout.index import rename_thread, thread_names
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS, read_meta
from codex_py.rollout.thread_git import change_git

_GIT: Final = {
    "sha": "commit_hash",
    "branch": "branch",
    "originUrl": "repository_url",
}
"""The names of session files, by those of the protocol."""
_MAX_GIT: Final = 4096


class ThreadMethods(MethodGroup):
    """Opens, lists, reads, renames and archives threads."""

    @serves("thread/start", params.ThreadStart)
    async def start(self, asked: params.ThreadStart) -> Fields:
        options = replace(self.server.options, ephemeral=asked.ephemeral)
        cwd = asked.cwd or "."
        thread = await self.threads.open(options, cwd, asked.table(), asked.texts)
        return await self._started(thread, with_turns=False)

    @serves("thread/resume", params.ThreadResume)
    async def resume(self, asked: params.ThreadResume) -> Fields:
        """Open a stored thread, or change the settings of one that the server has."""
        thread_id = asked.thread_id
        with_turns = not asked.exclude_turns
        await self.threads.opened(thread_id)
        if self.threads.get(thread_id) is None:
            with self.threads.opening(thread_id):
                return await self._resume_stored(asked)
        async with self.threads.locked(thread_id) as thread:
            # A thread that cannot be read keeps its settings.
            read = await thread_data(thread, with_turns=with_turns)
            self.threads.subscribe(thread)
            if not thread.is_working:
                await thread.set(asked.cwd, asked.table())
            answer = await opened_answer(thread, with_turns=False)
        answer["thread"]["turns"] = read["turns"]
        return answer

    async def _resume_stored(self, asked: params.ThreadResume) -> Fields:
        """Open a stored thread. Other requests for it wait."""
        thread_id = asked.thread_id
        path = history.stored_file(self.server.home, thread_id)
        options = replace(self.server.options, resume=thread_id)
        thread = await self._opened_stored(options, path, asked)
        self.threads.keep(thread, thread_id)
        answer = await opened_answer(thread, with_turns=not asked.exclude_turns)
        await self._tell_usage(thread, path, answer["thread"]["turns"])
        asyncio.get_running_loop().call_soon(thread.watch_servers)
        return answer

    @serves("thread/fork", params.ThreadResume)
    async def fork(self, asked: params.ThreadResume) -> Fields:
        path = history.stored_file(self.server.home, asked.thread_id)
        options = replace(
            self.server.options,
            resume=asked.thread_id,
            fork=True,
            ephemeral=asked.ephemeral,
        )
        thread = await self._opened_stored(options, path, asked)
        return await self._started(thread, with_turns=not asked.exclude_turns)

    @serves("thread/list", params.ThreadList)
    async def list(self, asked: params.ThreadList) -> Fields:
        return await asyncio.to_thread(
            history.list_threads, self.server.home, asked, self.threads.status
        )

    @serves("thread/read", params.ThreadRead)
    async def read(self, asked: params.ThreadRead) -> Fields:
        thread = self.threads.get(asked.thread_id)
        if thread is not None and thread.is_open:
            return {"thread": await thread_data(thread, with_turns=asked.include_turns)}
        path = history.stored_file(self.server.home, asked.thread_id)
        name = thread_names(self.server.home).get(read_meta(path).id)
        data = await asyncio.to_thread(history.thread_data, path, name)
        if asked.include_turns:
            data["turns"] = await asyncio.to_thread(history.read_turns, path)
        return {"thread": data}

    @serves("thread/name/set", params.ThreadName)
    async def rename(self, asked: params.ThreadName) -> Fields:
        name = " ".join(asked.name.split())
        if not name:
            raise RpcError(INVALID_REQUEST, "thread name must not be empty")
        thread = self.threads.get(asked.thread_id)
        if thread is not None and thread.is_open:
            thread.session.rename(name)
        else:
            path = history.stored_file(self.server.home, asked.thread_id)
            rename_thread(self.server.home, read_meta(path).id, name)
        renamed = {"threadId": asked.thread_id, "threadName": name}
        self.server.later("thread/name/updated", renamed)
        return {}

    @serves("thread/metadata/update", MetadataUpdate)
    async def update_metadata(self, asked: MetadataUpdate) -> Fields:
        """Change the git information of a thread, stored or open. A running turn goes on."""
        changes = _git_changes(asked.git_info)
        thread_id = asked.thread_id
        thread = self.threads.get(thread_id)
        if thread is not None and thread.options.ephemeral:
            text = f"ephemeral thread does not support metadata updates: {thread_id}"
            raise RpcError(INVALID_REQUEST, text)
        path = None
        if thread is not None and thread.is_open:
            thread.session.keeps_file = True
            path = thread.session.session_file
        is_ours = path is not None
        if path is None:
            path = history.stored_file(self.server.home, thread_id)
        await asyncio.to_thread(change_git, path, changes, is_ours=is_ours)
        return await self.read(params.ThreadRead(thread_id=thread_id))

    @serves("thread/archive", params.OneThread)
    async def archive(self, asked: params.OneThread) -> Fields:
        thread = self.threads.get(asked.thread_id)
        if thread is not None and thread.is_open:
            # As in Codex, a thread without a prompt is archived, too.
            thread.session.keeps_file = True
        async with self._put_away(asked.thread_id):
            path = history.stored_file(self.server.home, asked.thread_id, SESSIONS)
            thread_id = read_meta(path).id
            await asyncio.to_thread(archive.archive, self.server.home, thread_id)
        self.server.later("thread/archived", {"threadId": asked.thread_id})
        return {}

    @serves("thread/delete", params.OneThread)
    async def delete(self, asked: params.OneThread) -> Fields:
        """Delete the files of a thread and of its subagents. A running turn is interrupted."""
        thread_id = asked.thread_id
        if not is_thread_id(thread_id):
            raise RpcError(INVALID_REQUEST, f"invalid thread id: {thread_id}")
        thread = self.threads.get(thread_id)
        if thread is not None and thread.options.ephemeral:
            text = f"thread is not persisted and cannot be deleted: {thread_id}"
            raise RpcError(INVALID_REQUEST, text)
        async with self._put_away(thread_id) as is_loaded:
            # A thread without a prompt has lost its file as it was closed.
            if not is_loaded:
                history.stored_file(self.server.home, thread_id)
            await asyncio.to_thread(archive.delete, self.server.home, thread_id)
        self.server.later("thread/deleted", {"threadId": thread_id})
        return {}

    @serves("thread/unarchive", params.OneThread)
    async def unarchive(self, asked: params.OneThread) -> Fields:
        home = self.server.home
        path = history.stored_file(home, asked.thread_id, ARCHIVED_SESSIONS)
        await asyncio.to_thread(archive.unarchive, home, read_meta(path).id)
        self.server.later("thread/unarchived", {"threadId": asked.thread_id})
        return await self.read(params.ThreadRead(thread_id=asked.thread_id))

    @asynccontextmanager
    async def _put_away(self, thread_id: str) -> AsyncGenerator[bool]:
        """Close a thread and forget it. True if this server had opened it.

        Other requests cannot open it again until its files are put away, too.
        """
        await self.threads.opened(thread_id)
        thread = self.threads.get(thread_id)
        if thread is None:
            yield False
            return
        async with thread.lock:
            await thread.close()
            self.threads.remove(thread)
            self.threads.tell_closed(thread)
            yield True

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
        thread = await self.threads.open(options, cwd, table, asked.texts)
        thread.restore_mode()
        return thread

    async def _tell_usage(
        self, thread: AppThread, path: Path, turns: Sequence[Fields]
    ) -> None:
        """Tell the client the tokens that a stored thread has used, as it cannot read them.

        Args:
            path: the file of the thread.
            turns: the turns of the thread; empty if they were not read.
        """
        usage = thread.session.token_usage
        if not usage.total.total_tokens:
            return
        if not turns:
            turns = await asyncio.to_thread(history.read_turns, path)
        if turns:
            told: Fields = {
                "threadId": thread.thread_id,
                "turnId": turns[-1]["id"],
                "tokenUsage": usage_data(usage),
            }
            self.server.later("thread/tokenUsage/updated", told)

    async def _started(self, thread: AppThread, *, with_turns: bool) -> Fields:
        """Keep a new thread, tell the client of it, and return the answer to its request."""
        self.threads.keep(thread)
        answer = await opened_answer(thread, with_turns=with_turns)
        without_turns: Fields = {**answer["thread"], "turns": []}
        self.server.later("thread/started", {"thread": without_turns})
        asyncio.get_running_loop().call_soon(thread.watch_servers)
        return answer


def _git_changes(given: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Check git information of the client. Returns it by the names that session files have."""
    if given is None:
        text = "thread metadata update must include at least one field"
        raise RpcError(INVALID_REQUEST, text)
    if not given:
        raise RpcError(INVALID_REQUEST, "gitInfo must include at least one field")
    changes: dict[str, str | None] = {}
    for name, value in given.items():
        if name not in _GIT:
            raise RpcError(INVALID_REQUEST, f"gitInfo.{name} is unknown")
        if value is not None:
            value = value.strip()
            if not value:
                text = f"gitInfo.{name} must not be empty"
                raise RpcError(INVALID_REQUEST, text)
            if len(value) > _MAX_GIT:
                text = f"gitInfo.{name} has more than {_MAX_GIT} characters"
                raise RpcError(INVALID_REQUEST, text)
        changes[_GIT[name]] = value
    return changes
