"""What a scripted model says in words: texts, and calls of tools."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from codex_py.testing.events import (
    Event,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from codex_py.testing.reply import require_type

_PIECES = 3
"""The number of deltas of a text."""


class Call(NamedTuple):
    """A call of a tool, made by `call`."""

    name: str
    arguments: Mapping[str, Any]


def call(name: str, /, **arguments: Any) -> Call:
    """Make a call of a tool, for a script: `call("exec_command", cmd="ls")`."""
    require_type(name, str, "the name of a tool is a text")
    return Call(name, arguments)


Line: TypeAlias = str | Call
"""A text that the model says, or a call that it makes."""


def response_of(lines: Sequence[Line], call_ids: Iterator[str]) -> list[Event]:
    """The events of a response. Each line is an item of it, and each call takes the next id.

    Raises:
        TypeError: a line is neither a text nor a call.
    """
    events = [ev_created()]
    for index, line in enumerate(lines):
        require_type(line, str | Call, "a line of a response is a text or a call")
        if isinstance(line, str):
            events += ev_message(line, index=index, pieces=_PIECES)
        else:
            call_id = next(call_ids)
            events += ev_function_call(call_id, line.name, line.arguments, index=index)
    events.append(ev_completed())
    return events
