"""A long session in the classic format, which codex-py and Codex resume."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_THREAD_ID = "01994d00-0000-7000-8000-000000000000"
_AT = "2026-01-02T03:04:05"
_OUTPUT = "a line of output, as long as most of them are\n" * 180


def write_session(home: Path, cwd: Path, size_bytes: int) -> str:
    """Write a session of about this size into `home`; its id."""
    folder = home / "sessions" / _AT[:10].replace("-", "/")
    folder.mkdir(parents=True)
    written = 0
    with (folder / f"rollout-{_AT.replace(':', '-')}-{_THREAD_ID}.jsonl").open("wb") as file:
        for record in _records(cwd):
            line = json.dumps({"timestamp": f"{_AT}.000Z", **record}, separators=(",", ":"))
            written += file.write(line.encode() + b"\n")
            if written >= size_bytes and record["payload"].get("type") == "function_call_output":
                break
    return _THREAD_ID


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
    yield {"type": "event_msg", "payload": {"type": "user_message", "message": "Look around."}}
    number = 0
    while True:
        number += 1
        call_id = f"call_{number}"
        arguments = json.dumps({"cmd": f"cat file_{number}.txt"})
        yield _item(type="function_call", name="exec_command", arguments=arguments, call_id=call_id)
        yield _item(type="function_call_output", call_id=call_id, output=_OUTPUT)


def _item(**item: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": item}
