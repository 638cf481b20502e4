"""`exec --json`: every event as one line of JSON, written as it happens."""

import signal
from collections.abc import Callable

from codex_py.frontends.streams import OutputStream
from codex_py.protocol.event_data import event_data
from codex_py.protocol.events import Event, EventSink, TurnFailed
from codex_py.protocol.messages import encode_json

_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
"""Some readers end a line here, such as `str.splitlines` of Python, though JSON does not."""


class JsonLines:
    """An `EventSink` that writes each line in one piece. After the stream has failed, events are dropped."""

    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        if (data := event_data(event)) is not None:
            line = encode_json(data)
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
