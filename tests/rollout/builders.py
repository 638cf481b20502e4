"""Session files and items for the tests of this package."""

import json
from pathlib import Path
from typing import Any

from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.rollout.records import SESSIONS, SessionMeta

TIMESTAMP = "2026-11-20T17:52:59.450Z"


def meta(
    cwd: str = "/repo", *, provider: str | None = "mock", **more: Any
) -> SessionMeta:
    values: dict[str, Any] = {
        "id": new_thread_id(),
        "cwd": cwd,
        "originator": "codex_exec",
        "cli_version": "0.1.0",
        "source": "exec",
        "model_provider": provider,
        "timestamp": TIMESTAMP,
        **more,
    }
    return SessionMeta(**values)


def user(text: str) -> EncodedItem:
    return message("user", [input_text(text)])


def developer(text: str) -> EncodedItem:
    return message("developer", [input_text(text)])


def assistant(text: str) -> EncodedItem:
    return message("assistant", [{"type": "output_text", "text": text}])


def call(call_id: str, kind: str = "function_call") -> EncodedItem:
    field = "input" if kind == "custom_tool_call" else "arguments"
    return EncodedItem(
        encode_json({"type": kind, "name": "shell", field: "", "call_id": call_id})
    )


def output(
    call_id: str, text: str = "done", kind: str = "function_call_output"
) -> EncodedItem:
    return EncodedItem(encode_json({"type": kind, "call_id": call_id, "output": text}))


def record(kind: str, payload: object, **more: Any) -> str:
    """A line of a session file, without its newline; `more` are fields beside the classic three."""
    fields: dict[str, Any] = {
        "timestamp": TIMESTAMP,
        "type": kind,
        "payload": payload,
        **more,
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def numbered(ordinal: int, kind: str, payload: object, **more: Any) -> str:
    """A line as today's Codex writes it."""
    fields = {
        "timestamp": TIMESTAMP,
        "ordinal": ordinal,
        "type": kind,
        "payload": payload,
        **more,
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def session_file(
    home: Path, lines: list[str], thread_id: str, *, stamp: str = "2026-11-20T17-52-59"
) -> Path:
    """A session file of these lines, each ended by a newline."""
    folder = home / SESSIONS / stamp[:10].replace("-", "/")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-{stamp}-{thread_id}.jsonl"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path
