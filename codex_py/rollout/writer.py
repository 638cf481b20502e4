"""Writes a session file line by line, so that it can be resumed even if the process is killed."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from codex_py.errors import SessionError
from codex_py.filesystem.private import lock, locked, make_private
from codex_py.protocol import event_items, events
from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.response_order import HistoryPlace
from codex_py.rollout.index import rename_thread
from codex_py.rollout.records import (
    SessionMeta,
    home_of,
    line,
    read_meta,
    session_path,
    thread_id_of,
    token_count,
)

_LOCKS = "thread-writer-locks"
_ADVICE = "; wait until that one has ended, or fork the session"
_MAX_DIFF_CHARACTERS = 200_000
"""Longer diffs are not shown either."""


class ThreadLock:
    """A lock that is held until `release`.

    The convention is Codex's, observed in 0.169: an exclusive `flock` on
    `$CODEX_HOME/thread-writer-locks/<thread id>.lock`. The file is removed at the end, under the
    lock `.coordination.lock` beside it. The kernel drops the lock of a process that dies.
    """

    def __init__(
        self,
        home: Path,
        thread_id: str,
        advice: str = "",
    ) -> None:
        """Acquire the lock without waiting. Raises a `SessionError` with the advice if another
        process holds it."""
        folder = home / _LOCKS
        make_private(folder)
        self._coordination = folder / ".coordination.lock"
        self._path = folder / f"{thread_id}.lock"
        while True:
            self._fd = _open(self._path, os.O_RDWR | os.O_CREAT)
            try:
                lock(self._fd, 0)
            except OSError as error:
                os.close(self._fd)
                if not isinstance(error, TimeoutError):
                    raise
                message = f"session {thread_id} is in use by another process{advice}"
                raise SessionError(message, code="session_in_use") from error
            if self._is_current():
                return
            # Its last holder removed the file after we opened it, so our lock excludes nobody.
            os.close(self._fd)

    def release(self) -> None:
        # If this fails, an empty, unlocked file is left behind.
        with suppress(OSError), locked(self._coordination, 0, is_file=True):
            self._path.unlink()
        os.close(self._fd)

    def _is_current(self) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(self._fd).st_ino
        except FileNotFoundError:
            return False


def must_be_unused(path: Path) -> None:
    """Raise a `SessionError` if another process writes this session file. For readers, which hold
    no lock."""
    with _writing(path):
        ThreadLock(home_of(path), read_meta(path).id, _ADVICE).release()


class RolloutWriter:
    """Appends to one session file. No other process appends to it at the same time.

    Each line is one write to a descriptor in append mode: a kill cuts off at most the last line. A full disk
    does not end the turn: unwritten lines stay in memory, `warn` is called once with a sentence for the user, and
    every later line tries again, so that lines are written whole and in order or not at all. Nothing is synced:
    the file survives the end of the process, but not a power failure.
    """

    def __init__(
        self,
        path: Path,
        fd: int,
        lock: ThreadLock,
        warn: Callable[[str], None],
        masked: Callable[[bytes], bytes],
        *,
        is_new: bool,
        cut: bool,
    ) -> None:
        self.path = path
        """The path of the file; absolute if the home is."""
        self._fd = fd
        self._lock = lock
        self._warn = warn
        self._masked = masked
        self._warned = False
        self._is_new = is_new
        # A newline ends the line that an earlier process left unfinished; readers skip that line.
        self._unwritten = bytearray(b"\n" if cut else b"")

    @classmethod
    def create(
        cls,
        home: Path,
        meta: SessionMeta,
        items: Iterable[EncodedItem] = (),
        *,
        warn: Callable[[str], None],
        masked: Callable[[bytes], bytes] = bytes,
    ) -> Self:
        """Create the file of a new thread, with its metadata and first items. A kill leaves no
        partial file.

        Args:
            masked: returns the bytes to write for a line.

        Raises:
            SessionError: the file cannot be written, or the thread is in use.
        """
        path = session_path(home, meta)
        with _writing(path), ExitStack() as undo:
            make_private(path.parent)
            lock = ThreadLock(home, meta.id)
            undo.callback(lock.release)
            part = path.with_suffix(".part")
            fd = _open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            undo.callback(os.close, fd)
            undo.callback(part.unlink, missing_ok=True)
            writer = cls(path, fd, lock, warn, masked, is_new=True, cut=False)
            writer._write(line("session_meta", meta.payload()))
            for item in items:
                writer._write(line("response_item", item))
            part.rename(path)
            undo.pop_all()
            return writer

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        warn: Callable[[str], None],
        masked: Callable[[bytes], bytes] = bytes,
    ) -> Self:
        """Continue the file of an earlier session. Call it before `read_session`, which then reads
        all lines.

        Args:
            masked: returns the bytes to write for a line.

        Raises:
            SessionError: the file cannot be read or written, the thread is in use, or the file is
                a native one, which is continued in a new file.
        """
        with _writing(path, "; --ephemeral goes on without writing"):
            fd = _open(path, os.O_RDWR | os.O_APPEND)
        with _writing(path), ExitStack() as undo:
            undo.callback(os.close, fd)
            meta = read_meta(path)
            if meta.native:
                # Codex refuses such a file if its last line has no number.
                raise SessionError(
                    f"{path} was written by Codex with numbered lines; it cannot be appended to"
                )
            lock = ThreadLock(home_of(path), meta.id, _ADVICE)
            undo.callback(lock.release)
            # Read under the lock: before that, another process may have written to the file.
            cut = os.pread(fd, 1, os.fstat(fd).st_size - 1) != b"\n"
            undo.pop_all()
            return cls(path, fd, lock, warn, masked, is_new=False, cut=cut)

    def response_item(
        self, item: EncodedItem, place: HistoryPlace | None = None
    ) -> None:
        """Write an item of the history, byte for byte. Without a `place`, the place of its line
        counts."""
        self._append(line("response_item", item, place))

    def turn_context(self, payload: Mapping[str, Any]) -> None:
        """Write the settings of a turn; `model` is read back."""
        self._append(line("turn_context", payload))

    def event_msg(
        self, payload: Mapping[str, Any], place: HistoryPlace | None = None
    ) -> None:
        """Write an event that was shown: an object with a `type`. `token_count` is read back."""
        self._append(line("event_msg", payload, place))

    def compacted(
        self, message: str, replacement_history: Sequence[EncodedItem]
    ) -> None:
        """Write a replacement of the history, which does not include the base prompt."""
        payload = b'{"message":%b,"replacement_history":[%b]}' % (
            encode_json(message),
            b",".join(replacement_history),
        )
        self._append(line("compacted", payload))

    def rename(self, name: str) -> None:
        rename_thread(home_of(self.path), thread_id_of(self.path.name) or "", name)

    def close(self) -> None:
        """Try once more to write the unwritten lines, then close the file. May be called again."""
        if self._fd < 0:
            return
        self._append(b"")
        self._release()

    def discard(self) -> None:
        """Close the file, and remove it if it is new."""
        if self._is_new:
            self.path.unlink(missing_ok=True)
        self._release()

    def _append(self, data: bytes) -> None:
        try:
            self._write(data)
        except OSError as error:
            if not self._warned:
                self._warned = True
                failure = _unwritable(self.path, f"{error.strerror}")
                self._warn(f"{failure}; this session may not be resumable")

    def _write(self, data: bytes) -> None:
        self._unwritten += self._masked(data)
        while self._unwritten:
            del self._unwritten[: os.write(self._fd, self._unwritten)]

    def _release(self) -> None:
        os.close(self._fd)
        self._fd = -1
        self._lock.release()


def _open(path: Path, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


@contextmanager
def _writing(path: Path, advice: str = "") -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, f"{error.strerror}{advice}") from error


def _unwritable(path: Path, reason: str) -> SessionError:
    return SessionError(f"the session file {path} cannot be written: {reason}")


class RolloutEvents:
    """An event sink that writes the displayed events as `event_msg` lines; items are written
    elsewhere.

    Source: session files of Codex 0.80; and of 0.169 for `task_started` and `task_complete`.
        Without these two, Codex
    tells the model of a forked session that the last turn was interrupted. `patch_applied` and
    `goal` are our own: Codex ignores them.
    """

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        self._write = write
        self._turn_id = ""
        self._turn_began = 0.0
        self._last_message: str | None = None

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self._last_message = text
                self._write({"type": "agent_message", "message": text})
            case events.ItemCompleted(event_items.ReasoningSummary(text=text)):
                self._write({"type": "agent_reasoning", "text": text})
            case events.ItemCompleted(
                event_items.ContextCompaction(status="completed")
            ):
                self._write({"type": "context_compacted"})
            case events.ItemCompleted(
                event_items.FileChange(status="completed", diff=diff)
            ) if len(diff) <= _MAX_DIFF_CHARACTERS:
                self._write({"type": "patch_applied", "diff": diff})
            case events.TurnStarted(turn_id):
                self._turn_began = time.monotonic()
                self._last_message = None
                self._turn_id = turn_id
                started = {"turn_id": turn_id, "started_at": int(time.time())}
                self._write({"type": "task_started", **started})
            case events.TurnCompleted():
                facts: dict[str, Any] = {
                    "turn_id": self._turn_id,
                    "last_agent_message": self._last_message,
                    "duration_ms": int((time.monotonic() - self._turn_began) * 1000),
                }
                self._write({"type": "task_complete", **facts})
            case events.GoalChanged(goal):
                self._write({"type": "goal", "goal": goal})
            case events.UsageReported(last, total, context_window):
                self._write(token_count(total, last, context_window))
            case _:
                pass
