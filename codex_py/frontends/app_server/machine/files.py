"""Answers the methods about files, which the client uses with the rights of the user."""

import asyncio
import base64
from collections.abc import Callable
from typing import TypeVar

from codex_py.app.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from codex_py.frontends.app_server.machine import file_params as params
from codex_py.frontends.app_server.machine.file_access import (
    Ended,
    FileAccess,
    client_access,
)
from codex_py.frontends.app_server.machine.file_watches import FileWatches
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields

_T = TypeVar("_T")


class FileMethods(MethodGroup):
    """Answers `fs/…`.

    The client may use any file of the user, as in Codex. What the permissions of the server's
    folder or of an open thread deny is refused.
    """

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        super().__init__(server, threads)
        self._watches = FileWatches(server.rpc)

    async def aclose(self) -> None:
        await self._watches.aclose()

    @serves("fs/readFile", params.OnePath)
    async def read(self, asked: params.OnePath) -> Fields:
        async with self.server.large_answer():
            data = await self._run(lambda access: access.read(asked.path))
            return {"dataBase64": base64.b64encode(data).decode()}

    @serves("fs/writeFile", params.WriteFile)
    async def write(self, asked: params.WriteFile) -> Fields:
        try:
            data = base64.b64decode(asked.data_base64, validate=True)
        except ValueError as error:
            text = f"fs/writeFile requires valid base64 dataBase64: {error}"
            raise RpcError(INVALID_REQUEST, text) from error
        await self._run(lambda access: access.write(asked.path, data))
        return {}

    @serves("fs/createDirectory", params.CreateDirectory)
    async def create_directory(self, asked: params.CreateDirectory) -> Fields:
        is_recursive = asked.recursive is not False
        await self._run(
            lambda access: access.make_folder(asked.path, recursive=is_recursive)
        )
        return {}

    @serves("fs/getMetadata", params.OnePath)
    async def metadata(self, asked: params.OnePath) -> Fields:
        return await self._run(lambda access: access.metadata(asked.path))

    @serves("fs/readDirectory", params.OnePath)
    async def read_directory(self, asked: params.OnePath) -> Fields:
        async with self.server.large_answer():
            entries = await self._run(lambda access: access.entries(asked.path))
            return {"entries": entries}

    @serves("fs/remove", params.Remove)
    async def remove(self, asked: params.Remove) -> Fields:
        is_recursive = asked.recursive is not False
        is_forced = asked.force is not False

        def remove(access: FileAccess) -> None:
            access.remove(asked.path, recursive=is_recursive, force=is_forced)

        await self._run(remove)
        return {}

    @serves("fs/copy", params.Copy)
    async def copy(self, asked: params.Copy) -> Fields:
        def copy(access: FileAccess) -> None:
            source = asked.source_path
            destination = asked.destination_path
            access.copy(source, destination, recursive=asked.recursive)

        await self._run(copy)
        return {}

    @serves("fs/watch", params.Watch)
    async def watch(self, asked: params.Watch) -> Fields:
        await self._run(lambda access: access.check(asked.path))
        self._watches.add(asked.watch_id, str(asked.path))
        return {"path": str(asked.path)}

    @serves("fs/unwatch", params.Unwatch)
    async def unwatch(self, asked: params.Unwatch) -> Fields:
        await self._watches.remove(asked.watch_id)
        return {}

    async def _run(self, work: Callable[[FileAccess], _T]) -> _T:
        """Do work in a thread. It stops in the middle if the client leaves.

        Raises:
            RpcError: the work cannot be done.
            CodexError: the configuration, which has the permissions, cannot be read.
        """
        access = client_access(self.server, self.threads)
        try:
            return await asyncio.to_thread(work, access)
        except asyncio.CancelledError:
            access.ended.set()
            raise
        except Ended as error:
            raise RpcError(INTERNAL_ERROR, "the client left") from error
        except OSError as error:
            raise RpcError(INTERNAL_ERROR, _words(error)) from error
        except ValueError as error:
            raise RpcError(INVALID_REQUEST, str(error)) from error
        except RecursionError as error:
            text = "the folder has too many folders in one another"
            raise RpcError(INVALID_REQUEST, text) from error


def _words(error: OSError) -> str:
    """The error in the words of Codex."""
    if error.errno is None:
        return str(error)
    return f"{error.strerror} (os error {error.errno})"
