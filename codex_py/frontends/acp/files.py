"""Reads and writes the text of the client's files: what its user sees, also if it is not saved."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.errors import ToolError
from codex_py.protocol.json_fields import as_object

_NOT_FOUND: Final = -32002
"""ACP's error code for a file that the client does not know."""
_TIMEOUT_S: Final = 20.0
_CODE: Final = "EditorFailed"


class EditorFiles:
    """The files of one client, as `OpenTexts`.

    Args:
        can_read: the client serves `fs/read_text_file`.
        can_write: the client serves `fs/write_text_file`.
        folders: the folders of the session. An error about a file outside of them means that the
            client does not know the file.
        timeout_s: the time for one answer.

    Attributes:
        session_id: the client's id of the session, set when it is known.
        can_read: see the arguments.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        *,
        can_read: bool,
        can_write: bool,
        folders: Sequence[Path],
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self.session_id = ""
        self._rpc = rpc
        self.can_read = can_read
        self._can_write = can_write
        self._folders = folders
        self._timeout_s = timeout_s

    async def read(self, path: Path) -> str | None:
        if not self.can_read:
            return None
        try:
            answer = await self._ask("fs/read_text_file", {"path": str(path)})
        except RpcError as error:
            is_inside = any(path.is_relative_to(folder) for folder in self._folders)
            if error.code == _NOT_FOUND or not is_inside:
                return None
            text = f"the editor could not read {path}: {error}"
            raise ToolError(text, code=_CODE) from error
        except TimeoutError as error:
            text = f"the editor did not answer within {self._timeout_s:g} s: {path}"
            raise ToolError(text, code=_CODE) from error
        content = as_object(answer).get("content")
        if not isinstance(content, str):
            text = f"the editor answered without the text of {path}"
            raise ToolError(text, code=_CODE)
        return content

    async def show(self, texts: Mapping[Path, str]) -> Sequence[str]:
        if not self._can_write:
            return ()
        writing = [self._write(path, text) for path, text in texts.items()]
        notes = await asyncio.gather(*writing)
        return [note for note in notes if note is not None]

    async def _write(self, path: Path, text: str) -> str | None:
        """Write a text. Returns a sentence if the client did not take it."""
        params = {"path": str(path), "content": text}
        try:
            await self._ask("fs/write_text_file", params)
        except RpcError as error:
            return f"{path} is written, but the editor did not take its text: {error}"
        except TimeoutError:
            return f"{path} is written, but the editor did not answer"
        return None

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        async with asyncio.timeout(self._timeout_s):
            return await self._rpc.request(
                method, {"sessionId": self.session_id, **params}
            )
