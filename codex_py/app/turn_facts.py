"""Checks the facts that an extension adds to the last event of a turn; see `Extension.turn_facts`."""

from collections.abc import Mapping
from typing import Any, Final

from codex_py.protocol.approval import Denied
from codex_py.protocol.event_data import plain_data
from codex_py.protocol.events import ErrorInfo, StopOverridden
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Usage

_KINDS: Final[Mapping[str, type[Any]]] = {
    "usage": Usage,
    "denied": Denied,
    "stop": StopOverridden,
    "error": ErrorInfo,
}
"""The types of the fields that the last event has anyway."""


def facts_problem(facts: Mapping[str, Any]) -> str | None:
    """Return why the event cannot have these facts, as a clause. None if it can."""
    code = facts.get("exit_code") or 0
    if not isinstance(code, int) or code is True or code not in range(256):
        return f"`exit_code` is {code!r}, not a number from 0 to 255"
    diff = facts.get("diff") or ""
    if not isinstance(diff, str):
        return f"`diff` is {diff!r}, not a string"
    for name, value in facts.items():
        kind = _KINDS.get(name)
        if kind is not None and not isinstance(value, kind):
            return f"`{name}` is {value!r}, and that field of the event is a `{kind.__name__}`"
        if name == "facts":
            return "`facts` is the name of no fact"
        # A diff may have any bytes, and is escaped.
        problem = None if name == "diff" else _json_problem(value)
        if problem is not None:
            return f"`{name}` cannot be written as JSON: {problem}"
    return None


def _json_problem(value: Any) -> str | None:
    try:
        encode_json(plain_data(value))
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)
    return None
