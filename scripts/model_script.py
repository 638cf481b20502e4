"""Scripts of a model, as JSON files.

    [
      [{"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": {"cmd": "ls"}}],
      {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {"message": "slow down"}}},
      ["All done."]
    ]

A script is a list of replies. A reply that is a list holds what the model says: a string is an answer, an
object an output item of any type, or an event (its type begins with `response.`, or is `error`). A
`response.completed` follows, unless one of the events has ended the response already. The server translates
them into the API that a request speaks.

A reply that is an object holds the fields of `Reply`: `events`, which are played exactly as they are
listed and may be those of another API, or `body`, any JSON, of which a string is sent without quotes; and `status`,
`headers`, `cut`,
`chunk_each`, `write_bytes`, `delay_s`. `codex_py/testing/reply.py` says what each does: a stream that
drips, for one, is `{"events": […], "chunk_each": true, "delay_s": 0.1}`.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from codex_py.testing.events import (
    Event,
    ev_completed,
    ev_created,
    ev_item_done,
    ev_message,
)
from codex_py.testing.reply import Reply

_TERMINAL = {"response.completed", "response.failed", "response.incomplete", "error"}
_ANTHROPIC = {
    *(
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ),
    *("message_delta", "message_stop", "ping"),
}
_FIELDS = {field.name for field in fields(Reply)}


def load_script(path: Path) -> list[Reply]:
    """The replies of a script. Raises an `OSError`, or a `ValueError` that says where it is wrong."""
    try:
        script = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(script, list):
        raise ValueError(f"{path}: a script is a list of replies")
    replies: list[Reply] = []
    for number, entry in enumerate(cast("list[Any]", script), 1):
        try:
            replies.append(_reply(entry))
        except ValueError as error:
            raise ValueError(f"{path}: reply {number}: {error}") from error
    return replies


def _reply(entry: Any) -> Reply:
    if isinstance(entry, list):
        events = _events(cast("list[Any]", entry))
        if not any(event.get("type") in _TERMINAL for event in events):
            events.append(ev_completed())
        return Reply(events=[ev_created(), *events])
    if not isinstance(entry, dict):
        raise ValueError("neither a list nor an object")
    settings = cast("dict[str, Any]", entry)
    if unknown := sorted(settings.keys() - _FIELDS):
        raise ValueError(f"unknown fields: {', '.join(unknown)}")
    convert: dict[str, Callable[[Any], Any]] = {"events": _events, "body": _body}
    return Reply(
        **{k: convert[k](v) if k in convert else v for k, v in settings.items()}
    )


def _events(parts: list[Any]) -> list[Event]:
    events: list[Event] = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            events += ev_message(part, index=index)
        else:
            events.append(_event(part, index))
    return events


def _event(part: Any, index: int) -> Event:
    """An event of any API as it is, or an item as `response.output_item.done`."""
    known: Event = cast("Event", part) if isinstance(part, dict) else {}
    kind = known.get("type")
    if "choices" in known:
        return known
    if not isinstance(kind, str):
        raise ValueError(f"neither a text nor an object with a type: {part!r}")
    if kind.startswith("response.") or kind == "error" or kind in _ANTHROPIC:
        return known
    arguments = known.get("arguments")
    if not isinstance(arguments, str | None):
        # On the wire they are text.
        known = {**known, "arguments": json.dumps(arguments)}
    return ev_item_done(known, index)


def _body(value: Any) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode()
