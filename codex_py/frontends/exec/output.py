"""What `exec` writes for programs: with `--json` every event as a line, as it happens; with `-o FILE` the last message."""

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.ordinary import real_path
from codex_py.frontends.streams import OutputStream
from codex_py.protocol.event_data import event_data
from codex_py.protocol.events import AgentEvent, Event, EventSink, TurnFailed
from codex_py.protocol.messages import encode_json

_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
"""Some readers end a line here, such as `str.splitlines` of Python, though JSON does not."""


class JsonLines:
    """An `EventSink` that writes each line in one piece. After the stream has failed, events are dropped."""

    def __init__(self, stream: OutputStream, *, agents: bool = False) -> None:
        """`agents`: write the events of subagents too, with the thread id of the subagent."""
        self._stream = stream
        self._agents = agents

    def __call__(self, event: Event) -> None:
        of_agent: dict[str, str] = {}
        if isinstance(event, AgentEvent) and self._agents:
            of_agent = {"thread_id": event.thread_id}
            event = event.event
        if (data := event_data(event)) is not None:
            line = encode_json({**data, **of_agent})
            for raw, escaped in _LINE_BREAKS:
                line = line.replace(raw, escaped)
            self._stream.write(line + b"\n")


def for_sdk(sink: EventSink, received: Callable[[], signal.Signals | None]) -> EventSink:
    """Leave out the `turn.failed` of a turn that SIGTERM ended: the `error` before it is its last event.

    The SDKs of Codex send SIGTERM to abort a turn. They throw an `AbortError` when the stream ends, but
    another error if they read `turn.failed` first. Codex itself prints nothing then.

    Args:
        received: the signal that is ending the program, if one is.
    """

    def filtered(event: Event) -> None:
        if not (isinstance(event, TurnFailed) and received() == signal.SIGTERM):
            sink(event)

    return filtered


class LastMessageFile:
    """The file. It is opened before the first request, so that a path that cannot be written costs nothing.

    It keeps its contents until `write`, so it still has them if the turn fails.

    Args:
        root: absolute. A path in this folder must not lead out of it.

    Raises:
        CodexError: the file cannot be opened for writing, or leads out of `root`.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        try:
            real_path(path.absolute(), root)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _failure(path, error, ExitCode.USAGE) from error

    def write(self, text: str) -> None:
        """Replace the contents by the text, without a further newline. Call it once.

        Raises:
            CodexError: it cannot be written.
        """
        try:
            if stat.S_ISREG(os.fstat(self._fd).st_mode):
                os.ftruncate(self._fd, 0)
            with os.fdopen(self._fd, "wb") as file:
                file.write(text.encode(errors="replace"))
        except OSError as error:
            raise _failure(self.path, error, ExitCode.TURN_FAILED) from error


def _failure(path: Path, error: OSError, exit_code: ExitCode) -> CodexError:
    return CodexError(
        f"Failed to write the last message to {str(path)!r}: {error.strerror}",
        code="output_file",
        exit_code=exit_code,
    )
