"""Writes the events of a run as JSON Lines, as `codex-py exec --json` does."""

from codex_py.protocol import events
from codex_py.protocol.event_data import event_data, plain_data
from codex_py.protocol.messages import encode_json, encode_json_with_bytes
from codex_py.streams.standard import OutputStream

_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
"""Characters at which some readers end a line, such as Python's `str.splitlines`; JSON does not."""


class JsonLines:
    """An `EventSink` that writes each line in one piece.

    After the stream has failed, events are dropped.
    """

    def __init__(
        self, stream: OutputStream, *, agents: bool = False, usage: bool = False
    ) -> None:
        """
        Args:
            agents: write the events of subagents too, with the thread id of the subagent.
            usage: write the tokens so far after each response.
        """
        self._stream = stream
        self._agents = agents
        self._usage = usage

    def __call__(self, event: events.Event) -> None:
        of_agent: dict[str, str] = {}
        if isinstance(event, events.AgentEvent) and self._agents:
            of_agent = {"thread_id": event.thread_id}
            event = event.event
        data = event_data(event)
        if isinstance(event, events.UsageReported) and self._usage:
            data = {"type": "usage", "usage": plain_data(event.total)}
        if data is not None:
            # Only diffs contain the contents of files.
            if "diff" in data:
                encode = encode_json_with_bytes
            else:
                encode = encode_json
            line = encode({**data, **of_agent})
            for raw, escaped in _LINE_BREAKS:
                line = line.replace(raw, escaped)
            self._stream.write(line + b"\n")
