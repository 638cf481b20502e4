"""A long session in the classic format, which codex-py and Codex resume."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_THREAD_ID = "01994d00-0000-7000-8000-000000000000"
_AT = "2026-01-02T03:04:05"
_OUTPUT = "a line of output, as long as most of them are\n" * 180


def write_session(
    home: Path, cwd: Path, size_bytes: int, *, replaced_bytes: int = 0
) -> str:
    """Write a session into `home`; its id.

    Args:
        size_bytes: of its history, about.
        replaced_bytes: of what stands before that in the file, and was replaced by a compaction.
    """
    folder = home / "sessions" / _AT[:10].replace("-", "/")
    folder.mkdir(parents=True)
    with (folder / f"rollout-{_AT.replace(':', '-')}-{_THREAD_ID}.jsonl").open(
        "wb"
    ) as file:
        history = b"".join(_lines(cwd, size_bytes))
        if replaced_bytes:
            meta, _, items = history.partition(b"\n")
            file.write(meta + b"\n")
            while file.tell() < replaced_bytes:
                file.write(items)
            kept = [{"type": "message", "role": "user", "content": "Look around."}]
            compaction = {"message": "A summary", "replacement_history": kept}
            file.write(_line({"type": "compacted", "payload": compaction}))
            history = items
        file.write(history)
    return _THREAD_ID


def write_others(home: Path, cwd: Path, count: int, days: int) -> str:
    """Write short sessions into `home`, as many on each day; the id of the oldest, whose name is `oldest`."""
    first = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for number in range(count):
        began = first + timedelta(days=number % days, seconds=number)
        thread_id = f"{int(began.timestamp() * 1000):012x}-7000-8000-{number:012x}"
        thread_id = f"{thread_id[:8]}-{thread_id[8:]}"
        folder = home / "sessions" / f"{began:%Y/%m/%d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
        lines = b"".join(_lines(cwd, 1))
        path.write_bytes(lines.replace(_THREAD_ID.encode(), thread_id.encode()))
    oldest = min((home / "sessions").rglob("*.jsonl")).stem[-len(_THREAD_ID) :]
    name = {"id": oldest, "thread_name": "oldest", "updated_at": _AT}
    (home / "session_index.jsonl").write_text(json.dumps(name) + "\n", encoding="utf-8")
    return oldest


def _lines(cwd: Path, size_bytes: int) -> Iterator[bytes]:
    written = 0
    for record in _records(cwd):
        line = _line(record)
        written += len(line)
        yield line
        if (
            written >= size_bytes
            and record["payload"].get("type") == "function_call_output"
        ):
            break


def _line(record: dict[str, Any]) -> bytes:
    fields = {"timestamp": f"{_AT}.000Z", **record}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _records(cwd: Path) -> Iterator[dict[str, Any]]:
    """A session without end; it may be cut behind any output."""
    meta = {
        "id": _THREAD_ID,
        "timestamp": f"{_AT}.000Z",
        "cwd": str(cwd),
        "originator": "codex_exec",
        "cli_version": "0.50.0",
        "instructions": None,
        "source": "exec",
        "model_provider": "mock",
    }
    yield {"type": "session_meta", "payload": meta}
    content = [{"type": "input_text", "text": "Look around."}]
    yield _item(type="message", role="user", content=content)
    yield {
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "Look around."},
    }
    yield {"type": "turn_context", "payload": {"cwd": str(cwd), "model": "gpt-5.5"}}
    number = 0
    while True:
        number += 1
        call_id = f"call_{number}"
        arguments = json.dumps({"cmd": f"cat file_{number}.txt"})
        yield _item(
            type="function_call",
            name="exec_command",
            arguments=arguments,
            call_id=call_id,
        )
        yield _item(type="function_call_output", call_id=call_id, output=_OUTPUT)


def _item(**item: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": item}
