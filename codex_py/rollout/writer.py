"""Writes a session file line by line, so that it can be resumed even if the process is killed."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from codex_py.errors import QUOTA_CODES, SessionError, TurnAborted
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
"""The limit for the diff of a patch. Longer diffs are not shown, and not written."""


class ThreadLock:
    """A lock that is held until `release`.

    The convention is that of Codex, observed in 0.169: an exclusive `flock` on
    `$CODEX_HOME/thread-writer-locks/<thread id>.lock`. When the lock is released, the file is removed;
    meanwhile `.coordination.lock` beside it is locked. The kernel drops the lock of a process that
    dies.
    """

    def __init__(
        self,
        home: Path,
        thread_id: str,
        advice: str = "",
    ) -> None:
        """Acquire the lock without waiting.

        Raises:
            SessionError: another process holds it. The message ends with the advice.
        """
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
        """Release the lock and remove its file."""
        # If removing fails, the file stays behind, empty and unlocked.
        with suppress(OSError), locked(self._coordination, 0, is_file=True):
            self._path.unlink()
        os.close(self._fd)

    def _is_current(self) -> bool:
        """True if the locked file is still the one at the path."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return False
        return found.st_ino == os.fstat(self._fd).st_ino


def must_be_unused(path: Path) -> None:
    """Raise a `SessionError` if another process writes this session file.

    This is for readers: no lock is held afterwards.
    """
    with _writing(path):
        ThreadLock(home_of(path), read_meta(path).id, _ADVICE).release()


class RolloutWriter:
    """Appends to one session file. No other process appends to it at the same time.

    Each line is one write to a descriptor in append mode, so that a kill cuts off at most the last line. A full disk
    does not end the turn. Lines that cannot be written stay in memory, and `warn` is called once with a sentence for
    the user. Every later line tries again, so that lines are written whole and in order or not at all. Nothing is
    synced: the file survives the end of the process, but perhaps not a power failure.
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
        self._unwritten = bytearray()
        self._last_line = b""
        if cut:
            # This ends the line that an earlier process left unfinished. Readers skip it.
            self._unwritten += b"\n"

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
        """Create the file of a new thread, with its metadata and first items.

        It is renamed to its place when it has all of these.

        Args:
            masked: returns the bytes to write for a line, for instance without secrets.

        Raises:
            SessionError: the file cannot be written, or the thread is in use.
        """
        path = session_path(home, meta)
        with _writing(path), ExitStack() as undo:
            make_private(path.parent)
            lock = ThreadLock(home, meta.id)
            undo.callback(lock.release)
            part = path.with_suffix(".part")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            fd = _open(part, flags)
            undo.callback(os.close, fd)
            undo.callback(part.unlink, missing_ok=True)
            writer = cls(
                path,
                fd,
                lock,
                warn,
                masked,
                is_new=True,
                cut=False,
            )
            writer._write(line("session_meta", meta.payload()))
            for item in items:
                writer._write(writer._line("response_item", item))
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
        """Continue the file of an earlier session.

        Call this before `read_session`: the lock keeps other processes from adding lines after that.

        Args:
            masked: see `create`.

        Raises:
            SessionError: the file cannot be read or written, the thread is in use, or the file is
                native: that one is continued in a new file.
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
            # This needs the lock: another process may have written to the file before.
            size = os.fstat(fd).st_size
            cut = os.pread(fd, 1, size - 1) != b"\n"
            undo.pop_all()
            return cls(
                path,
                fd,
                lock,
                warn,
                masked,
                is_new=False,
                cut=cut,
            )

    def response_item(
        self,
        item: EncodedItem,
        place: HistoryPlace | None = None,
    ) -> None:
        """Write an item of the history, byte for byte. If `place` is None, its place is that of the
        line."""
        self._append(self._line("response_item", item, place))

    def turn_context(self, payload: Mapping[str, Any]) -> None:
        """Write the settings of a turn. Of these, `read_session` reads only `model`."""
        self._append(self._line("turn_context", payload))

    def event_msg(
        self,
        payload: Mapping[str, Any],
        place: HistoryPlace | None = None,
    ) -> None:
        """Write an event that was shown: an object with a `type`."""
        self._append(self._line("event_msg", payload, place))

    def compacted(
        self,
        message: str,
        replacement_history: Sequence[EncodedItem],
    ) -> None:
        """Write that the history was replaced, with the new one. The base prompt is no part of it."""
        parts = (encode_json(message), b",".join(replacement_history))
        payload = b'{"message":%b,"replacement_history":[%b]}' % parts
        self._append(self._line("compacted", payload))

    def rename(self, name: str) -> None:
        """Give the thread a name. Raises as `rename_thread`."""
        thread_id = thread_id_of(self.path.name) or ""
        rename_thread(home_of(self.path), thread_id, name)

    def close(self) -> None:
        """Try once more to write the unwritten lines, then close the file. Later calls do nothing."""
        if self._fd < 0:
            return
        self._append(b"")
        self._release()

    def discard(self) -> None:
        """Close the file, and remove it if it is new."""
        if self._is_new:
            self.path.unlink(missing_ok=True)
        self._release()

    def _line(
        self,
        kind: str,
        payload: bytes | Mapping[str, Any],
        place: HistoryPlace | None = None,
    ) -> bytes:
        """Encode a line that differs from the one before: readers take equal lines for damage."""
        data = line(kind, payload, place)
        if data == self._last_line:
            data = line(kind, payload, place, later_ms=1)
        self._last_line = data
        return data

    def _append(self, data: bytes) -> None:
        """Write a line if possible. The first failure warns the user."""
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
            written = os.write(self._fd, self._unwritten)
            del self._unwritten[:written]

    def _release(self) -> None:
        os.close(self._fd)
        self._fd = -1
        self._lock.release()


def _open(path: Path, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


@contextmanager
def _writing(path: Path, advice: str = "") -> Generator[None]:
    """Turn an `OSError` into a `SessionError` that ends with the advice."""
    try:
        yield
    except OSError as error:
        raise _unwritable(path, f"{error.strerror}{advice}") from error


def _unwritable(path: Path, reason: str) -> SessionError:
    return SessionError(f"the session file {path} cannot be written: {reason}")


_ERROR_KINDS: Final = {
    "context_length_exceeded": "context_window_exceeded",
    "login_over": "unauthorized",
    "server_overloaded": "server_overloaded",
    **dict.fromkeys(QUOTA_CODES, "usage_limit_exceeded"),
}
"""What Codex 0.171 calls the errors that end a turn, by our codes. Every other one is `other`."""


class RolloutEvents:
    """An event sink that writes events which were shown as `event_msg` lines. It writes no items.

    The form is that of session files of Codex 0.80, and of 0.169 for `task_started` and `task_complete`.
    Without these two, Codex tells the model of a forked session that the last turn was interrupted.
    `patch_applied` and `goal` are our own: Codex ignores them.
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
                self._write(self._turn_end())
            case events.TurnFailed(error) if error.code != TurnAborted.code:
                kind = _ERROR_KINDS.get(error.code, "other")
                told = {"message": error.message, "codex_error_info": kind}
                self._write({**self._turn_end(), "error": told})
            case events.ReviewStarted(name):
                target = {"type": "custom", "instructions": name}
                begun = {"target": target, "user_facing_hint": name}
                self._write({"type": "entered_review_mode", **begun})
            case events.GoalChanged(goal):
                self._write({"type": "goal", "goal": goal})
            case events.UsageReported(last, total, context_window, plan):
                self._write(token_count(total, last, context_window, plan))
            case _:
                pass

    def _turn_end(self) -> dict[str, Any]:
        """The line about the end of the turn."""
        return {
            "type": "task_complete",
            "turn_id": self._turn_id,
            "last_agent_message": self._last_message,
            "duration_ms": int((time.monotonic() - self._turn_began) * 1000),
        }
