"""What the Responses API refuses."""

from collections.abc import Iterable, Mapping
from typing import Any

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def pairing_problem(items: Iterable[Mapping[str, Any]]) -> str | None:
    """A problem with the calls and outputs of an input, or None.

    Each call has exactly one output, behind it, and each output its call. Ids may come again in later
    turns: an output answers an open call of its id.
    """
    open_calls: list[str] = []
    for item in items:
        # The oldest form of a local shell call is answered under its `id`.
        call_id = str(item.get("call_id") or item.get("id"))
        if item.get("type") in CALLS:
            open_calls.append(call_id)
        elif item.get("type") in OUTPUTS:
            if call_id not in open_calls:
                return f"an output without its call: {call_id!r}"
            open_calls.remove(call_id)
    return f"calls without output: {open_calls!r}" if open_calls else None
