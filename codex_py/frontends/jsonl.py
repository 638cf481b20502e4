"""`exec --json`: every event as one line of JSON, written as it happens."""

from codex_py.frontends.streams import OutputStream
from codex_py.protocol.events import Event, event_data
from codex_py.protocol.messages import encode_json


class JsonLines:
    """An `EventSink`. Each line goes out in one piece, so that a reader sees it at once.

    A stream that fails is noticed by its own `on_failure`; events after that are dropped.
    """

    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        if (data := event_data(event)) is not None:
            self._stream.write(encode_json(data) + b"\n")
