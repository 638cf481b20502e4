"""Answers the methods that search the names of files by a few letters of them."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.app.file_index import FileIndex, match
from codex_py.app.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from codex_py.app.user_programs import user_programs
from codex_py.errors import CodexError
from codex_py.frontends.app_server.machine import search_params as params
from codex_py.frontends.app_server.machine.file_access import FileAccess, client_access
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields

_LIMIT: Final = 50
"""The results of a search, as in Codex."""
_MAX_ROOTS: Final = 32
_MAX_SESSIONS: Final = 32
_OUT_OF_ROOT: Final = "../"
"""An index would search for this beside its folder."""


class _Root(NamedTuple):
    """A folder in which is searched."""

    name: str
    """The folder as the client names it."""
    folder: Path
    files: FileIndex


class _Session:
    """A search whose query the client changes."""

    def __init__(self, roots: Sequence[_Root]) -> None:
        self.roots = roots
        self.task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """End the search that runs; nothing more is told of it."""
        if self.task is not None:
            self.task.cancel()


class FileSearchMethods(MethodGroup):
    """Answers `fuzzyFileSearch` and `fuzzyFileSearch/session…`."""

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        super().__init__(server, threads)
        self._sessions: dict[str, _Session] = {}
        self._searches: dict[str, asyncio.Task[list[Fields]]] = {}
        """The searches that run, by their cancellation tokens."""

    async def aclose(self) -> None:
        tasks = [session.task for session in self._sessions.values() if session.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @serves("fuzzyFileSearch", params.Search)
    async def search(self, asked: params.Search) -> Fields:
        """Search once. A search that is ended by another one finds nothing."""
        roots = self._roots(asked.roots)
        work = asyncio.create_task(self._found(roots, asked.query))
        token = asked.cancellation_token
        if token is not None:
            earlier = self._searches.get(token)
            if earlier is not None:
                earlier.cancel()
            self._searches[token] = work
        try:
            await asyncio.wait([work])
        finally:
            work.cancel()
            if token is not None and self._searches.get(token) is work:
                del self._searches[token]
        if work.cancelled():
            return {"files": []}
        return {"files": work.result()}

    @serves("fuzzyFileSearch/sessionStart", params.StartSearch)
    async def start(self, asked: params.StartSearch) -> Fields:
        """Begin a session, in place of an earlier one of this id."""
        if not asked.session_id:
            raise RpcError(INVALID_REQUEST, "sessionId must not be empty")
        if not asked.roots:
            reason = "at least one search directory is required"
            text = f"failed to start fuzzy file search session: {reason}"
            raise RpcError(INTERNAL_ERROR, text)
        earlier = self._sessions.get(asked.session_id)
        if earlier is not None:
            earlier.stop()
        elif len(self._sessions) >= _MAX_SESSIONS:
            text = f"more than {_MAX_SESSIONS} sessions; stop one first"
            raise RpcError(INVALID_REQUEST, text)
        session = _Session(self._roots(asked.roots))
        self._sessions[asked.session_id] = session
        session.task = asyncio.create_task(self._tell(asked.session_id, session, ""))
        return {}

    @serves("fuzzyFileSearch/sessionUpdate", params.UpdateSearch)
    async def update(self, asked: params.UpdateSearch) -> Fields:
        """Search for another query. This ends the search that runs."""
        session = self._sessions.get(asked.session_id)
        if session is None:
            text = f"fuzzy file search session not found: {asked.session_id}"
            raise RpcError(INVALID_REQUEST, text)
        session.stop()
        work = self._tell(asked.session_id, session, asked.query)
        session.task = asyncio.create_task(work)
        return {}

    @serves("fuzzyFileSearch/sessionStop", params.SearchSession)
    async def stop(self, asked: params.SearchSession) -> Fields:
        session = self._sessions.pop(asked.session_id, None)
        if session is not None:
            session.stop()
        return {}

    async def _tell(
        self,
        session_id: str,
        session: _Session,
        query: str,
    ) -> None:
        """Search, and tell the client what was found.

        A client that does not read misses this: the next query is what it wants to know by then.
        """
        try:
            files = await self._found(session.roots, query)
        except CodexError:
            # The configuration was broken meanwhile; the next request says so.
            files = []
        found = {"sessionId": session_id, "query": query, "files": files}
        rpc = self.server.rpc
        rpc.notify("fuzzyFileSearch/sessionUpdated", found, is_live=True)
        done = {"sessionId": session_id}
        rpc.notify("fuzzyFileSearch/sessionCompleted", done, is_live=True)

    def _roots(self, names: Sequence[str]) -> list[_Root]:
        """The folders to search in. Others are left out, as in Codex.

        Raises:
            RpcError: there are too many.
        """
        if len(names) > _MAX_ROOTS:
            text = f"more than {_MAX_ROOTS} roots at once"
            raise RpcError(INVALID_REQUEST, text)
        server = self.server
        top = server.configuration().cwd
        found: list[_Root] = []
        for name in dict.fromkeys(names):
            folder = top / name
            if not os.path.isdir(folder):
                continue
            # No program comes from the folder, nor from one that its commands may write to.
            config = server.configuration(str(folder))
            programs = user_programs(
                config, server.environment, server.options.add_dirs
            )
            files = FileIndex(
                config.cwd, programs, server.environment, use_git=True, whole=True
            )
            found.append(_Root(name, config.cwd, files))
        return found

    async def _found(self, roots: Sequence[_Root], query: str) -> list[Fields]:
        """The best results in all folders, the best first."""
        if not query.strip() or query.startswith(_OUT_OF_ROOT):
            # List the files, so that the next search is quick.
            query = ""
        searches = [root.files.search(query, _LIMIT) for root in roots]
        paths = await asyncio.gather(*searches)
        if not query:
            return []
        access = client_access(self.server, self.threads)
        named = list(zip(roots, paths, strict=True))
        return await asyncio.to_thread(_results, named, query, access)


def _results(
    found: Sequence[tuple[_Root, Sequence[str]]],
    query: str,
    access: FileAccess,
) -> list[Fields]:
    """The paths in the form of Codex, without those that are denied or were removed."""
    query = query.removeprefix("./")
    results: list[Fields] = []
    for root, paths in found:
        for path in paths:
            whole = root.folder / path
            if access.refuses(str(whole)) or not (whole.exists() or whole.is_symlink()):
                continue
            fits = match(query, path)
            if whole.is_dir():
                kind = "directory"
            else:
                kind = "file"
            result = {
                "root": root.name,
                "path": path,
                "match_type": kind,
                "file_name": whole.name,
                "score": fits.score,
                "indices": list(fits.indices),
            }
            results.append(result)
    results.sort(key=lambda each: (-each["score"], each["path"]))
    return results[:_LIMIT]
