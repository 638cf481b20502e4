"""The prompts that the user has sent, in this session and in others: `$CODEX_HOME/history.jsonl`.

One object a line, `{"session_id": …, "ts": seconds, "text": …}`, as Codex 0.169 writes it and reads it.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.filesystem.private import lock, make_private
from codex_py.filesystem.reading import open_ordinary, refuse_extraordinary
from codex_py.protocol.json_fields import as_object, json_or, text_field
from codex_py.protocol.messages import encode_json

_MAX_READ: Final = 4 * 1024 * 1024
"""Bytes from the end of the file; what is older is not offered any more."""
_KEPT_PART: Final = 0.8
"""Of the bound, when a file that is beyond it is cut. So it is not cut every time."""
_LOCK_TIMEOUT_S: Final = 1.0
"""Codex takes the lock as well."""


class PromptHistory:
    """The file is read when it is first asked for, and read and written in one thread of its own.

    A file that cannot be used costs the history of other sessions, and no more. Without a path nothing is kept, and
    without `max_bytes` the file has no bound.
    """

    def __init__(self, path: Path | None, max_bytes: int | None) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._thread = ThreadPoolExecutor(1, "prompt history")
        self._loading: Future[list[str]] | None = None
        self._added: list[str] = []
        self._written = 0
        """How many of these the file has, or soon will."""

    @property
    def entries(self) -> Sequence[str]:
        """The texts, the newest first, each once; those of the file as soon as they are read."""
        loading = self._loading
        if loading is not None and loading.done():
            older = loading.result()
        else:
            older = ()
        return list(dict.fromkeys((*reversed(self._added), *older)))

    async def load(self) -> None:
        """Have `entries` whole, but for what others write from now on."""
        if self._loading is None:
            self._loading = self._thread.submit(_read, self._path, self._written)
        # Shielded: another caller may wait for the same.
        await asyncio.shield(asyncio.wrap_future(self._loading))

    def remember(self, text: str) -> None:
        """Have a text among the entries; the file does not get it."""
        self._added.append(text)

    def add(self, text: str, session_id: str) -> None:
        """Remember a text; the file follows soon."""
        self.remember(text)
        if self._path is not None:
            self._written += 1
            entry = {"session_id": session_id, "ts": int(time.time()), "text": text}
            self._thread.submit(
                _append, self._path, encode_json(entry) + b"\n", self._max_bytes
            )

    def close(self) -> None:
        """Wait until all is written, a second at most."""
        self._thread.shutdown()


def _read(path: Path | None, added: int) -> list[str]:
    """The texts of the file, the newest first, but for those that we have added ourselves."""
    if path is None:
        return []
    try:
        with os.fdopen(open_ordinary(path), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MAX_READ))
            lines = file.read(_MAX_READ).split(b"\n")
    except OSError:
        return []
    if size > _MAX_READ:
        del lines[0]
    texts = (
        text_field(as_object(json_or(line, None)), "text") for line in reversed(lines)
    )
    return [text for text in texts if text][added:]


def _append(path: Path, line: bytes, max_bytes: int | None) -> None:
    with suppress(OSError):
        make_private(path.parent)
        # For writing too, a pipe is opened at once.
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            status = os.fstat(descriptor)
            refuse_extraordinary(status)
            if status.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
            lock(descriptor, _LOCK_TIMEOUT_S)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                # Whoever wrote the last line did not come to its end.
                line = b"\n" + line
            os.write(descriptor, line)
            if max_bytes is not None and size + len(line) > max_bytes:
                _cut(descriptor, size + len(line), int(max_bytes * _KEPT_PART))
        finally:
            os.close(descriptor)


def _cut(descriptor: int, size: int, kept: int) -> None:
    """Drop the oldest lines, never the last one. The lock is held.

    In place, for the lock is on this very file. Should it be cut off half-way, lines stand there twice.
    """
    lines = os.pread(descriptor, size, 0)
    first = lines.find(b"\n", max(0, size - kept), size - 1) + 1
    if first == 0:
        # The last line alone is longer than what is to be kept.
        first = lines.rfind(b"\n", 0, size - 1) + 1
    # As long as it appends, the offset of `pwrite` has no effect.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    os.pwrite(descriptor, lines[first:], 0)
    os.ftruncate(descriptor, size - first)
