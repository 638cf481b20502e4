"""The prompts that the user has sent, in this session and in others: `$CODEX_HOME/history.jsonl`.

Each line is an object, `{"session_id": …, "ts": seconds, "text": …}`, as Codex 0.169 writes and
reads it.
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
"""Bytes read from the end of the file; older prompts are not offered."""
_KEPT_PART: Final = 0.8
"""The part of the bound that is kept when a file is cut, so that it is not cut every time."""
_LOCK_TIMEOUT_S: Final = 1.0
"""Seconds to wait for the lock, which Codex takes too."""


class PromptHistory:
    """Keeps the prompts of this session, and reads those of others when they are first needed.

    The file is read and written in a separate thread. If it cannot be used, only the history of
    other sessions is lost.

    Args:
        path: the file; None to store nothing.
        max_bytes: the bound of the file; None if it has none.
    """

    def __init__(self, path: Path | None, max_bytes: int | None) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._thread = ThreadPoolExecutor(1, "prompt history")
        self._loading: Future[list[str]] | None = None
        self._added: list[str] = []
        self._written = 0
        """The number of added texts that the file has, or soon will have."""

    @property
    def entries(self) -> Sequence[str]:
        """The texts, the newest first, each once; with those of the file once it is read."""
        loading = self._loading
        if loading is not None and loading.done():
            older = loading.result()
        else:
            older = ()
        return list(dict.fromkeys((*reversed(self._added), *older)))

    async def load(self) -> None:
        """Wait until `entries` has the file's texts.

        Texts that others write from now on are not read.
        """
        if self._loading is None:
            self._loading = self._thread.submit(_read, self._path, self._written)
        # Shielded: another caller may wait for the same.
        await asyncio.shield(asyncio.wrap_future(self._loading))

    def remember(self, text: str) -> None:
        """Add a text to the entries, but not to the file."""
        self._added.append(text)

    def add(self, text: str, session_id: str) -> None:
        """Add a text to the entries at once, and to the file soon."""
        self.remember(text)
        if self._path is not None:
            self._written += 1
            entry = {"session_id": session_id, "ts": int(time.time()), "text": text}
            self._thread.submit(
                _append, self._path, encode_json(entry) + b"\n", self._max_bytes
            )

    def close(self) -> None:
        """Wait until all is written, at most for a second."""
        self._thread.shutdown()


def _read(path: Path | None, added: int) -> list[str]:
    """The texts of the file, the newest first, without the `added` ones that are our own."""
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
        # The first line may have lost its beginning.
        del lines[0]
    texts: list[str] = []
    for line in reversed(lines):
        text = text_field(as_object(json_or(line, None)), "text")
        if text:
            texts.append(text)
    return texts[added:]


def _append(
    path: Path,
    line: bytes,
    max_bytes: int | None,
) -> None:
    """Add a line to the file, and cut the file if that makes it too long. Errors are ignored."""
    with suppress(OSError):
        make_private(path.parent)
        # With `O_RDWR`, opening a pipe does not block.
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
                # The writer of the last line did not finish it.
                line = b"\n" + line
            os.write(descriptor, line)
            if max_bytes is not None and size + len(line) > max_bytes:
                _cut(descriptor, size + len(line), int(max_bytes * _KEPT_PART))
        finally:
            os.close(descriptor)


def _cut(
    descriptor: int,
    size: int,
    kept: int,
) -> None:
    """Drop the oldest lines, never the last one. The caller holds the lock.

    The file is changed in place, because the lock is on it. If this is cut off half-way, some lines
    stand in it twice.
    """
    lines = os.pread(descriptor, size, 0)
    first = lines.find(b"\n", max(0, size - kept), size - 1) + 1
    if first == 0:
        # The last line alone is longer than what is to be kept.
        first = lines.rfind(b"\n", 0, size - 1) + 1
    # While the file is in append mode, the offset of `pwrite` has no effect.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    os.pwrite(descriptor, lines[first:], 0)
    os.ftruncate(descriptor, size - first)
