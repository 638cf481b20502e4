"""Rules for the requests of a thread: every call has its output, and each request begins with the
previous one, which the provider caches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from codex_py.testing.request import RecordedRequest


class Refusal(Exception):
    """The service refuses a request that violates no rule, for instance because of an unknown
    parameter."""


class Rules:
    """The rules of a scripted server. These require that requests of the Responses API pair calls
    and outputs.

    Override the methods to refuse the same requests as a real service.
    """

    def check(self, request: RecordedRequest) -> None:
        """Check a request. Raises a `ValueError` that names the rule if the request violates one;
        or a `Refusal`."""
        problem = pairing_problem(self.prefix(request))
        if problem is not None:
            raise ValueError(problem)

    def prefix(self, request: RecordedRequest) -> Sequence[Any]:
        """The part of a request with which the thread's next request must begin; empty for other
        APIs.

        Raises:
            ValueError: the input is not a list of objects.
        """
        items = cast("list[object]", request.fields.get("input", []))
        if not all(isinstance(item, dict) for item in items):
            raise ValueError("the input is no list of objects")
        return items

    def answered(self, stream: bytes) -> None:
        """Observe an answer. Called for each one in another API than the Responses API."""


def prefix_problem(before: Sequence[object], items: Sequence[object]) -> str | None:
    """The first difference if an input does not begin with the previous one; else None."""
    for place, (old, new) in enumerate(zip(before, items, strict=False)):
        if old != new:
            change = f"item {place} was {old!r}, is {new!r}"
            return f"the input does not begin with the last one: {change}"
    if len(items) < len(before):
        lengths = f"{len(items)} items, {len(before)} before"
        return f"the input is shorter than the last one: {lengths}"
    return None


CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def pairing_problem(items: Iterable[Mapping[str, Any]]) -> str | None:
    """A problem with the calls and outputs of an input; None if they are in order.

    Each call must have exactly one output, after it, and each output must have its call. Later
    turns may repeat ids: an output answers an open call with its id.
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
    if open_calls:
        return f"calls without output: {open_calls!r}"
    return None
