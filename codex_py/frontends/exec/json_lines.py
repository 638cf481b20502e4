"""Writes the events of a run as JSON Lines, as `codex-py exec --json` does."""

from codex_py.protocol import events
from codex_py.protocol.event_data import event_data, plain_data
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.messages import encode_json, encode_json_with_bytes
from codex_py.streams.standard import OutputStream

_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
"""Characters in UTF-8, and their escapes in JSON.

JSON allows them inside a string, but some readers end a line there, such as `str.splitlines`.
"""


class JsonLines:
    """An `EventSink` that writes each event as a line, in a single write.

    After the stream has failed, events are dropped.
    """

    def __init__(
        self, stream: OutputStream, *, agents: bool = False, usage: bool = False
    ) -> None:
        """
        Args:
            agents: write the events of subagents too, each with the id of the subagent's thread.
            usage: write the tokens that the session has used after each response.
        """
        self._stream = stream
        self._agents = agents
        self._usage = usage

    def __call__(self, event: events.Event) -> None:
        origin: dict[str, str] = {}
        if isinstance(event, events.AgentEvent) and self._agents:
            origin = {"thread_id": event.thread_id}
            event = event.event
        data = event_data(event)
        if isinstance(event, events.UsageReported) and self._usage:
            data = {"type": "usage", "usage": plain_data(event.total)}
        if data is not None:
            line = _json_line({**data, **origin})
            self._stream.write(line)


def _json_line(data: JsonObject) -> bytes:
    # Only a diff has contents of files, which may be any bytes.
    if "diff" in data:
        line = encode_json_with_bytes(data)
    else:
        line = encode_json(data)
    for raw, escaped in _LINE_BREAKS:
        line = line.replace(raw, escaped)
    return line + b"\n"
